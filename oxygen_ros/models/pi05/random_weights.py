"""Random weights under openpi's names: for tests, for trying the node without a checkpoint, for benchmarks.

Same configuration and seed, same weights. Texts of such a model are noise, its actions finite.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from oxygen_ros.models.pi05.config import Pi05Config
from oxygen_ros.models.pi05.names import EMBEDDING, LM_HEAD, tensor_shapes

RESIDUAL_GAIN = 2.0
"""Of what layers add to the residual: lets a text move on, where tied embeddings would repeat a token."""


def random_state(config: Pi05Config, seed: int = 0) -> dict[str, Tensor]:
    """Float32 tensors of ``config`` by name, with head and embedding tied: only the head is there."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: torch.randn(shape, generator=generator) * _deviation(name, shape)
        for name, shape in tensor_shapes(config).items()
        if name != EMBEDDING
    }


def _deviation(name: str, shape: tuple[int, ...]) -> float:
    """Standard deviation that keeps activations near one and lets every branch matter."""
    if name == LM_HEAD:
        return 1.0 / math.sqrt(shape[1])
    if len(shape) == 1 or name.endswith("position_embedding.weight"):
        return 0.05
    fan_in = math.prod(shape[1:])
    if ".dense." in name:
        return 0.3 / math.sqrt(fan_in)
    gain = RESIDUAL_GAIN if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
    return gain / math.sqrt(fan_in)
