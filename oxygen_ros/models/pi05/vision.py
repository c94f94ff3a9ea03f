"""SigLIP tower and projector: images to prefix tokens. Pure functions."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from oxygen_ros.models.pi05.config import VisionSize
from oxygen_ros.models.pi05.weights import VisionLayer, VisionWeights


def encode_images(weights: VisionWeights, size: VisionSize, images: Tensor) -> Tensor:
    """Image tokens [C * tokens, W_vlm] of ``images`` float32 [C, 3, S, S] in [-1, 1], camera by camera."""
    patches = _patches(images.float(), size.patch_size)
    x = weights.patch(patches) + weights.positions
    x = x.to(weights.norm[0].dtype)
    for layer in weights.layers:
        x = _encoder_layer(layer, size, x)
    x = F.layer_norm(x, (size.width,), *weights.norm, eps=size.eps)
    return weights.projector(x).flatten(0, 1)


def _patches(images: Tensor, patch: int) -> Tensor:
    """Images [C, 3, S, S] cut into flat patches [C, tokens, 3 * patch * patch], row by row."""
    count, channels, side, _ = images.shape
    grid = images.view(count, channels, side // patch, patch, side // patch, patch)
    return grid.permute(0, 2, 4, 1, 3, 5).reshape(count, -1, channels * patch * patch)


def _encoder_layer(layer: VisionLayer, size: VisionSize, x: Tensor) -> Tensor:
    """One pre-norm layer on x [C, tokens, W]; images do not see each other."""
    qkv = layer.qkv(F.layer_norm(x, (size.width,), *layer.norm1, eps=size.eps))
    heads = qkv.view(*qkv.shape[:2], 3, size.num_heads, -1)  # [C, tokens, 3, heads, D]
    q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
    attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + layer.out(attended)
    hidden = layer.fc1(F.layer_norm(x, (size.width,), *layer.norm2, eps=size.eps))
    return x + layer.fc2(F.gelu(hidden, approximate="tanh"))
