"""Copies of recorded checkpoints, whole or broken on purpose."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from lerobot_cases import LEROBOT, checkpoint_folder, tokenizer_folder
from safetensors.numpy import load_file, save_file

WEIGHTS = "model.safetensors"
PREPROCESSOR = "policy_preprocessor.json"
POSTPROCESSOR = "policy_postprocessor.json"
OPENPI_GOLDEN = LEROBOT.parent / "golden" / "pi05" / "openpi_seed0"


def copy_case(case: str, target: Path) -> Path:
    """A writable copy of a recorded checkpoint."""
    shutil.copytree(checkpoint_folder(case), target, dirs_exist_ok=True)
    return target


def copy_openpi(target: Path, state_dim: int = 8, action_dim: int = 7, asset_id: str = "robot") -> Path:
    """An openpi directory: recorded weights, statistics of a robot, a tokenizer."""
    target.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", WEIGHTS):
        shutil.copyfile(OPENPI_GOLDEN / name, target / name)
    shutil.copytree(tokenizer_folder("pi05_libero_seed0"), target / "tokenizer", dirs_exist_ok=True)
    write_openpi_statistics(target, state_dim, action_dim, asset_id)
    return target


def write_openpi_statistics(folder: Path, state_dim: int, action_dim: int, asset_id: str = "robot") -> Path:
    path = folder / "assets" / asset_id / "norm_stats.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    groups = {
        name: {
            "mean": [0.1] * dims, "std": [0.5] * dims, "q01": [-1.0] * dims, "q99": [2.0] * dims,
        }
        for name, dims in (("state", state_dim), ("actions", action_dim))
    }  # fmt: skip
    path.write_text(json.dumps({"norm_stats": groups}))
    return path


def edit_json(path: Path, change: Callable[[Any], None]) -> None:
    """Change a JSON file in place."""
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def step_of(document: Any, name: str) -> Any:
    """One step of a processor JSON."""
    return next(step for step in document["steps"] if step["registry_name"] == name)


def statistics_file(folder: Path, which: str = "pre") -> Path:
    (path,) = folder.glob(f"policy_{which}processor_step_*normalizer_processor.safetensors")
    return path


def edit_tensors(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a safetensors file of float32 or int tensors in place."""
    tensors = load_file(path)
    change(tensors)
    save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, path)


def rename_tensors(path: Path, change: Callable[[str], str | None]) -> None:
    """Rename tensors of a safetensors file, or drop those that get no name; the data is not touched."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    header.pop("__metadata__", None)
    data = raw[8 + length :]
    out, chunks, position = {}, [], 0
    for name, entry in header.items():
        new = change(name)
        if new is None:
            continue
        begin, end = entry["data_offsets"]
        out[new] = {**entry, "data_offsets": [position, position + end - begin]}
        chunks.append(data[begin:end])
        position += end - begin
    head = json.dumps(out).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + b"".join(chunks))
