"""Writes a random pi0.5 checkpoint in LeRobot's layout, tiny or of the real size, for a robot preset.

Usage: python -m oxygen_ros.tools.make_lerobot_checkpoint OUT [--preset libero] [--size tiny|full]
[--dtype float32|bfloat16]. The real size takes about 7 GB in bfloat16 and is written tensor by tensor.
Its actions mean nothing; it is there to try loading, the doctor and the node.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file

from oxygen_ros.config import load_config
from oxygen_ros.config.robot import RobotConfig
from oxygen_ros.errors import ConfigError, OxygenError
from oxygen_ros.models.pi05.checkpoint_processors import POSTPROCESSOR, PREPROCESSOR
from oxygen_ros.models.pi05.config import (
    GEMMA_SIZES,
    SIGLIP_SO400M,
    ExpertConfig,
    GemmaSize,
    Pi05Config,
    VisionSize,
)
from oxygen_ros.models.pi05.names import EMBEDDING, LM_HEAD, UNUSED, tensor_shapes
from oxygen_ros.models.word_tokenizer import pieces, write_tokenizer
from oxygen_ros.types import DEFAULT_EXPERT

PADDED_DIM = 32
FULL_VOCABULARY = 257152
BLOCK_ELEMENTS = 1 << 22
MAX_TOKENS = 200
TINY = GemmaSize(width=128, depth=4, mlp_dim=256, num_heads=8, num_kv_heads=1, head_dim=32)
TINY_EXPERT = GemmaSize(width=64, depth=4, mlp_dim=128, num_heads=8, num_kv_heads=1, head_dim=32)
TINY_VISION = VisionSize(width=64, depth=2, num_heads=4, mlp_dim=128, image_size=112, patch_size=14)
FLOAT32_PARTS = (
    "vision_tower",
    "multi_modal_projector",
    "norm",
    "action_in_proj",
    "action_out_proj",
    "time_mlp",
)
"""What LeRobot keeps in float32 in a bfloat16 model, since 0.5.0."""


def write_checkpoint(
    folder: Path, robot: RobotConfig, horizon: int, *, is_full: bool, dtype: str, seed: int
) -> None:
    """Write the checkpoint for ``robot`` into ``folder``.

    Raises:
        ConfigError: if ``folder`` has something in it.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError("out_folder", f"{folder} is not an empty folder", "give a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    config = model_config(horizon, is_full=is_full)
    _write_weights(folder / "model.safetensors", config, dtype, seed)
    if not is_full:
        write_tokenizer(folder / "tokenizer.json")
    _write_json(folder / "config.json", _config_json(robot, config, dtype))
    before, after = _pipelines(robot)
    _write_json(folder / PREPROCESSOR, before)
    _write_json(folder / POSTPROCESSOR, after)
    statistics = {
        **_statistics("observation.state", robot, robot.joint_names),
        **_statistics("action", robot, robot.command_joint_names),
    }
    for document in (before, after):
        for step in document["steps"]:
            if "state_file" in step:
                save_file(statistics, folder / step["state_file"])


def model_config(horizon: int, *, is_full: bool) -> Pi05Config:
    """Sizes of the tiny or of the real model."""
    vlm, expert = (GEMMA_SIZES["gemma_2b"], GEMMA_SIZES["gemma_300m"]) if is_full else (TINY, TINY_EXPERT)
    return Pi05Config(
        vlm=vlm,
        vision=SIGLIP_SO400M if is_full else TINY_VISION,
        experts=(ExpertConfig(DEFAULT_EXPERT, expert, horizon, PADDED_DIM),),
        vocab_size=FULL_VOCABULARY if is_full else len(pieces()),
        max_token_len=MAX_TOKENS,
    )


def stored_shapes(config: Pi05Config) -> dict[str, tuple[int, ...]]:
    """Every tensor that LeRobot stores, the one that nothing reads included."""
    (unused,) = UNUSED
    return {**tensor_shapes(config), unused: (config.vocab_size, config.experts[0].size.width)}


def num_elements(shape: tuple[int, ...]) -> int:
    """Numbers in a tensor."""
    return math.prod(shape)


def _stored_dtype(name: str, dtype: str) -> str:
    keeps = dtype == "float32" or any(part in name for part in FLOAT32_PARTS)
    return "F32" if keeps else "BF16"


def _write_weights(path: Path, config: Pi05Config, dtype: str, seed: int) -> None:
    """All tensors, one by one: the real size needs no more memory than the tiny one."""
    shapes = stored_shapes(config)
    header: dict[str, Any] = {}
    position = 0
    for name, shape in shapes.items():
        stored = _stored_dtype(name, dtype)
        size = num_elements(shape) * (4 if stored == "F32" else 2)
        header[f"model.{name}"] = {
            "dtype": stored,
            "shape": list(shape),
            "data_offsets": [position, position + size],
        }
        position += size
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    noise = torch.randn(BLOCK_ELEMENTS, generator=torch.Generator().manual_seed(seed))
    with path.open("wb") as stream:
        stream.write(len(head).to_bytes(8, "little") + head)
        for name, shape in shapes.items():
            for block in _values(noise, name, num_elements(shape)):
                is_wide = _stored_dtype(name, dtype) == "F32"
                stream.write((block if is_wide else block.bfloat16().view(torch.int16)).numpy().tobytes())


def _values(noise: torch.Tensor, name: str, count: int) -> Iterator[torch.Tensor]:
    """Values of one tensor, block by block: noise of a size that keeps activations tame."""
    scale = 0.0 if name.endswith("norm.weight") else 0.02
    half = BLOCK_ELEMENTS // 2
    # One start for both: as in a fresh conversion, the head is the embedding.
    start = 0 if name in (EMBEDDING, LM_HEAD) else sum(name.encode()) * 7919 % half
    for begin in range(0, count, half):
        yield noise[start : start + min(half, count - begin)] * scale


def _config_json(robot: RobotConfig, config: Pi05Config, dtype: str) -> dict[str, Any]:
    cameras = {
        robot.cameras[role].feature: {"type": "VISUAL", "shape": [3, 480, 640]} for role in robot.camera_roles
    }
    return {
        "type": "pi05",
        "n_obs_steps": 1,
        "input_features": {**cameras, "observation.state": {"type": "STATE", "shape": [robot.state_dim]}},
        "output_features": {"action": {"type": "ACTION", "shape": [robot.action_dim]}},
        "device": "cpu",
        "paligemma_variant": "gemma_2b",
        "action_expert_variant": "gemma_300m",
        "dtype": dtype,
        "chunk_size": config.experts[0].horizon,
        "n_action_steps": config.experts[0].horizon,
        "max_state_dim": PADDED_DIM,
        "max_action_dim": PADDED_DIM,
        "num_inference_steps": config.num_denoise_steps,
        "min_period": config.min_period,
        "max_period": config.max_period,
        "use_relative_actions": False,
        "image_resolution": [config.vision.image_size] * 2,
        "empty_cameras": 0,
        "tokenizer_max_length": MAX_TOKENS,
        "normalization_mapping": _MODES,
    }


_MODES = {"VISUAL": "IDENTITY", "STATE": "QUANTILES", "ACTION": "QUANTILES"}


def _pipelines(robot: RobotConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    features = {
        "observation.state": {"type": "STATE", "shape": [robot.state_dim]},
        "action": {"type": "ACTION", "shape": [robot.action_dim]},
    }
    norm = {"eps": 1e-8, "features": features, "norm_map": _MODES}
    relative = {"enabled": False, "exclude_joints": ["gripper"], "action_names": None}
    tokenizer = {
        "max_length": MAX_TOKENS,
        "padding_side": "right",
        "tokenizer_name": "google/paligemma-3b-pt-224",
    }
    before = [
        _step("rename_observations_processor", {"rename_map": {}}),
        _step("to_batch_processor", {}),
        _step("relative_actions_processor", relative),
        _step("normalizer_processor", norm, "policy_preprocessor_step_3_normalizer_processor.safetensors"),
        _step("pi05_prepare_state_tokenizer_processor_step", {}),
        _step("tokenizer_processor", tokenizer),
        _step("device_processor", {"device": "cpu"}),
    ]
    after = [
        _step(
            "unnormalizer_processor", norm, "policy_postprocessor_step_0_unnormalizer_processor.safetensors"
        ),
        _step("absolute_actions_processor", {"enabled": False}),
        _step("device_processor", {"device": "cpu"}),
    ]
    return {"name": "policy_preprocessor", "steps": before}, {"name": "policy_postprocessor", "steps": after}


def _statistics(feature: str, robot: RobotConfig, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Ranges between the joints' limits, -1 .. 1 where a joint has none, 0 .. 1 for grippers."""
    ranges = [_range(robot, name) for name in names]
    low, high = np.ascontiguousarray(np.array(ranges, np.float32).T)
    values = {
        "q01": low,
        "q99": high,
        "min": low,
        "max": high,
        "mean": (low + high) / 2,
        "std": (high - low) / 4,
    }
    return {f"{feature}.{name}": value for name, value in values.items()}


def _range(robot: RobotConfig, name: str) -> tuple[float, float]:
    if name in robot.gripper_joints:
        return 0.0, 1.0
    joint = robot.joints.get(name)
    if joint is None or not np.isfinite([joint.position_min, joint.position_max]).all():
        return -1.0, 1.0
    return joint.position_min, joint.position_max


def _step(name: str, config: dict[str, Any], state_file: str = "") -> dict[str, Any]:
    step = {"registry_name": name, "config": config}
    return {**step, "state_file": state_file} if state_file else step


def _write_json(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write one checkpoint. Exit code 2 if it cannot be written there."""
    parser = argparse.ArgumentParser(
        prog="make_lerobot_checkpoint", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("out", type=Path, help="new folder")
    parser.add_argument("--preset", default="libero", help="robot: a name or the path of a YAML file")
    parser.add_argument("--size", choices=("tiny", "full"), default="tiny")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    try:
        config = load_config(preset=options.preset).config
        is_full = options.size == "full"
        write_checkpoint(
            options.out,
            config.robot,
            config.model.horizon,
            is_full=is_full,
            dtype=options.dtype,
            seed=options.seed,
        )
    except OxygenError as fault:
        print(fault, file=sys.stderr)
        return 2
    num_bytes = sum(path.stat().st_size for path in options.out.iterdir())
    print(
        f"{options.out}: {num_bytes / 1e6:.1f} MB, {options.size}, {options.dtype}, preset {options.preset}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
