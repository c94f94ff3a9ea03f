"""Writes a random pi0.5 checkpoint of a few megabytes, to try the node without a trained model.

Usage: python -m oxygen_ros.tools.make_tiny_checkpoint OUT [--preset libero] [--seed 0]. The folder has the
layout of openpi's PyTorch checkpoints: config.json, model.safetensors, tokenizer.json and
assets/<preset>/norm_stats.json. Its actions are finite and mean nothing; its texts are random words.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from oxygen_ros.errors import ConfigError, OxygenError
from oxygen_ros.models.pi05.config import CAMERAS, GemmaSize
from oxygen_ros.models.pi05.config_source import config_from_json
from oxygen_ros.models.pi05.names import EMBEDDING, LANGUAGE, LM_HEAD
from oxygen_ros.models.pi05.random_weights import random_state
from oxygen_ros.models.word_tokenizer import FIRST_NUMBER_ID, NUM_STATE_BINS, pieces, write_tokenizer

BACKBONE = GemmaSize(width=128, depth=4, mlp_dim=256, num_heads=8, num_kv_heads=1, head_dim=32)
EXPERT = GemmaSize(width=64, depth=4, mlp_dim=128, num_heads=8, num_kv_heads=1, head_dim=32)
VISION = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "image_size": 112,
    "patch_size": 14,
}
PADDED_ACTION_DIM = 32
FIRST_WORD_ID = FIRST_NUMBER_ID + NUM_STATE_BINS + 1
UNLIKELY = 0.2
"""Scale of the head's rows for bytes and numbers: greedy texts then consist of words."""

SHARPNESS = 6.0
"""Scale of queries: texts then depend on what and where they read, and seldom go round in circles."""


@dataclass(frozen=True)
class TinyRobot:
    """What a robot preset needs of its checkpoint."""

    horizon: int
    state_dim: int
    action_dim: int


ROBOTS = {"libero": TinyRobot(10, 8, 7), "droid": TinyRobot(15, 8, 8), "aloha": TinyRobot(50, 14, 14)}


def write_checkpoint(folder: Path, preset: str, seed: int = 0) -> None:
    """Write the checkpoint for ``preset`` into ``folder``: the same bytes for the same seed.

    Raises:
        ConfigError: if ``folder`` has something in it, or there is no such preset.
    """
    if preset not in ROBOTS:
        raise ConfigError("preset", f"no tiny checkpoint for preset {preset!r}", f"one of {sorted(ROBOTS)}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError("out_folder", f"{folder} is not an empty folder", "give a new folder")
    robot, vocab_size = ROBOTS[preset], len(pieces())
    data = config_json(robot, vocab_size)
    state = random_state(config_from_json(data), seed)
    state[EMBEDDING] = state[LM_HEAD].flip(0).clone()  # a head of its own: a tied one repeats the last token
    state[LM_HEAD][:FIRST_WORD_ID] *= UNLIKELY
    for name in state:
        if name.startswith(LANGUAGE) and name.endswith("q_proj.weight"):
            state[name] *= SHARPNESS
    folder.mkdir(parents=True, exist_ok=True)
    save_file(state, folder / "model.safetensors")
    write_tokenizer(folder / "tokenizer.json")
    _write_json(folder / "config.json", data)
    assets = folder / "assets" / preset
    assets.mkdir(parents=True)
    statistics = {"state": _statistics(robot.state_dim), "actions": _statistics(robot.action_dim)}
    _write_json(assets / "norm_stats.json", {"norm_stats": statistics})


def config_json(robot: TinyRobot, vocab_size: int) -> dict[str, Any]:
    """Content of ``config.json``."""
    return {
        "pi05": True,
        "dtype": "float32",
        "prefix_text_attention": "bidirectional",
        "vocab_size": vocab_size,
        "vlm": asdict(BACKBONE),
        "expert": asdict(EXPERT),
        "vision": VISION,
        "action_dim": PADDED_ACTION_DIM,
        "action_horizon": robot.horizon,
        "max_token_len": 200,
        "num_denoise_steps": 10,
        "cameras": list(CAMERAS),
    }


def _statistics(num_dims: int) -> dict[str, list[float]]:
    """Values that leave [-1, 1] as it is."""
    values = {"mean": 0.0, "std": 1.0, "q01": -1.0, "q99": 1.0}
    return {name: [value] * num_dims for name, value in values.items()}


def _write_json(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write one checkpoint. Exit code 2 if it cannot be written there."""
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="make_tiny_checkpoint", description=summary)
    parser.add_argument("out", type=Path, help="new folder")
    parser.add_argument("--preset", default="libero", help=f"robot: {', '.join(ROBOTS)}")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    try:
        write_checkpoint(options.out, options.preset, options.seed)
    except OxygenError as fault:
        print(fault, file=sys.stderr)
        return 2
    num_bytes = sum(path.stat().st_size for path in options.out.rglob("*") if path.is_file())
    print(f"{options.out}: {num_bytes / 1e6:.1f} MB, preset {options.preset}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
