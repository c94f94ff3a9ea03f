"""What a pi0 head does differently: time mixed into action tokens, a state token, plain norms.

The state token sees the prefix and itself, never the actions, so it is computed once per chunk.
"""

from __future__ import annotations

import torch
from torch import Tensor

from oxygen_ros.kv.memory import PrefixKV
from oxygen_ros.models.pi05.config import ExpertConfig, Pi05Config
from oxygen_ros.models.pi05.expert import run_layers, time_embedding
from oxygen_ros.models.pi05.weights import ExpertWeights, Pi0Weights
from oxygen_ros.models.rope import RopeTable


def time_rows(weights: Pi0Weights, config: Pi05Config, width: int, times: Tensor) -> Tensor:
    """What is added to every action token at ``times`` float32 [S]: [S, W]."""
    embedding = time_embedding(times, width, config.min_period, config.max_period)
    return weights.mix_time(embedding.to(config.dtypes.action))


def plain_modulations(weights: Pi0Weights, num_steps: int) -> Tensor:
    """Norms that do not depend on time, in the form of ``expert.modulations``: [S, norms, 3, W]."""
    scale = torch.stack(weights.norms)
    rows = torch.stack([scale, torch.zeros_like(scale), torch.ones_like(scale)], dim=1)
    return rows.expand(num_steps, *rows.shape)


def write_state_token(
    weights: ExpertWeights,
    pi0: Pi0Weights,
    config: Pi05Config,
    expert: ExpertConfig,
    state: Tensor,
    modulation: Tensor,
    rope: RopeTable,
    kv: PrefixKV,
    num_prefix_tokens: int,
) -> None:
    """Write keys and values of the state token behind the prefix.

    Args:
        state: float32 [state_dim], normalised.
        modulation: [norms, 3, W] of any step.
        rope: row of the position behind the prefix.
        kv: slot of the prefix; token ``num_prefix_tokens`` is overwritten.
    """
    x = pi0.state_in(state[None].to(config.dtypes.action)).to(config.dtypes.model)
    run_layers(weights.layers, config, expert, x, modulation, rope, kv, num_prefix_tokens)
