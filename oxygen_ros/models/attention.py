"""Attention over keys that lie in preallocated memory, with grouped heads. Pure functions.

Heads that share a KV head are folded into the query axis, so keys and values are read as they lie and
never repeated. Text attends to two stretches of memory, the leased prefix and its own row; each gives
an output and the log of its softmax sum, and ``merge`` joins the two into the softmax over both.
Shapes: B batch, K KV heads, M queries (tokens x heads per KV head), N keys, D head size.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def fold_heads(q: Tensor, num_kv_heads: int) -> Tensor:
    """Queries [T, H, D] as [K, T * H / K, D]: the heads of one KV head become further queries."""
    num_tokens, num_heads, head_dim = q.shape
    grouped = q.view(num_tokens, num_kv_heads, num_heads // num_kv_heads, head_dim)
    return grouped.transpose(0, 1).reshape(num_kv_heads, -1, head_dim)


def unfold_heads(out: Tensor, num_tokens: int) -> Tensor:
    """Undo ``fold_heads`` and join the heads: [K, M, D] as [T, H * D]."""
    num_kv_heads, _, head_dim = out.shape
    grouped = out.view(num_kv_heads, num_tokens, -1, head_dim)
    return grouped.transpose(0, 1).reshape(num_tokens, -1)


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
    """Attention of ``q`` [K, M, D] to ``k``, ``v`` [K, N, D], scaled by D^-0.5.

    Args:
        bias: added to the scores, [M, N], in the dtype of ``q``; None lets every query see every key.
    """
    mask = None if bias is None else bias[None]
    return F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask)[0]


def attend_with_sum(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Attention to one of several stretches of keys.

    Args:
        q: [B, K, M, D].
        k, v: [B, K, N, D], views of the KV memory.
        bias: added to the scores, [B, 1, M or 1, N], in the dtype of ``q``.

    Returns:
        The output [B, K, M, D] and the log of the softmax sum, float32 [B, K, M].

    On the CPU one kernel does it all: two to three times faster than products for a decode batch
    (``python -m benchmarks.decode``), and the only fast way in bfloat16 without instructions for it.
    """
    if q.device.type == "cpu":
        mask = bias.expand(-1, -1, q.shape[2], -1)
        out, log_sum = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, attn_mask=mask)
        return out, log_sum
    return attend_by_products(q, k, v, bias)


def attend_by_products(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """``attend_with_sum`` by plain products, on any device. The oracle of the kernels."""
    scores = torch.matmul(q * q.shape[-1] ** -0.5, k.transpose(-1, -2)).float().add_(bias)
    log_sum = torch.logsumexp(scores, dim=-1)
    return torch.matmul(torch.softmax(scores, dim=-1).to(v.dtype), v), log_sum


def merge(out_a: Tensor, log_sum_a: Tensor, out_b: Tensor, log_sum_b: Tensor) -> Tensor:
    """Join attention over two stretches [..., D], weighted by their softmax sums [...]."""
    weight_b = torch.sigmoid(log_sum_b - log_sum_a)[..., None]
    return torch.lerp(out_a.float(), out_b.float(), weight_b).to(out_a.dtype)
