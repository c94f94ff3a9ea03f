"""The action expert: norm modulations of a time grid, and one denoise step. Pure functions.

An expert reads the prefix where it lies. Keys and values of its action tokens are written behind the
prefix's valid tokens in the same slot, so that one attention call covers both and nothing is joined.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from oxygen_ros.kv.memory import PrefixKV
from oxygen_ros.models.attention import fold_heads, unfold_heads
from oxygen_ros.models.norm import modulated_rms_norm
from oxygen_ros.models.pi05.config import ExpertConfig, Pi05Config
from oxygen_ros.models.pi05.gemma import gated_mlp, project_qkv
from oxygen_ros.models.pi05.weights import ConditioningWeights, ExpertWeights, GemmaLayer
from oxygen_ros.models.rope import RopeTable
from oxygen_ros.models.slot_attention import slot_attention


def time_embedding(times: Tensor, width: int, min_period: float, max_period: float) -> Tensor:
    """Sinusoids [S, W] of ``times`` float32 [S], laid out [sin | cos], in float64."""
    fraction = torch.linspace(0.0, 1.0, width // 2, dtype=torch.float64, device=times.device)
    periods = min_period * (max_period / min_period) ** fraction
    angles = times.double()[:, None] * (2.0 * math.pi / periods)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def condition(weights: ConditioningWeights, config: Pi05Config, width: int, times: Tensor) -> Tensor:
    """What conditions every expert norm at ``times`` float32 [S]: [S, W]."""
    embedding = time_embedding(times, width, config.min_period, config.max_period)
    hidden = weights.time_in(embedding.to(config.dtypes.action))
    return F.silu(weights.time_out(F.silu(hidden)))


def modulations(weights: ConditioningWeights, config: Pi05Config, width: int, times: Tensor) -> Tensor:
    """Norm modulations at ``times`` float32 [S], float32 [S, norms, 3, W]: 1 + scale, shift, gate.

    They depend on time alone, so a grid's table is made once and its weights can go.
    """
    c = condition(weights, config, width, times).float()
    table = torch.stack([dense(c) for dense in weights.dense], dim=1).unflatten(-1, (3, width))
    table[:, :, 0] += 1.0
    return table


def denoise_step(
    weights: ExpertWeights,
    config: Pi05Config,
    expert: ExpertConfig,
    x_t: Tensor,
    modulation: Tensor,
    rope: RopeTable,
    kv: PrefixKV,
    num_prefix_tokens: int,
    time_row: Tensor | None = None,
) -> Tensor:
    """Velocity float32 [H, action_dim] at ``x_t`` of that shape.

    Args:
        modulation: [norms, 3, W] of this step's time.
        rope: rows of the positions behind the prefix.
        kv: slot of the prefix; tokens ``num_prefix_tokens`` .. + H - 1 are overwritten.
        num_prefix_tokens: tokens before the action tokens; for pi0 the state token is one of them.
        time_row: this step's row of ``pi0.time_rows``; None for pi0.5.
    """
    embedded = weights.action_in(x_t.to(config.dtypes.action))
    if weights.pi0 is not None and time_row is not None:
        embedded = weights.pi0.mix_out(F.silu(weights.pi0.mix_action(embedded) + time_row))
    x = embedded.to(config.dtypes.model)
    x = run_layers(weights.layers, config, expert, x, modulation, rope, kv, num_prefix_tokens)
    scale, shift, _ = modulation[-1]
    out = modulated_rms_norm(x, scale, shift, config.expert_rms_norm_eps).to(config.dtypes.action)
    return weights.action_out(out).float()


def run_layers(
    layers: tuple[GemmaLayer, ...],
    config: Pi05Config,
    expert: ExpertConfig,
    x: Tensor,
    modulation: Tensor,
    rope: RopeTable,
    kv: PrefixKV,
    start: int,
) -> Tensor:
    """Run ``x`` [T, W] through an expert's layers; its keys and values go to tokens ``start`` on.

    Every row sees all tokens of the slot before ``start`` and all of its own block.
    """
    size, eps, end = expert.size, config.expert_rms_norm_eps, start + x.shape[0]
    scales, shifts = modulation[:, 0].unbind(0), modulation[:, 1].unbind(0)
    gates = modulation[:, 2].to(x.dtype).unbind(0)
    attend_there = slot_attention(kv, start, end)
    for index, layer in enumerate(layers):
        before, after = 2 * index, 2 * index + 1
        normed = modulated_rms_norm(x, scales[before], shifts[before], eps)
        q, k, v = project_qkv(layer, size, normed, rope)
        attended = attend_there(index, fold_heads(q, size.num_kv_heads), k, v)
        x = torch.addcmul(x, gates[before], layer.o(unfold_heads(attended, x.shape[0])))
        normed = modulated_rms_norm(x, scales[after], shifts[after], eps)
        x = torch.addcmul(x, gates[after], gated_mlp(layer, normed))
    return x
