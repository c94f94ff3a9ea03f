"""Dtypes of a checkpoint's tensors: what can be read, and which tensors stand out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.tensor_files import StoredTensor

READABLE = ("F32", "BF16", "F16", "F64")
USUAL = ("F32", "BF16")


def check_dtypes(tensors: Mapping[str, StoredTensor]) -> tuple[str, tuple[str, ...]]:
    """Count of tensors per dtype in words, and a warning for what is unusual.

    Raises:
        CheckpointError: if a tensor has a dtype that holds no plain weights.
    """
    unreadable = [f"{name} ({item.dtype})" for name, item in tensors.items() if item.dtype not in READABLE]
    if unreadable:
        raise CheckpointError(
            "tensor_dtype",
            f"{len(unreadable)} tensors hold no plain weights: {', '.join(unreadable[:10])}",
            "give the checkpoint before quantising",
        )
    counts = Counter(item.dtype for item in tensors.values())
    summary = ", ".join(f"{count} tensors of {dtype}" for dtype, count in counts.most_common())
    odd = {name: item.dtype for name, item in tensors.items() if item.dtype not in USUAL}
    if not odd:
        return summary, ()
    shown = ", ".join(f"{name} ({dtype})" for name, dtype in list(odd.items())[:10])
    return summary, (
        f"{len(odd)} of {len(tensors)} tensors have a dtype that training does not give, as if cast "
        f"on the way: {shown}; float16 loses the range of bfloat16",
    )
