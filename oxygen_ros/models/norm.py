"""RMS norms with float32 statistics. Pure functions."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def rms_norm(x: Tensor, scale: Tensor, eps: float) -> Tensor:
    """``x / rms(x) * scale`` over the last dimension, in the dtype of ``x``.

    Args:
        x: [..., W].
        scale: float32 [W]; Gemma stores it minus one.
        eps: added to the mean square.
    """
    return (normalise(x, eps) * scale).to(x.dtype)


def modulated_rms_norm(x: Tensor, scale: Tensor, shift: Tensor, eps: float) -> Tensor:
    """``x / rms(x) * scale + shift`` with float32 ``scale``, ``shift`` [W], in the dtype of ``x``."""
    return torch.addcmul(shift, normalise(x, eps), scale).to(x.dtype)


def normalise(x: Tensor, eps: float) -> Tensor:
    """``x`` divided by its root mean square, float32."""
    return F.rms_norm(x.float(), x.shape[-1:], eps=eps)
