"""Weights read from a checkpoint's files tensor by tensor, through small memory-mapped windows.

A tensor that was read is owned memory: nothing keeps a file mapped, so a file that is replaced later
changes nothing, and peak memory is what was read so far and one window.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.pt_files import read_pt
from oxygen_ros.models.tensor_files import StoredTensor

TORCH_DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
}  # fmt: skip
WINDOW_BYTES = 32 * 1024 * 1024


class FileSource:
    """Implements ``models.tensor_source.TensorSource``."""

    def __init__(self, tensors: Mapping[str, StoredTensor]) -> None:
        self._tensors = dict(tensors)
        self._opened: dict[Path, dict[str, Tensor]] = {}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every tensor by name."""
        return {name: tensor.shape for name, tensor in self._tensors.items()}

    def load(self, name: str) -> Tensor:
        """One tensor, in its stored dtype, owned by the caller.

        Raises:
            CheckpointError: if the file is shorter than when it was opened.
        """
        stored = self._tensors[name]
        if stored.path.suffix == ".pt":
            return self._pt(stored.path)[stored.name].clone()
        out = torch.empty(stored.shape, dtype=TORCH_DTYPES[stored.dtype])
        target = out.view(-1).view(torch.uint8).numpy() if out.numel() else np.empty(0, np.uint8)
        for start, window in _windows(stored):
            target[start : start + len(window)] = np.frombuffer(window, np.uint8)
        return out

    def _pt(self, path: Path) -> dict[str, Tensor]:
        if path not in self._opened:
            self._opened[path] = read_pt(path)
        return self._opened[path]

    def same(self, first: str, second: str) -> bool:
        """Whether two tensors of equal dtype and shape hold the same bytes."""
        a, b = self._tensors[first], self._tensors[second]
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return False
        if a.path.suffix == ".pt":
            return torch.equal(self.load(first), self.load(second))
        pairs = zip(_windows(a), _windows(b), strict=True)
        return all(bytes(ours) == bytes(theirs) for (_, ours), (_, theirs) in pairs)


def _windows(stored: StoredTensor) -> Iterator[tuple[int, memoryview]]:
    """Start within the tensor and bytes of each window; a window is valid until the next one."""
    with stored.path.open("rb") as stream:
        size = stream.seek(0, 2)
        if size < stored.offset + stored.num_bytes:
            raise CheckpointError(
                "weights_broken",
                f"{stored.path} became shorter while {stored.name} was read: {size} bytes",
                "do not replace a checkpoint while it is loaded",
            )
        start = 0
        while start < stored.num_bytes:
            length = min(WINDOW_BYTES, stored.num_bytes - start)
            begin = stored.offset + start
            aligned = begin - begin % mmap.ALLOCATIONGRANULARITY
            with mmap.mmap(
                stream.fileno(), begin - aligned + length, access=mmap.ACCESS_READ, offset=aligned
            ) as window:
                view = memoryview(window)[begin - aligned :]
                try:
                    yield start, view
                finally:
                    view.release()
            start += length
