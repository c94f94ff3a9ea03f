"""Random weights under openpi's names, the same for the same seed; made on the device they are used on."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from oxygen_ros.models.pi05.config import Pi05Config
from oxygen_ros.models.pi05.names import EMBEDDING, tensor_shapes

EMBEDDING_SCALE = 0.3
ATTENTION_GAIN = 4.0
"""Small embeddings and sharp attention keep greedy texts from repeating one token, as a tied head would."""


def random_state_dict(config: Pi05Config, device: torch.device, seed: int = 0) -> dict[str, Tensor]:
    """Every tensor of ``config`` but the head, which is tied to the embedding.

    Values are those of the model's dtype. On the CPU they are stored in float32; on other devices in the
    model's dtype, so that a full-size model fits, and made by that device's generator, so devices differ.
    """
    rounded = config.dtypes.model
    dtype = torch.float32 if device.type == "cpu" else rounded
    generator = torch.Generator(device).manual_seed(seed)
    shapes = {name: shape for name, shape in tensor_shapes(config).items() if "lm_head" not in name}

    def make(name: str, shape: tuple[int, ...]) -> Tensor:
        values = torch.randn(shape, generator=generator, device=device, dtype=dtype)
        return values.mul_(_scale(name, shape)).to(rounded).to(dtype)

    return {name: make(name, shape) for name, shape in shapes.items()}


def _scale(name: str, shape: tuple[int, ...]) -> float:
    """Standard deviation of a tensor: activations stay near one, residual branches matter."""
    if name == EMBEDDING:
        return EMBEDDING_SCALE / math.sqrt(shape[1])
    if len(shape) == 1 or "position_embedding" in name:
        return 0.02
    fan_in = math.prod(shape[1:])
    if ".dense." in name:
        return 0.3 / math.sqrt(fan_in)
    gain = ATTENTION_GAIN if name.endswith("q_proj.weight") else 1.0
    return gain / math.sqrt(fan_in)
