"""Sizes of the tiny pi0.5. Only sizes: the mathematics is that of the large one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dims:
    """Sizes and constants; field names follow the checkpoint's ``config.json``."""

    vocab_size: int
    image_size: int = 64
    patch_size: int = 16
    num_cameras: int = 2
    vision_width: int = 128
    vision_depth: int = 3
    vision_heads: int = 4
    vision_mlp: int = 384
    width: int = 128
    mlp: int = 320
    expert_width: int = 96
    expert_mlp: int = 256
    depth: int = 4
    num_heads: int = 4
    head_dim: int = 32
    action_dim: int = 8
    horizon: int = 10
    rope_theta: float = 10000.0
    norm_eps: float = 1e-6
    min_period: float = 4e-3
    max_period: float = 4.0

    @property
    def tokens_per_image(self) -> int:
        """Image tokens of one camera."""
        return (self.image_size // self.patch_size) ** 2

    @property
    def image_tokens(self) -> int:
        """Image tokens of all cameras."""
        return self.tokens_per_image * self.num_cameras
