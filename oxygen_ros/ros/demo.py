"""The demonstration: a small trained model moves a simulated robot and says truly what it has done.

Simulator, brain, player, speech and memory run as nodes of their own. At the end there is a run folder. With
--stand-in both nodes run on made-up actions and scripted texts, on any robot. `scripts/demo` starts it.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from oxygen_ros.config import default_config_dirs
from oxygen_ros.errors import OxygenError
from oxygen_ros.ros.demo_nodes import find_checkpoint
from oxygen_ros.sim.rules import FIRST_SEED
from oxygen_ros.sim.truth import ALL_TASKS, parse_instruction

EXIT_MISUSE = 2
TABLETOP_S, STAND_IN_S = 60.0, 20.0
COMPARED_SEEDS = 4
MIN_RATE_HZ, MAX_RATE_HZ = 1.0, 30.0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A terminal that is closed ends the nodes too."""


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """Flags of the demonstration. Wrong ones end the process with code 2."""
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--seconds", type=_seconds, help="how long it runs (60; 20 with --stand-in)")
    parser.add_argument("--forever", action="store_true", help="run until Ctrl-C")
    parser.add_argument("--task", type=_task, default="", help="one of the six tasks, instead of all in turn")
    parser.add_argument("--say", action="append", default=[], help="a question, asked again and again")
    parser.add_argument("--seed", type=_seed, default=FIRST_SEED, help="of the first episode (1000000)")
    parser.add_argument("--rate", type=_rate, default=MAX_RATE_HZ, help="actions a second (30)")
    parser.add_argument("--checkpoint", type=_folder, help="folder of the weights (checkpoints/tabletop)")
    parser.add_argument("--record", type=_new_folder, help="run folder (runs/<time>)")
    parser.add_argument("--headless", action="store_true", help="no panel and no pictures of the show view")
    parser.add_argument("--plain", action="store_true", help="lines instead of a panel, no colours, for logs")
    parser.add_argument("--no-check", action="store_true", help="exit code 0 however well it did and spoke")
    parser.add_argument("--compare", action="store_true", help="isolated, shared and oxygen, measured here")
    parser.add_argument("--stand-in", action="store_true", help="made-up actions and texts, nothing learned")
    parser.add_argument("--preset", default="", help="robot of the stand-in (humanoid)")
    return parser.parse_args(arguments)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < math.inf:
        raise ValueError(text)
    return seconds


def _rate(text: str) -> float:
    rate_hz = float(text)
    if not MIN_RATE_HZ <= rate_hz <= MAX_RATE_HZ:
        raise argparse.ArgumentTypeError(f"{text}; wanted {MIN_RATE_HZ:g} to {MAX_RATE_HZ:g}")
    return rate_hz


def _seed(text: str) -> int:
    seed = int(text)
    if not 0 <= seed < 2**31:
        raise argparse.ArgumentTypeError(f"{seed}; wanted 0 to {2**31 - 1}")
    return seed


def _task(text: str) -> str:
    task = parse_instruction(text)
    if not text:
        return ""
    if task is None:
        known = "; ".join(task.instruction for task in ALL_TASKS)
        raise argparse.ArgumentTypeError(f"there is no task {text!r}; one of: {known}")
    return task.instruction


def _folder(text: str) -> Path:
    folder = Path(text).expanduser()
    if not folder.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {folder}")
    return folder


def _new_folder(text: str) -> Path:
    folder = Path(text).expanduser()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise argparse.ArgumentTypeError(f"{folder} is there already; wanted a new or an empty folder")
    return folder


def set_transport() -> None:
    """Stay on this machine, and send pictures through shared memory, unless the user has chosen otherwise."""
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    profiles = [folder / "fastdds_shm.xml" for folder in default_config_dirs()]
    if profile := next((path for path in profiles if path.is_file()), None):
        os.environ.setdefault("FASTRTPS_DEFAULT_PROFILES_FILE", str(profile))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration. 0 if it did well, 1 if not, 2 for wrong arguments."""
    options = options_of(sys.argv[1:] if arguments is None else arguments)
    end = threading.Event()
    for number in ENDING:
        signal.signal(number, lambda *_: end.set())
    set_transport()
    checkpoint = options.checkpoint or find_checkpoint()
    try:
        if options.compare:
            return _compare(options, checkpoint)
        if options.stand_in or options.preset:
            return _run_stand_in(options, end)
        if checkpoint is None:
            print(
                "There is no trained checkpoint (checkpoints/tabletop; --checkpoint DIR names another): "
                "this is the stand-in. python -m oxygen_ros.training.train trains one.",
                flush=True,
            )
            return _run_stand_in(options, end)
        return _run_tabletop(options, checkpoint, end)
    except OxygenError as error:
        print(error, file=sys.stderr)
        return EXIT_MISUSE


def _compare(options: argparse.Namespace, checkpoint: Path | None) -> int:
    from oxygen_ros.ros.demo_recorder import new_run_folder
    from oxygen_ros.ros.tabletop_node import simulator_problem

    problem = simulator_problem()
    if checkpoint is None:
        problem = (
            "There is nothing to compare without a checkpoint (checkpoints/tabletop, or --checkpoint DIR)."
        )
    if problem:
        print(problem, file=sys.stderr)
        return EXIT_MISUSE
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)
    from oxygen_ros.demo.compare import compare

    assert checkpoint is not None
    folder = options.record or new_run_folder()
    folder.mkdir(parents=True, exist_ok=True)
    return compare(checkpoint, range(options.seed, options.seed + COMPARED_SEEDS), folder)


def _run_stand_in(options: argparse.Namespace, end: threading.Event) -> int:
    from oxygen_ros.ros.demo_stand_in import run_stand_in

    seconds = None if options.forever else _given(options.seconds, STAND_IN_S)
    return run_stand_in(options.preset or "humanoid", seconds, options.plain, end)


def _run_tabletop(options: argparse.Namespace, checkpoint: Path, end: threading.Event) -> int:
    from oxygen_ros.ros.demo_recorder import new_run_folder
    from oxygen_ros.ros.demo_tabletop import TabletopOptions, TabletopRun

    wanted = TabletopOptions(
        checkpoint=checkpoint,
        folder=options.record or new_run_folder(),
        seconds=None if options.forever else _given(options.seconds, TABLETOP_S),
        task=options.task,
        seed=options.seed,
        rate_hz=options.rate,
        asked=tuple(options.say),
        is_headless=options.headless,
        is_plain=options.plain,
        is_checked=not options.no_check,
    )
    return TabletopRun(wanted).run(end)


def _given(value: float | None, default: float) -> float:
    return default if value is None else value


if __name__ == "__main__":
    sys.exit(main())
