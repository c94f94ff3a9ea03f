"""Attention of new text tokens to their leased prefixes and to their own rows. Pure functions.

Keys and values are read as they lie: only queries, outputs and softmax sums, all as small as the batch
of tokens, are laid out on grids and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from oxygen_ros.kv.memory import KVMemory
from oxygen_ros.models.attention import attend_with_sum, merge
from oxygen_ros.models.text_batch import Grid, TextBatch, TextGroup


@dataclass(frozen=True)
class GroupViews:
    """What one group reads of the memory, by layer: views [lanes, K, length, D] of slots and of rows."""

    prefix_k: tuple[Tensor, ...]
    prefix_v: tuple[Tensor, ...]
    row_k: tuple[Tensor, ...]
    row_v: tuple[Tensor, ...]


def memory_views(batch: TextBatch, memory: KVMemory) -> list[GroupViews]:
    """Views for every group of ``batch``, made once per step."""
    return [
        GroupViews(
            _view(memory.prefix_k, group.prefix),
            _view(memory.prefix_v, group.prefix),
            _view(memory.row_k, group.suffix),
            _view(memory.row_v, group.suffix),
        )
        for group in batch.groups
    ]


def _view(pool: Tensor, grid: Grid) -> tuple[Tensor, ...]:
    return pool[:, grid.start : grid.end, :, : grid.length].unbind(0)


def attend_text(q: Tensor, layer: int, batch: TextBatch, views: Sequence[GroupViews]) -> Tensor:
    """Attention of q [N, H, D] in ``layer``, [N, H * D]; the new tokens' keys are in their rows already."""
    outs = [
        _attend_group(q[group.start : group.end], layer, group, view)
        for group, view in zip(batch.groups, views, strict=True)
    ]
    return outs[0] if len(outs) == 1 else torch.cat(outs)


def _attend_group(q: Tensor, layer: int, group: TextGroup, views: GroupViews) -> Tensor:
    """Softmax over [prefix keys | own keys] for the tokens of one group."""
    num_kv_heads = views.row_k[layer].shape[1]
    folded = q.view(q.shape[0], num_kv_heads, -1, q.shape[-1])  # [n, K, heads per KV head, D]
    on_prefix = _attend_grid(
        folded, group.prefix, views.prefix_k[layer], views.prefix_v[layer], group.prefix_bias
    )
    on_row = _attend_grid(folded, group.suffix, views.row_k[layer], views.row_v[layer], group.suffix_bias)
    return merge(*on_prefix, *on_row).flatten(1)


def _attend_grid(q: Tensor, grid: Grid, k: Tensor, v: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Output [n, K, heads, D] and log softmax sums [n, K, heads] of q [n, K, heads, D] over one grid."""
    _, num_kv_heads, heads, head_dim = q.shape
    shape = (grid.num_lanes, grid.depth, num_kv_heads, heads)
    laid_out = q[grid.cells].view(*shape, head_dim).transpose(1, 2).flatten(2, 3)  # [lanes, K, M, D]
    out, log_sum = attend_with_sum(laid_out, k, v, bias)
    out = out.view(grid.num_lanes, num_kv_heads, grid.depth, heads, head_dim).transpose(1, 2).flatten(0, 1)
    log_sum = log_sum.view(grid.num_lanes, num_kv_heads, grid.depth, heads).transpose(1, 2).flatten(0, 1)
    return out[grid.cell_of], log_sum[grid.cell_of]
