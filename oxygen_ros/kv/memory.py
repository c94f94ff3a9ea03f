"""The KV memory itself: tensors of fixed size, made once, and views of them.

It knows shapes only: no models, no requests, no accounts of who uses what. Runners own one.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import torch
from torch import Tensor

from oxygen_ros.kv.layout import KVLayout


@dataclass(frozen=True)
class PrefixKV:
    """Keys and values of one prefix slot as views, [layers, kv_heads, prefix_capacity, head_dim]."""

    k: Tensor
    v: Tensor


class KVMemory:
    """Keys and values of all prefixes and text rows. The tensors are never replaced or resized.

    Attributes:
        prefix_k, prefix_v: [layers, num_prefixes, kv_heads, prefix_capacity, head_dim].
        row_k, row_v: [layers, num_rows, kv_heads, row_capacity, head_dim].
    """

    def __init__(self, layout: KVLayout, device: torch.device) -> None:
        """Allocate ``layout.total_bytes``, zeroed: memory behind the valid tokens must be finite."""
        self.layout = layout
        dtype: torch.dtype = getattr(torch, layout.dtype)
        prefix_shape = self._shape(layout.num_prefixes, layout.prefix_capacity)
        row_shape = self._shape(layout.num_rows, layout.row_capacity)
        self.prefix_k = torch.zeros(prefix_shape, dtype=dtype, device=device)
        self.prefix_v = torch.zeros(prefix_shape, dtype=dtype, device=device)
        self.row_k = torch.zeros(row_shape, dtype=dtype, device=device)
        self.row_v = torch.zeros(row_shape, dtype=dtype, device=device)

    def _shape(self, count: int, capacity: int) -> tuple[int, ...]:
        layout = self.layout
        return (layout.num_layers, count, layout.num_kv_heads, capacity, layout.head_dim)

    @property
    def num_bytes(self) -> int:
        """Bytes held, equal to ``layout.total_bytes``."""
        return sum(t.numel() * t.element_size() for t in self._tensors())

    def _tensors(self) -> tuple[Tensor, ...]:
        return (self.prefix_k, self.prefix_v, self.row_k, self.row_v)

    def prefix(self, slot: int) -> PrefixKV:
        """Views of one prefix slot."""
        return PrefixKV(self.prefix_k[:, slot], self.prefix_v[:, slot])

    def clear_prefix(self, slot: int) -> None:
        """Zero one prefix slot: values that are not finite must not stay behind valid tokens."""
        self.prefix_k[:, slot].zero_()
        self.prefix_v[:, slot].zero_()

    def clear_row(self, row: int) -> None:
        """Zero one text row, for the same reason as ``clear_prefix``."""
        self.row_k[:, row].zero_()
        self.row_v[:, row].zero_()

    def prefix_checksums(self, slot: int, num_tokens: int) -> tuple[int, ...]:
        """One checksum per layer over the bits of the first ``num_tokens`` keys and values. Blocks."""
        kv = self.prefix(slot)
        return tuple(
            zlib.crc32(_bits(kv.v[layer, :, :num_tokens]), zlib.crc32(_bits(kv.k[layer, :, :num_tokens])))
            for layer in range(self.layout.num_layers)
        )


def _bits(tensor: Tensor) -> bytes:
    return tensor.contiguous().view(torch.uint8).cpu().numpy().tobytes()
