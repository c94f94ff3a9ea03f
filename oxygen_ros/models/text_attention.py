"""Attention of new text tokens to their leased prefixes and to their own rows. Pure functions.

Keys and values are read as they lie: only queries, outputs and softmax sums, all as small as the batch
of tokens, are laid out on grids and back.
"""

from __future__ import annotations

import torch
from torch import Tensor

from oxygen_ros.kv.memory import KVMemory
from oxygen_ros.models.attention import attend_with_sum, merge
from oxygen_ros.models.text_batch import Grid, TextBatch, TextGroup


def attend_text(q: Tensor, layer: int, batch: TextBatch, memory: KVMemory) -> Tensor:
    """Attention of q [N, H, D] in ``layer``, [N, H * D]; the new tokens' keys are in their rows already."""
    outs = [_attend_group(q[group.start : group.end], layer, group, memory) for group in batch.groups]
    return outs[0] if len(outs) == 1 else torch.cat(outs)


def _attend_group(q: Tensor, layer: int, group: TextGroup, memory: KVMemory) -> Tensor:
    """Softmax over [prefix keys | own keys] for the tokens of one group."""
    prefix, suffix = group.prefix, group.suffix
    num_kv_heads = memory.layout.num_kv_heads
    folded = q.view(q.shape[0], num_kv_heads, -1, q.shape[-1])  # [n, K, heads per KV head, D]
    prefix_kv = _view(memory.prefix_k[layer], prefix), _view(memory.prefix_v[layer], prefix)
    suffix_kv = _view(memory.row_k[layer], suffix), _view(memory.row_v[layer], suffix)
    prefix_out = _attend_grid(folded, prefix, *prefix_kv, group.prefix_bias)
    suffix_out = _attend_grid(folded, suffix, *suffix_kv, group.suffix_bias)
    return merge(*prefix_out, *suffix_out).flatten(1)


def _view(pool: Tensor, grid: Grid) -> Tensor:
    """The slots or rows and the keys that a grid reads, [lanes, K, length, D]; no copy."""
    return pool[grid.start : grid.end, :, : grid.length]


def _attend_grid(q: Tensor, grid: Grid, k: Tensor, v: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Output [n, K, heads, D] and log softmax sums [n, K, heads] of q [n, K, heads, D] over one grid."""
    _, num_kv_heads, heads, head_dim = q.shape
    shape = (grid.num_lanes, grid.depth, num_kv_heads, heads)
    laid_out = q[grid.cells].view(*shape, head_dim).transpose(1, 2).flatten(2, 3)  # [lanes, K, M, D]
    out, log_sum = attend_with_sum(laid_out, k, v, bias)
    out = out.view(grid.num_lanes, num_kv_heads, grid.depth, heads, head_dim).transpose(1, 2).flatten(0, 1)
    log_sum = log_sum.view(grid.num_lanes, num_kv_heads, grid.depth, heads).transpose(1, 2).flatten(0, 1)
    return out[grid.cell_of], log_sum[grid.cell_of]
