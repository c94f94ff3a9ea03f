"""A differentiable pi0.5 whose state dict has openpi's names.

It is written for training: whole batches of equal prefix length, several flow samples and texts per prefix.
The product never runs it; a test holds the product's inference and this module to the same numbers.

Shapes: B observations, P prefix tokens, F flow samples per observation, H horizon, R texts of L tokens.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from oxygen_ros.training.dims import Dims

KeysValues = tuple[Tensor, Tensor]


def rotate(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """Half-split rotary embedding of ``x`` [B, heads, S, D] at ``positions`` [S] or [B, S]."""
    half = x.shape[-1] // 2
    rates = theta ** (-torch.arange(half, dtype=torch.float32) / half)
    angle = positions.float()[..., None] * rates
    if angle.dim() == 3:
        angle = angle[:, None]
    cos, sin = angle.cos(), angle.sin()
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def sinusoid(time: Tensor, width: int, min_period: float, max_period: float) -> Tensor:
    """[sin | cos] embedding of flow time, float32 [..., width]; angles are made in float64."""
    fraction = torch.linspace(0.0, 1.0, width // 2, dtype=torch.float64)
    period = min_period * (max_period / min_period) ** fraction
    angle = time.double()[..., None] * (2 * math.pi / period)
    return torch.cat([angle.sin(), angle.cos()], dim=-1).float()


def gelu(x: Tensor) -> Tensor:
    """GELU in its tanh form."""
    return functional.gelu(x, approximate="tanh")


class RMSNorm(nn.Module):
    """Gemma's norm: x / rms * (1 + weight)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last axis."""
        return functional.rms_norm(x, x.shape[-1:], 1 + self.weight, self.eps)


class AdaRMSNorm(nn.Module):
    """The expert's norm: scale, shift and gate come from the flow time."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.dense = nn.Linear(width, 3 * width)
        self.eps = eps
        self.reset()

    def reset(self) -> None:
        """No scale, no shift, gates open: the block starts as a plain pre-norm block."""
        nn.init.zeros_(self.dense.weight)
        nn.init.zeros_(self.dense.bias)
        with torch.no_grad():
            self.dense.bias[2 * self.dense.in_features :] = 1.0

    def forward(self, x: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """Normed ``x`` [B, F, H, W] and gate [B, F, 1, W] for ``condition`` [B, F, W]."""
        scale, shift, gate = self.dense(condition)[..., None, :].chunk(3, dim=-1)
        normed = functional.rms_norm(x, x.shape[-1:], None, self.eps)
        return normed * (1 + scale) + shift, gate


class GatedMLP(nn.Module):
    """Gemma's MLP: down(gelu(gate(x)) * up(x))."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Same shape as ``x``."""
        out: Tensor = self.down_proj(gelu(self.gate_proj(x)) * self.up_proj(x))
        return out


class Attention(nn.Module):
    """Grouped-query attention with one key/value head; the caller gives further keys and values."""

    def __init__(self, width: int, dims: Dims) -> None:
        super().__init__()
        self.heads, self.head_dim, self.theta = dims.num_heads, dims.head_dim, dims.rope_theta
        self.q_proj = nn.Linear(width, self.heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(width, self.head_dim, bias=False)
        self.v_proj = nn.Linear(width, self.head_dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.head_dim, width, bias=False)

    def forward(
        self, x: Tensor, positions: Tensor, before: KeysValues | None, mask: Tensor | None
    ) -> tuple[Tensor, KeysValues]:
        """Attend from ``x`` [B, S, W] to ``before`` and itself.

        Args:
            positions: [S] or [B, S].
            before: keys (rotated) and values [B, 1, P, D] that come first.
            mask: bool [S, P + S], True where seen; None for everything.
        """
        batch, length = x.shape[:2]
        q = self.q_proj(x).view(batch, length, self.heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, 1, self.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, 1, self.head_dim).transpose(1, 2)
        q, k = rotate(q, positions, self.theta), rotate(k, positions, self.theta)
        own = (k, v)
        if before is not None:
            k, v = torch.cat([before[0], k], dim=2), torch.cat([before[1], v], dim=2)
        shape = (batch, self.heads, k.shape[2], self.head_dim)
        out = functional.scaled_dot_product_attention(q, k.expand(shape), v.expand(shape), attn_mask=mask)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, -1)), own


class BackboneLayer(nn.Module):
    """One Gemma block."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.self_attn = Attention(dims.width, dims)
        self.mlp = GatedMLP(dims.width, dims.mlp)
        self.input_layernorm = RMSNorm(dims.width, dims.norm_eps)
        self.post_attention_layernorm = RMSNorm(dims.width, dims.norm_eps)

    def forward(
        self, x: Tensor, positions: Tensor, before: KeysValues | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, KeysValues]:
        """Block output and its own keys and values."""
        attended, own = self.self_attn(self.input_layernorm(x), positions, before, mask)
        x = x + attended
        return x + self.mlp(self.post_attention_layernorm(x)), own


class Backbone(nn.Module):
    """Gemma without its head."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(dims.vocab_size, dims.width)
        self.layers = nn.ModuleList(BackboneLayer(dims) for _ in range(dims.depth))
        self.norm = RMSNorm(dims.width, dims.norm_eps)


class ExpertLayer(nn.Module):
    """One block of the action expert; reads the prefix's keys and values of its layer."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.self_attn = Attention(dims.expert_width, dims)
        self.mlp = GatedMLP(dims.expert_width, dims.expert_mlp)
        self.input_layernorm = AdaRMSNorm(dims.expert_width, dims.norm_eps)
        self.post_attention_layernorm = AdaRMSNorm(dims.expert_width, dims.norm_eps)

    def forward(
        self, x: Tensor, condition: Tensor, positions: Tensor, prefix: KeysValues, mask: Tensor
    ) -> Tensor:
        """Block output [B, F, H, W]."""
        shape = x.shape
        normed, gate = self.input_layernorm(x, condition)
        attended, _ = self.self_attn(normed.flatten(1, 2), positions, prefix, mask)
        x = x + gate * attended.view(shape)
        normed, gate = self.post_attention_layernorm(x, condition)
        out: Tensor = x + gate * self.mlp(normed)
        return out


class Expert(nn.Module):
    """The action expert's blocks and final norm."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.layers = nn.ModuleList(ExpertLayer(dims) for _ in range(dims.depth))
        self.norm = AdaRMSNorm(dims.expert_width, dims.norm_eps)
