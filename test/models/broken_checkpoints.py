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


def _drop_tensor(folder: Path) -> None:
    rename_tensors(folder / WEIGHTS, lambda name: None if name.endswith("action_out_proj.bias") else name)


def _add_tensor(folder: Path) -> None:
    rename_tensors(
        folder / WEIGHTS, lambda name: "value_head.bias" if name.endswith("action_out_proj.bias") else name
    )


def _reshape_tensor(folder: Path) -> None:
    raw = (folder / WEIGHTS).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    name = next(name for name in header if name.endswith("layers.1.self_attn.o_proj.weight"))
    header[name]["shape"] = header[name]["shape"][::-1]
    head = json.dumps(header).encode()
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(head)) + head + raw[8 + length :])


def _reverse_statistics(folder: Path) -> None:
    for which in ("pre", "post"):
        edit_tensors(statistics_file(folder, which), _reverse)


def _reverse(tensors: dict[str, Any]) -> None:
    tensors["action.q01"], tensors["action.q99"] = tensors["action.q99"] + 1, tensors["action.q01"]
    tensors["action.std"] = -tensors["action.std"]


def _drop_feature(folder: Path) -> None:
    def drop(tensors: dict[str, Any]) -> None:
        for name in [name for name in tensors if name.startswith("observation.state.")]:
            del tensors[name]

    edit_tensors(statistics_file(folder), drop)


def _make_ambiguous(folder: Path) -> None:
    edit_json(folder / "config.json", lambda config: config.pop("use_relative_actions"))
    for name, step in ((PREPROCESSOR, "relative_actions"), (POSTPROCESSOR, "absolute_actions")):
        edit_json(
            folder / name,
            lambda doc, step=step: doc.update(
                steps=[s for s in doc["steps"] if s["registry_name"] != f"{step}_processor"]
            ),
        )


def _truncate(folder: Path) -> None:
    raw = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(raw[: len(raw) * 2 // 3])


def _foreign_names(folder: Path) -> None:
    rename_tensors(
        folder / WEIGHTS,
        lambda name: name.replace("paligemma.model.language_model.", "paligemma.language_model.model."),
    )


def _set(key: str, value: Any) -> Callable[[Path], None]:
    return lambda folder: edit_json(folder / "config.json", lambda config: config.update({key: value}))


BREAKS: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "truncated weights": (_truncate, "weights_broken", "cut off"),
    "no weights": (lambda folder: (folder / WEIGHTS).unlink(), "checkpoint_unknown", WEIGHTS),
    "Git LFS pointer": (
        lambda folder: (folder / WEIGHTS).write_text("version https://git-lfs.github.com/spec/v1\n"),
        "weights_broken",
        "Git LFS",
    ),
    "missing tensor": (_drop_tensor, "tensor_names", "action_out_proj.bias"),
    "unexpected tensor": (_add_tensor, "tensor_names", "value_head.bias"),
    "misshapen tensor": (_reshape_tensor, "tensor_names", "o_proj.weight is ["),
    "foreign tensor names": (_foreign_names, "tensor_layout", "paligemma.language_model.model."),
    "wrong JSON type": (_set("chunk_size", "fifty"), "json_value", 'chunk_size is "fifty"'),
    "broken JSON": (lambda folder: (folder / "config.json").write_text("{"), "json_broken", "config.json"),
    "another policy": (_set("type", "smolvla"), "policy_type", "smolvla"),
    "active unknown field": (_set("use_depth", True), "unknown_field", "use_depth = True"),
    "frame memory": (_set("use_visual_memory", True), "checkpoint_memory", "use_visual_memory"),
    "no processor JSON": (lambda folder: (folder / PREPROCESSOR).unlink(), "processor_missing", PREPROCESSOR),
    "no statistics": (
        lambda folder: statistics_file(folder).unlink(),
        "statistics_missing",
        "normalizer_processor",
    ),
    "reversed statistics": (_reverse_statistics, "statistics_reversed", "'action' dimension 0"),
    "feature without statistics": (_drop_feature, "statistics_feature", "'observation.state'"),
    "adapter": (
        lambda folder: (folder / "adapter_config.json").write_text("{}"),
        "checkpoint_adapter",
        "adapter_config.json",
    ),
    "LeRobot 0.4 or 0.5.0": (_make_ambiguous, "dialect_ambiguous", "0.5.0"),
}
"""Ways to break a LeRobot checkpoint: what breaks it, the code of the refusal, and a word it says."""
