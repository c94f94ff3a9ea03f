"""Action noise, the same for every executor: what control cycle and runner draw for an observation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from oxygen_ros.models.pi05.config import Pi05Config

Noise = Callable[[int, int], Tensor]
"""Noise [horizon, action_dim] of (observation id, index of the expert)."""


def noise_seed(observation_id: int, expert_index: int) -> int:
    """Seed that a control cycle with seed 0 gives to the runner."""
    words = (0, observation_id, expert_index)
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> 1)


def noise_of(config: Pi05Config, device: torch.device) -> Noise:
    """Noise as the runner draws it. The equality check fails if it is not the same."""

    def draw(observation_id: int, expert_index: int) -> Tensor:
        expert = config.experts[expert_index]
        generator = torch.Generator().manual_seed(noise_seed(observation_id, expert_index))
        return torch.randn((expert.horizon, expert.action_dim), generator=generator).to(device)

    return draw
