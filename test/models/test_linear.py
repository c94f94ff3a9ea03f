"""Every kernel gives the product; a packed kernel that does not is not used."""

import logging

import pytest
import torch
import torch.nn.functional as F

from oxygen_ros.models import linear
from oxygen_ros.models.linear import HalfPackedLinear, OneDnnLinear, PlainLinear, make_linear

KERNELS = {
    torch.float32: [PlainLinear, OneDnnLinear],
    torch.bfloat16: [PlainLinear, HalfPackedLinear],
}
CASES = [(kernel, dtype) for dtype, kernels in KERNELS.items() for kernel in kernels]


def layer_of(kernel, weight, bias):
    try:
        return kernel(weight, bias)
    except (AttributeError, RuntimeError, NotImplementedError) as fault:
        pytest.skip(f"not on this CPU: {fault}")


@pytest.mark.parametrize(("kernel", "dtype"), CASES)
@pytest.mark.parametrize("rows", [1, 2, 8, 33])
@pytest.mark.parametrize("has_bias", [True, False])
def test_kernel_gives_the_product(kernel, dtype, rows, has_bias):
    weight, x = torch.randn(48, 40).to(dtype), torch.randn(rows, 40).to(dtype)
    bias = torch.randn(48).to(dtype) if has_bias else None
    layer = layer_of(kernel, weight, bias)
    expected = F.linear(x.double(), weight.double(), None if bias is None else bias.double())
    tolerance = 1e-4 if dtype == torch.float32 else 0.12
    torch.testing.assert_close(layer(x).double(), expected, atol=tolerance, rtol=1e-2)
    assert layer(x).dtype == dtype
    assert layer.num_parameters == 48 * 40 + 48 * has_bias


@pytest.mark.parametrize("size", [1e-30, 1e-6, 3e-3, 1.0, 3e4, 1e20])
def test_half_packed_weights_of_any_size_keep_bfloat16_precision(size):
    weight, x = (torch.randn(32, 64) * size).bfloat16(), torch.randn(4, 64).bfloat16()
    layer = layer_of(HalfPackedLinear, weight, None)
    expected = F.linear(x.float(), weight.float())
    error = (layer(x).float() - expected).abs().max() / expected.abs().max()
    assert error < 2**-7


@pytest.mark.parametrize("activation", [1.0, 7e4, 1e30])
@pytest.mark.parametrize("largest", [1.0, 7e4, 1e6, 1e30, 3e38])
def test_half_packed_or_its_fallback_never_overflows_nor_loses_a_row(largest, activation):
    """Float16 ends at 65504: one huge weight, huge activations, and rows of ordinary size beside them."""
    weight = torch.randn(256, 128).bfloat16()
    weight[3, 5] = largest
    x = (torch.randn(2, 128) * activation).bfloat16()
    x[:, 5] = 1.0
    layer = make_linear(weight)
    expected = F.linear(x.double(), weight.double())
    is_in_range = expected.abs() < torch.finfo(torch.bfloat16).max
    error = (layer(x).double() - expected).abs()[is_in_range]
    size = (x.double().abs() @ weight.double().abs().T)[is_in_range]
    assert is_in_range.any()
    assert (error <= size * 2**-6).all()


def test_rows_of_too_different_size_are_left_to_the_plain_product_with_a_word(caplog, monkeypatch):
    monkeypatch.setattr(linear, "_packed_kernel", lambda weight: HalfPackedLinear)
    weight = torch.randn(256, 128).bfloat16()
    weight[0] = 0.0  # a row of zeros loses nothing
    assert linear.fits_float16(weight)
    weight[3, 5] = 1e8
    assert make_linear(weight).kernel == "plain"
    assert "too different size" in caplog.text


def test_half_packed_zero_weight_gives_zero():
    layer = layer_of(HalfPackedLinear, torch.zeros(8, 8, dtype=torch.bfloat16), None)
    assert not layer(torch.ones(2, 8, dtype=torch.bfloat16)).any()


def test_half_packed_takes_any_leading_dimensions():
    weight = torch.randn(16, 24).bfloat16()
    x = torch.randn(2, 5, 24).bfloat16()
    layer = layer_of(HalfPackedLinear, weight, None)
    torch.testing.assert_close(layer(x).flatten(0, 1), layer(x.flatten(0, 1)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_large_layer_is_right_whatever_kernel_was_chosen(dtype):
    weight, x = (torch.randn(512, 600) / 25).to(dtype), torch.randn(3, 600).to(dtype)
    layer = make_linear(weight)
    torch.testing.assert_close(layer(x).float(), F.linear(x.float(), weight.float()), atol=3e-2, rtol=2e-2)


def test_small_layer_stays_plain_and_keeps_its_weight():
    weight = torch.randn(8, 8)
    layer = make_linear(weight)
    assert isinstance(layer, PlainLinear)
    assert layer.weight is weight


@pytest.mark.parametrize(("kernel", "dtype"), CASES)
def test_kernel_shows_inputs_that_are_not_finite_in_their_row_alone(kernel, dtype):
    x = torch.ones(3, 40).to(dtype)
    x[1, 7] = torch.nan
    y = layer_of(kernel, torch.randn(48, 40).to(dtype), None)(x)
    assert torch.isfinite(y).all(dim=1).tolist() == [True, False, True]


class WrongLinear(PlainLinear):
    kernel = "wrong"

    def __call__(self, x):
        return super().__call__(x) * 1.01


class MissingLinear(PlainLinear):
    kernel = "missing"

    def __init__(self, weight, bias=None):
        raise AttributeError("no such operator")


@pytest.mark.parametrize(
    ("kernel", "word"),
    [(WrongLinear, "(wrong) are not used: its product is off"), (MissingLinear, "no such operator")],
)
def test_kernel_that_is_wrong_or_missing_falls_back_to_plain_and_says_so_once(
    kernel, word, monkeypatch, caplog
):
    linear.works.cache_clear()
    monkeypatch.setattr(linear, "OneDnnLinear", kernel)
    with caplog.at_level(logging.WARNING):
        layers = [make_linear(torch.randn(512, 512)) for _ in range(3)]
    assert {layer.kernel for layer in layers} == {"plain"}
    assert all(isinstance(layer, PlainLinear) for layer in layers)
    assert caplog.text.count(word) == 1
    linear.works.cache_clear()


def test_single_layer_whose_packing_is_off_falls_back(monkeypatch, caplog):
    monkeypatch.setattr(linear, "_packed_kernel", lambda weight: WrongLinear)
    with caplog.at_level(logging.WARNING):
        layer = make_linear(torch.randn(16, 16))
    assert layer.kernel == "plain"
    assert "off by" in caplog.text


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_weight_that_is_not_finite_still_makes_a_layer_whose_output_shows_it(bad):
    weight = torch.randn(256, 256).bfloat16()
    weight[3, 4] = bad
    assert not torch.isfinite(make_linear(weight)(torch.ones(2, 256, dtype=torch.bfloat16))).all()


def test_meta_device_has_sizes_and_no_numbers():
    layer = make_linear(torch.empty(4096, 2048, device="meta", dtype=torch.bfloat16))
    assert layer.num_parameters == 4096 * 2048
    assert layer.num_bytes == 2 * 4096 * 2048
