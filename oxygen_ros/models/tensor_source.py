"""Where weights come from: named tensors whose shapes are known before any of them is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from safetensors import SafetensorError, safe_open
from torch import Tensor

from oxygen_ros.errors import CheckpointError

T = TypeVar("T")


class TensorSource(Protocol):
    """Named tensors, read one at a time."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every tensor by name."""
        ...

    def load(self, name: str) -> Tensor:
        """One tensor on the CPU (or where it lies), in its stored dtype."""
        ...


class DictSource:
    """A state dict that is in memory already."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = without_prefix(tensors)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every tensor by name."""
        return {name: tuple(tensor.shape) for name, tensor in self._tensors.items()}

    def load(self, name: str) -> Tensor:
        """One tensor."""
        return self._tensors[name]


class SafetensorsSource:
    """One or more safetensors files; tensors are read when asked for."""

    def __init__(self, *paths: Path) -> None:
        """Open ``paths`` and read their headers.

        Raises:
            CheckpointError: if a file is missing or is not a safetensors file.
        """
        self._files = {}
        stored = {}
        for path in paths:
            try:
                file = safe_open(path, framework="pt", device="cpu").__enter__()
            except (OSError, SafetensorError) as fault:
                raise CheckpointError("weights_file", f"cannot read {path}: {fault}") from None
            for name in file.keys():  # noqa: SIM118 - not a dict
                self._files[name] = file
                stored[name] = tuple(file.get_slice(name).get_shape())
        self._stored_name = {plain: name for name, plain in zip(stored, without_prefix(stored), strict=True)}
        self._shapes = without_prefix(stored)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every tensor by name."""
        return dict(self._shapes)

    def load(self, name: str) -> Tensor:
        """One tensor, in its stored dtype."""
        stored_name = self._stored_name[name]
        tensor: Tensor = self._files[stored_name].get_tensor(stored_name)
        return tensor


def without_prefix(by_name: Mapping[str, T], prefix: str = "model.") -> dict[str, T]:
    """The same entries without ``prefix``, if every name carries it; else unchanged."""
    if by_name and all(name.startswith(prefix) for name in by_name):
        return {name.removeprefix(prefix): value for name, value in by_name.items()}
    return dict(by_name)
