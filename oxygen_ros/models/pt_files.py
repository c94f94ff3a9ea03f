"""Weights in a ``.pt`` file: read with ``weights_only``, which runs no code, and memory-mapped.

For checkpoints that were never saved as safetensors. Safetensors are preferred wherever both are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.tensor_files import StoredTensor

NAMES = ("model.pt", "pytorch_model.pt")
WRAPPERS = ("state_dict", "model_state_dict", "model")
DTYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8",
    torch.bool: "BOOL",
}  # fmt: skip


def find_pt(folder: Path) -> Path | None:
    """The file with weights in ``folder``, if there is one."""
    return next((folder / name for name in NAMES if (folder / name).is_file()), None)


def read_pt(path: Path) -> dict[str, Tensor]:
    """Tensors by name, as views of the mapped file.

    Raises:
        CheckpointError: if the file is broken, holds more than tensors, or would run code.
    """
    try:
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    # A refused pickle raises an error of the pickle module, which is not imported here.
    except Exception as error:
        cause = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise _refuse(path, f"cannot be read as plain weights: {cause}") from error
    for wrapper in WRAPPERS:
        if isinstance(found, Mapping) and isinstance(found.get(wrapper), Mapping):
            found = found[wrapper]
    if not isinstance(found, Mapping) or not found:
        raise _refuse(path, f"holds a {type(found).__name__}, want tensors by name")
    others = [str(name) for name, value in found.items() if not isinstance(value, Tensor)]
    if others:
        raise _refuse(path, f"holds more than tensors: {', '.join(others[:5])}")
    return {str(name): tensor for name, tensor in found.items()}


def list_pt(path: Path) -> dict[str, StoredTensor]:
    """Names, dtypes and shapes of the tensors in ``path``.

    Raises:
        CheckpointError: as ``read_pt``, and for dtypes that are not known.
    """
    tensors = read_pt(path)
    unknown = [f"{name} ({tensor.dtype})" for name, tensor in tensors.items() if tensor.dtype not in DTYPES]
    if unknown:
        raise _refuse(path, f"holds tensors of unknown dtype: {', '.join(unknown[:5])}")
    return {
        name: StoredTensor(name, DTYPES[tensor.dtype], tuple(tensor.shape), path, offset=0)
        for name, tensor in tensors.items()
    }


def _refuse(path: Path, cause: str) -> CheckpointError:
    return CheckpointError("weights_broken", f"{path} {cause}", "save the model's state dict as safetensors")
