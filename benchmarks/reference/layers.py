"""Layers of the reference's data path: eager attention with repeated KV heads, norms, rotation, vision.

Shapes: B batch, T tokens, H query heads, K KV heads, N keys, D head size, W width.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.reference.weights import GemmaLayer, Pair, Vision
from oxygen_ros.models.pi05.config import GemmaSize, VisionSize

MASKED = -2.3819763e38
EPS = 1e-6


def encode_image(weights: Vision, size: VisionSize, image: Tensor) -> Tensor:
    """Tokens [B, T, W] of one camera's pictures [B, 3, S, S]."""
    weight, bias = weights.patch
    x = F.conv2d(image, weight, bias, stride=size.patch_size).flatten(2).transpose(1, 2)
    x = (x + weights.positions).to(weights.norm[0].dtype)
    for layer in weights.layers:
        normed = F.layer_norm(x, (size.width,), *layer.norm1, eps=size.eps)
        q, k, v = (
            F.linear(normed, *pair).unflatten(-1, (size.num_heads, -1)).transpose(1, 2)
            for pair in (layer.q, layer.k, layer.v)
        )
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + F.linear(attended, *layer.out)
        hidden = F.linear(F.layer_norm(x, (size.width,), *layer.norm2, eps=size.eps), *layer.fc1)
        x = x + F.linear(F.gelu(hidden, approximate="tanh"), *layer.fc2)
    return F.linear(F.layer_norm(x, (size.width,), *weights.norm, eps=size.eps), *weights.projector)


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """Gemma's norm, variance in float32."""
    x32 = x.float()
    return (x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + EPS) * (1.0 + weight)).to(x.dtype)


def adaptive_norm(x: Tensor, dense: Pair, cond: Tensor) -> tuple[Tensor, Tensor]:
    """The expert's norm and its gate; the modulation is computed from ``cond`` [B, W] right here."""
    scale, shift, gate = F.linear(cond, *dense)[:, None].chunk(3, dim=-1)
    x32 = x.float()
    normed = x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + EPS)
    return (normed * (1.0 + scale) + shift).to(x.dtype), gate.to(x.dtype)


def rotation(positions: Tensor, head_dim: int, theta: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosines and sines [B, 1, T, D] of ``positions`` [B, T], made anew in each forward."""
    exponents = torch.arange(0, head_dim, 2, device=positions.device).float() / head_dim
    angles = positions[..., None].float() / theta**exponents
    angles = torch.cat([angles, angles], dim=-1)[:, None]
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Half-split rotation of x [B, H, T, D]."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def project(layer: GemmaLayer, size: GemmaSize, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
    """Rotated q [B, H, T, D] and k [B, K, T, D], and v."""
    q, k, v = (
        F.linear(x, weight).unflatten(-1, (-1, size.head_dim)).transpose(1, 2)
        for weight in (layer.q, layer.k, layer.v)
    )
    return rotate(q, cos, sin), rotate(k, cos, sin), v


def eager_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Attention [B, T, H * D] with KV heads repeated, an additive float32 mask and a float32 softmax."""
    repeats = q.shape[1] // k.shape[1]
    k = k[:, :, None].expand(-1, -1, repeats, -1, -1).reshape(q.shape[0], q.shape[1], *k.shape[2:])
    v = v[:, :, None].expand(-1, -1, repeats, -1, -1).reshape(q.shape[0], q.shape[1], *v.shape[2:])
    scores = torch.matmul(q, k.transpose(2, 3)) * q.shape[-1] ** -0.5
    probabilities = torch.softmax((scores + mask).float(), dim=-1).to(q.dtype)
    return torch.matmul(probabilities, v).transpose(1, 2).flatten(2)


def gated_mlp(layer: GemmaLayer, x: Tensor) -> Tensor:
    """Gated tanh-GELU MLP."""
    return F.linear(F.gelu(F.linear(x, layer.gate), approximate="tanh") * F.linear(x, layer.up), layer.down)


def additive(visible: Tensor) -> Tensor:
    """Mask [B, 1, T, N] of ``visible`` bool [B, T, N]: 0 or the lowest number."""
    zero = torch.zeros((), device=visible.device)
    return torch.where(visible[:, None], zero, torch.full_like(zero, MASKED))
