"""Notes what torch operators allocate and what they copy out of given tensors while they run."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

COPIES = ("clone", "copy", "cat", "index", "gather", "contiguous", "repeat", "stack")


class OperatorWatch(TorchDispatchMode):
    """Bytes of the largest new storage, and of the largest copy out of ``watched``."""

    def __init__(self, watched: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self._watched = storages(watched)
        self.num_calls = 0
        self.largest_new_bytes = 0
        self.largest_copy_bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.num_calls += 1
        sources = storages(tree_leaves((args, kwargs)))
        for tensor in tree_leaves(result):
            if not isinstance(tensor, torch.Tensor) or storages([tensor]) <= sources:
                continue
            self.largest_new_bytes = max(self.largest_new_bytes, tensor.untyped_storage().nbytes())
            if sources & self._watched and any(word in str(func) for word in COPIES):
                self.largest_copy_bytes = max(self.largest_copy_bytes, tensor.nbytes)
        return result


def storages(leaves):
    return {leaf.untyped_storage().data_ptr() for leaf in leaves if isinstance(leaf, torch.Tensor)}
