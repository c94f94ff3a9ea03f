"""The SigLIP tower of the differentiable model, with openpi's names."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from oxygen_ros.training.dims import Dims
from oxygen_ros.training.network import gelu


class VisionAttention(nn.Module):
    """Plain multi-head attention with biases."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        width = dims.vision_width
        self.heads = dims.vision_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        """Same shape as ``x`` [N, T, W]."""
        q, k, v = (
            projection(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        out: Tensor = self.out_proj(
            functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        )
        return out


class VisionMLP(nn.Module):
    """Two layers, tanh-GELU between."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dims.vision_width, dims.vision_mlp)
        self.fc2 = nn.Linear(dims.vision_mlp, dims.vision_width)

    def forward(self, x: Tensor) -> Tensor:
        """Same shape as ``x``."""
        out: Tensor = self.fc2(gelu(self.fc1(x)))
        return out


class VisionLayer(nn.Module):
    """One pre-norm block."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.layer_norm1 = nn.LayerNorm(dims.vision_width, eps=1e-6)
        self.layer_norm2 = nn.LayerNorm(dims.vision_width, eps=1e-6)
        self.self_attn = VisionAttention(dims)
        self.mlp = VisionMLP(dims)

    def forward(self, x: Tensor) -> Tensor:
        """Same shape as ``x``."""
        x = x + self.self_attn(self.layer_norm1(x))
        out: Tensor = x + self.mlp(self.layer_norm2(x))
        return out


class VisionEmbeddings(nn.Module):
    """Patches to tokens, plus learned positions."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.patch_embedding = nn.Conv2d(3, dims.vision_width, dims.patch_size, dims.patch_size)
        self.position_embedding = nn.Embedding(dims.tokens_per_image, dims.vision_width)

    def forward(self, images: Tensor) -> Tensor:
        """Tokens [N, T, W] of ``images`` [N, 3, S, S]."""
        size = self.patch_embedding.kernel_size[0]
        count, grid = images.shape[0], images.shape[-1] // size
        patches = images.view(count, 3, grid, size, grid, size).permute(0, 2, 4, 1, 3, 5)
        weight = self.patch_embedding.weight.flatten(1)
        tokens = functional.linear(patches.reshape(count, grid * grid, -1), weight, self.patch_embedding.bias)
        return tokens + self.position_embedding.weight


class VisionEncoder(nn.Module):
    """The stack of blocks."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.layers = nn.ModuleList(VisionLayer(dims) for _ in range(dims.vision_depth))


class VisionModel(nn.Module):
    """SigLIP's vision model: embeddings, blocks, final norm."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.embeddings = VisionEmbeddings(dims)
        self.encoder = VisionEncoder(dims)
        self.post_layernorm = nn.LayerNorm(dims.vision_width, eps=1e-6)
        nn.init.normal_(self.embeddings.position_embedding.weight, std=0.1)

    def forward(self, images: Tensor) -> Tensor:
        """Tokens [N, T, W] of ``images`` [N, 3, S, S]."""
        x = self.embeddings(images)
        for layer in self.encoder.layers:
            x = layer(x)
        out: Tensor = self.post_layernorm(x)
        return out


class VisionTower(nn.Module):
    """Holder that gives the names openpi uses."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.vision_model = VisionModel(dims)


class Projector(nn.Module):
    """Vision width to backbone width."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.linear = nn.Linear(dims.vision_width, dims.width)

    def forward(self, x: Tensor) -> Tensor:
        """[N, T, width]."""
        out: Tensor = self.linear(x)
        return out


def stack_cameras(tokens: Tensor, num_cameras: int) -> Tensor:
    """[B * cameras, T, W] to [B, cameras * T, W], cameras in slot order."""
    return tokens.reshape(-1, num_cameras * tokens.shape[1], tokens.shape[2]) if num_cameras > 1 else tokens


def to_model_images(pictures: Tensor) -> Tensor:
    """uint8 [..., H, W, 3] to float32 [..., 3, H, W] in [-1, 1]."""
    return torch.movedim(pictures, -1, -3).float() / 255.0 * 2.0 - 1.0
