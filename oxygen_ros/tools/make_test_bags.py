"""Writes the bags of test/resources/bags: a small simulated robot, once as MCAP and once as sqlite3."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from oxygen_ros.config import load_config
from oxygen_ros.replay.simulated_bag import BagPlan, write_simulated_bag

DESCRIPTION = """\
Writes small seeded bags of a simulated robot: DIR/<preset>_mcap and DIR/<preset>_sqlite3. Bags of the same
name are replaced."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the bags; the exit code."""
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    parser.add_argument("dir", type=Path, nargs="?", default=Path("test/resources/bags"), help="where")
    parser.add_argument("--preset", default="aloha", help="robot preset (aloha)")
    parser.add_argument("--seconds", type=float, default=2.0, help="length (2)")
    parser.add_argument("--camera-hz", type=float, default=10.0, help="pictures per second and camera (10)")
    parser.add_argument("--size", default="48x36", help="width x height of pictures (48x36)")
    parser.add_argument("--seed", type=int, default=0, help="seed (0)")
    parser.add_argument("--storage", choices=("mcap", "sqlite3"), help="only this storage")
    parser.add_argument("--raw", action="store_true", help="pictures as Image, not as JPEG")
    options = parser.parse_args(arguments)
    width, height = (int(part) for part in options.size.split("x"))
    config = load_config(preset=options.preset, device="cpu", overrides={"runner.kind": "fake"}).config
    for storage in [options.storage] if options.storage else ["mcap", "sqlite3"]:
        path = options.dir / f"{options.preset}_{storage}"
        shutil.rmtree(path, ignore_errors=True)
        plan = BagPlan(
            seconds=options.seconds,
            storage=storage,
            camera_hz=options.camera_hz,
            width=width,
            height=height,
            is_jpeg=not options.raw,
            seed=options.seed,
        )
        write_simulated_bag(path, config, plan)
        size_kb = sum(file.stat().st_size for file in path.iterdir()) // 1024
        print(f"{path}: {options.seconds:g} s, {size_kb} KiB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
