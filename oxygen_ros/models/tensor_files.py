"""What tensors lie in a checkpoint's files, read from their headers alone: no weights, no torch.

Single and sharded safetensors. Every fault of a file is named; nothing is loaded here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.json_file import read_json

DTYPE_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}  # fmt: skip
MAX_HEADER_BYTES = 100_000_000
LFS_MARK = b"version https://git-lfs"

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"


@dataclass(frozen=True)
class StoredTensor:
    """One tensor in a file. ``offset`` counts from the start of the file, in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    path: Path
    offset: int

    @property
    def num_elements(self) -> int:
        """Numbers in it."""
        return math.prod(self.shape)

    @property
    def num_bytes(self) -> int:
        """Bytes it takes in the file."""
        return self.num_elements * DTYPE_BYTES[self.dtype]


def list_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Tensors by name of the safetensors file or files in ``folder``.

    Raises:
        CheckpointError: if there is no such file, one is broken or truncated, or the index of a sharded
            checkpoint and its files disagree.
    """
    if (folder / INDEX).is_file():
        return _list_shards(folder)
    if (folder / SINGLE).is_file():
        return read_header(folder / SINGLE)
    raise CheckpointError(
        "weights_missing",
        f"no weights in {folder}: looked for {SINGLE} and {INDEX}",
        "copy the weights there; without them the model would be random",
    )


def read_header(path: Path) -> dict[str, StoredTensor]:
    """Tensors by name of one safetensors file.

    Raises:
        CheckpointError: if the file is no safetensors, or shorter than its header says.
    """
    size = path.stat().st_size
    with path.open("rb") as stream:
        start = stream.read(8)
        if len(start) == 8 and (start + stream.read(len(LFS_MARK) - 8)) == LFS_MARK:
            raise _refuse(path, "it is a Git LFS pointer, not the weights", "run: git lfs pull")
        length = int.from_bytes(start, "little")
        if len(start) < 8 or not 2 <= length <= min(MAX_HEADER_BYTES, size - 8):
            raise _refuse(path, f"{size} bytes, and its first bytes are no safetensors header")
        stream.seek(8)
        raw = stream.read(length)
    try:
        header = json.loads(raw)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise _refuse(path, f"its header is no JSON: {error}") from error
    if not isinstance(header, dict):
        raise _refuse(path, "its header is no JSON object")
    tensors = {
        name: _tensor(path, name, entry, 8 + length)
        for name, entry in header.items()
        if name != "__metadata__"
    }
    _check_layout(path, list(tensors.values()), 8 + length, size)
    return tensors


def _tensor(path: Path, name: str, entry: Any, data_start: int) -> StoredTensor:
    try:
        dtype, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    except (TypeError, KeyError, ValueError) as error:
        raise _refuse(path, f"its header entry of {name} is malformed") from error
    numbers = (*shape, begin, end)
    if dtype not in DTYPE_BYTES or not all(type(number) is int and number >= 0 for number in numbers):
        raise _refuse(path, f"its header entry of {name} is malformed: dtype {dtype!r}, shape {list(shape)}")
    tensor = StoredTensor(name, dtype, shape, path, data_start + begin)
    if tensor.num_bytes != end - begin:
        raise _refuse(
            path, f"{name} takes {end - begin} bytes, its shape {list(shape)} of {dtype} {tensor.num_bytes}"
        )
    return tensor


def _check_layout(path: Path, tensors: list[StoredTensor], data_start: int, size: int) -> None:
    """Refuse files with overlapping tensors, holes, or less data than the header says."""
    end, last = data_start, "the header"
    for tensor in sorted(tensors, key=lambda item: (item.offset, item.num_bytes)):
        if tensor.offset + tensor.num_bytes > size:
            needed = max(item.offset + item.num_bytes for item in tensors)
            raise _refuse(path, f"it is cut off: {size} bytes, {needed} needed (first lost: {tensor.name})")
        if tensor.offset != end:
            raise _refuse(path, f"{tensor.name} does not follow {last}")
        end, last = tensor.offset + tensor.num_bytes, tensor.name
    if end != size:
        raise _refuse(path, f"{size - end} bytes after the last tensor")


def _list_shards(folder: Path) -> dict[str, StoredTensor]:
    index = read_json(folder / INDEX)
    weight_map = index.child("weight_map")
    files = {name: weight_map.text(name) for name in weight_map.data}
    shards: dict[str, Mapping[str, StoredTensor]] = {}
    for file in sorted(set(files.values())):
        path = folder / file
        if path.parent != folder or not path.is_file():
            raise CheckpointError(
                "shard_missing",
                f"{INDEX} names {file}, which is not in {folder}",
                "copy all files of the checkpoint",
            )
        shards[file] = read_header(path)
    if not files:
        raise CheckpointError(
            "shard_index", f"{INDEX} names no tensors", "copy all files of the checkpoint again"
        )
    lost = [name for name, file in files.items() if name not in shards[file]]
    unnamed = [name for shard in shards.values() for name in shard if name not in files]
    if lost or unnamed:
        raise CheckpointError(
            "shard_index",
            f"{INDEX} and the files disagree about {len(lost) + len(unnamed)} tensor(s): "
            + ", ".join(sorted(lost + unnamed)[:10]),
            "the files are of different saves: copy all of them again",
        )
    return {name: shards[file][name] for name, file in files.items()}


def _refuse(path: Path, cause: str, suggestion: str = "") -> CheckpointError:
    return CheckpointError(
        "weights_broken",
        f"{path} cannot be used: {cause}",
        suggestion or "copy the file again; compare its size and sha256 with the original",
    )
