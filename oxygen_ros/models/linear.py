"""Linear layers, each with the kernel that suits its device, dtype and size.

A plain ``F.linear`` is right everywhere. On CPUs it collapses in float32 as soon as two rows are
multiplied, and in bfloat16 where the CPU has no bfloat16 instructions; weights packed once at load
avoid both. The packing operators are not a stable interface of torch: each packed layer is compared
with the plain product when it is made, and the plain product is used where it fails or differs.
Made by the weight builders of the families; nothing here knows models.
"""

from __future__ import annotations

import functools
import logging
import math
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
    Activations are float32 in the product, so none is too large. Weights whose rows differ too much in
    size for one scale are not for this kernel: see ``fits_float16``.
    """

    kernel = "bfloat16 stored as float16"

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__(weight, bias)
        self._dtype = weight.dtype
        exponent = _scale_exponent(weight)
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


def _scale_exponent(weight: Tensor) -> int:
    """Power of two that brings the largest weight into float16's comfortable range."""
    peak = float(weight.abs().max())
    return 0 if 2.0**-7 <= peak <= 2.0**14 or peak == 0.0 else -int(math.log2(peak))


def fits_float16(weight: Tensor) -> bool:
    """True if float16 with one scale keeps every output's weights to bfloat16's own precision."""
    scale = 2.0 ** _scale_exponent(weight)
    for rows in weight.split(_ROWS_LOOKED_AT):
        scaled = rows.float() * scale
        error = (scaled.half().float() - scaled).abs().amax(dim=1)
        if not bool((error <= scaled.abs().amax(dim=1) * 2.0**-9).all()):
            return False
    return True


_ROWS_LOOKED_AT = 4096  # at once, so that looking takes little memory
_TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}


def make_linear(weight: Tensor, bias: Tensor | None = None) -> Linear:
    """Layer of ``weight`` [out, in] and ``bias`` [out] with the fastest kernel that gives the right result.

    The weight is not copied by the plain kernel; a packed kernel does not keep it.
    """
    kernel = _packed_kernel(weight)
    if kernel is None or not bool(torch.isfinite(weight).all()):  # packing could hide what is not finite
        return PlainLinear(weight, bias)
    if kernel is HalfPackedLinear and not fits_float16(weight):
        logger.warning("a bfloat16 layer has rows of too different size for float16, using the plain one")
        return PlainLinear(weight, bias)
    layer = kernel(weight, bias)
    error = packing_error(layer, weight, bias)
    if error <= _TOLERANCE[weight.dtype]:
        return layer
    logger.warning("a packed %s layer is off by %.2e, using the plain one", layer.kernel, error)
    return PlainLinear(weight, bias)


def _packed_kernel(weight: Tensor) -> type[OneDnnLinear] | type[HalfPackedLinear] | None:
    """The packed kernel that suits a weight, if there is one and it works here."""
    if weight.device.type != "cpu" or weight.dtype not in _TOLERANCE:
        return None
    is_emulated = weight.dtype == torch.bfloat16 and not has_bfloat16_units()
    kernel, min_elements = (
        (HalfPackedLinear, HALF_MIN_ELEMENTS) if is_emulated else (OneDnnLinear, ONEDNN_MIN_ELEMENTS)
    )
    return kernel if weight.numel() >= min_elements and works(kernel, weight.dtype) else None


def has_bfloat16_units() -> bool:
    """True if this CPU multiplies bfloat16 itself."""
    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):
        return False


@functools.cache
def works(kernel: type[OneDnnLinear] | type[HalfPackedLinear], dtype: torch.dtype) -> bool:
    """Try ``kernel`` on a small layer, once per process: its operators may be missing or wrong here."""
    weight = torch.linspace(-1.0, 1.0, 32 * 32).view(32, 32).to(dtype)
    try:
        error = packing_error(kernel(weight), weight, None)
    except (AttributeError, NotImplementedError, RuntimeError) as fault:
        cause = str(fault).splitlines()[0]
    else:
        if error <= _TOLERANCE[dtype]:
            return True
        cause = f"its product is off by {error:.2e}"
    logger.warning("packed linear layers (%s) are not used: %s", kernel.kernel, cause)
    return False


def packing_error(layer: Linear, weight: Tensor, bias: Tensor | None) -> float:
    """Largest difference of ``layer`` from the float32 product on sampled outputs, relative to their size."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, layer.in_features, generator=generator).to(weight.dtype)
    sample = slice(None, None, max(1, layer.out_features // 32))
    sampled_bias = None if bias is None else bias[sample].float()
    expected = F.linear(x.float(), weight[sample].float(), sampled_bias)
    got = layer(x)[:, sample].float()
    return float((got - expected).abs().max() / expected.abs().max().clamp_min(1e-30))
