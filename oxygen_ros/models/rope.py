"""Rotary position embedding in half-split form. Tables are float32, made once; pure functions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class RopeTable:
    """Cosines and signed sines by position, [num_positions, 1, head_dim]: the middle is for the heads.

    The sine of the first half is negated, so that rotating is ``x * cos + roll(x) * sin``.
    """

    cos: Tensor
    sin: Tensor

    def rows(self, start: int, end: int) -> RopeTable:
        """Positions ``start`` .. ``end - 1`` as a view."""
        return RopeTable(self.cos[start:end], self.sin[start:end])

    def at(self, positions: Tensor) -> RopeTable:
        """Rows of ``positions`` int64 [N]."""
        return RopeTable(self.cos[positions], self.sin[positions])


def make_rope_table(
    num_positions: int,
    head_dim: int,
    theta: float,
    dtype: torch.dtype,
    device: torch.device,
    frequency_dtype: torch.dtype = torch.float32,
) -> RopeTable:
    """Table for positions 0 .. ``num_positions - 1``, computed in float32 and cast to ``dtype``.

    ``frequency_dtype`` is what the frequencies are rounded to first.
    """
    exponents = torch.arange(0, head_dim, 2, dtype=torch.int64).float() / head_dim
    frequencies = (1.0 / theta**exponents).to(frequency_dtype).float()
    angles = torch.outer(torch.arange(num_positions).float(), frequencies)
    cos, sin = angles.cos(), angles.sin()
    return RopeTable(
        torch.cat([cos, cos], dim=1)[:, None].to(device, dtype),
        torch.cat([-sin, sin], dim=1)[:, None].to(device, dtype),
    )


def apply_rope(x: Tensor, rope: RopeTable) -> Tensor:
    """Rotate ``x`` [T, H, D] by the table's T rows."""
    rolled = x.roll(x.shape[-1] // 2, dims=-1)
    return torch.addcmul(x * rope.cos, rolled, rope.sin)
