"""Linear layers, each with the kernel that suits its device, dtype and size.

A plain ``F.linear`` is right everywhere. On CPUs it collapses in float32 as soon as two rows are
multiplied, and in bfloat16 where the CPU has no bfloat16 instructions; weights packed once at load
avoid both. The packing operators are not a stable interface of torch: each packed layer is compared
with the plain product when it is made, and the plain product is used where it fails or differs.
Made by the weight builders of the families; nothing here knows models.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

logger = logging.getLogger(__name__)

ONEDNN_MIN_ELEMENTS = 1 << 18
"""Below this a oneDNN call costs more than it saves (measured: 256 x 128 plain 0.02 ms, packed 0.05 ms)."""
HALF_MIN_ELEMENTS = 1 << 14
"""The emulated bfloat16 product loses to packed weights earlier than the float32 one."""
EXPECTED_ROWS = 8
"""Rows that packed layouts are made for: a decode batch."""


class Linear(Protocol):
    """y = x W^T + b for x [..., in_features]; y has the dtype of the layer's weight."""

    kernel: str
    in_features: int
    out_features: int
    num_parameters: int
    num_bytes: int

    def __call__(self, x: Tensor) -> Tensor:
        """Product of ``x`` with the layer."""
        ...


class _Sized:
    """Sizes that every kernel keeps from the weight it was made from."""

    kernel = "plain"

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.out_features, self.in_features = weight.shape
        self.num_parameters = weight.numel() + (bias.numel() if bias is not None else 0)
        self.num_bytes = self.num_parameters * weight.element_size()


class PlainLinear(_Sized):
    """``F.linear`` on the weight as it is. Works on every device and dtype."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__(weight, bias)
        self.weight = weight
        self.bias = bias

    def __call__(self, x: Tensor) -> Tensor:
        """Product of ``x`` with the layer."""
        return F.linear(x, self.weight, self.bias)


class OneDnnLinear(_Sized):
    """oneDNN product with a weight laid out once for small batches. CPU only."""

    kernel = "onednn"

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__(weight, bias)
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight, EXPECTED_ROWS)
        self._bias = bias

    def __call__(self, x: Tensor) -> Tensor:
        """Product of ``x`` with the layer."""
        return torch.ops.mkldnn._linear_pointwise(x, self._packed, self._bias, "none", [], "")


class HalfPackedLinear(_Sized):
    """Bfloat16 weights for CPUs without bfloat16 instructions: stored as float16, summed in float32.

    Float16 has three more mantissa bits than bfloat16, so a weight is held exactly unless it is tiny:
    weights are scaled by a power of two when the largest is not within [2^-7, 2^14], and what then
    falls below float16's normal range is off by at most 2^-18 of the largest (bfloat16 results are
    rounded to 2^-9). Float32 accumulation is closer to the exact product than bfloat16 units give.
    """

    kernel = "half-packed"

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__(weight, bias)
        self._dtype = weight.dtype
        peak = float(weight.abs().max())
        exponent = 0 if 2.0**-7 <= peak <= 2.0**14 or peak == 0.0 else -int(torch.tensor(peak).log2())
        self._unscale = 2.0**-exponent
        self._packed = torch.ops.quantized.linear_prepack_fp16(weight.float() * 2.0**exponent, None)
        self._bias = None if bias is None else bias.float()

    def __call__(self, x: Tensor) -> Tensor:
        """Product of ``x`` with the layer."""
        y: Tensor = torch.ops.quantized.linear_dynamic_fp16(x.float(), self._packed)
        if self._unscale != 1.0:
            y.mul_(self._unscale)
        if self._bias is not None:
            y.add_(self._bias)
        return y.to(self._dtype)


_TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}


def make_linear(weight: Tensor, bias: Tensor | None = None) -> Linear:
    """Layer of ``weight`` [out, in] and ``bias`` [out] with the fastest kernel that gives the right result.

    The weight is not copied by the plain kernel; a packed kernel does not keep it.
    """
    for kernel, min_elements in _candidates(weight):
        if weight.numel() >= min_elements:
            layer = _try_kernel(kernel, weight, bias)
            if layer is not None:
                return layer
    return PlainLinear(weight, bias)


def _candidates(weight: Tensor) -> list[tuple[Callable[[Tensor, Tensor | None], Linear], int]]:
    if weight.device.type != "cpu":
        return []
    if weight.dtype == torch.float32:
        return [(OneDnnLinear, ONEDNN_MIN_ELEMENTS)]
    if weight.dtype == torch.bfloat16:
        if _has_bfloat16_units():
            return [(OneDnnLinear, ONEDNN_MIN_ELEMENTS)]
        return [(HalfPackedLinear, HALF_MIN_ELEMENTS)]
    return []


def _has_bfloat16_units() -> bool:
    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):
        return False


def _try_kernel(
    kernel: Callable[[Tensor, Tensor | None], Linear], weight: Tensor, bias: Tensor | None
) -> Linear | None:
    """A packed layer that was compared with the plain product, or None."""
    try:
        layer = kernel(weight, bias)
        error = packing_error(layer, weight, bias)
    except (AttributeError, NotImplementedError, RuntimeError) as fault:
        logger.warning("packed linear not available, using the plain one: %s", str(fault).splitlines()[0])
        return None
    if error > _TOLERANCE[weight.dtype]:
        logger.warning("packed linear is off by %.2e, using the plain one", error)
        return None
    return layer


def packing_error(layer: Linear, weight: Tensor, bias: Tensor | None) -> float:
    """Largest difference of ``layer`` from the float32 product on sampled outputs, relative to their size."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, layer.in_features, generator=generator).to(weight.dtype)
    sample = slice(None, None, max(1, layer.out_features // 32))
    sampled_bias = None if bias is None else bias[sample].float()
    expected = F.linear(x.float(), weight[sample].float(), sampled_bias)
    got = layer(x)[:, sample].float()
    return float((got - expected).abs().max() / expected.abs().max().clamp_min(1e-30))
