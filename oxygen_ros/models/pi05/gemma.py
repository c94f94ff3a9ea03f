"""What a Gemma layer does around its attention, shared by the backbone and the action experts."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from oxygen_ros.models.pi05.config import GemmaSize
from oxygen_ros.models.pi05.weights import GemmaLayer
from oxygen_ros.models.rope import RopeTable, apply_rope


def project_qkv(
    layer: GemmaLayer, size: GemmaSize, x: Tensor, rope: RopeTable
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries [T, H, D] and keys [T, K, D], both rotated, and values [T, K, D] of ``x`` [T, W]."""
    parts = [projection(x) for projection in layer.qkv]
    heads = (parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)).view(x.shape[0], -1, size.head_dim)
    rotated = apply_rope(heads[:, : size.num_heads + size.num_kv_heads], rope)
    q, k = rotated.split([size.num_heads, size.num_kv_heads], dim=1)
    return q, k, heads[:, size.num_heads + size.num_kv_heads :]


def project_last_query(layer: GemmaLayer, size: GemmaSize, x: Tensor, rope: RopeTable) -> Tensor:
    """Queries [T, H, D] of the last layer alone."""
    return apply_rope(layer.qkv[0](x).view(x.shape[0], size.num_heads, size.head_dim), rope)


def project_last_kv(layer: GemmaLayer, size: GemmaSize, x: Tensor, rope: RopeTable) -> tuple[Tensor, Tensor]:
    """Keys and values [T, K, D] of the last layer alone."""
    k, v = layer.qkv[1](x).view(x.shape[0], 2, size.num_kv_heads, size.head_dim).unbind(1)
    return apply_rope(k, rope), v


def gated_mlp(layer: GemmaLayer, x: Tensor) -> Tensor:
    """Gated tanh-GELU MLP."""
    gate, up = layer.gate_up(x).chunk(2, dim=-1)
    return layer.down(F.gelu(gate, approximate="tanh") * up)
