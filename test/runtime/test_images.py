"""Raw camera bytes to RGB: every encoding against plain arithmetic, padding, and each refusal by name."""

from __future__ import annotations

from array import array

import numpy as np
import pytest

from oxygen_ros.errors import ContractError
from oxygen_ros.runtime.images import KNOWN_ENCODINGS, check_layout, raw_to_rgb

RED, BLUE = (255, 0, 0), (0, 0, 255)


def _scene(height: int = 6, width: int = 8) -> np.ndarray:
    """Left half pure red, right half noise: swapped channels and shifted rows both show."""
    picture = np.random.default_rng(3).integers(0, 256, (height, width, 3), dtype=np.uint8)
    picture[:, : width // 2] = RED
    return picture


def _bt601(y: int, u: int, v: int) -> np.ndarray:
    """The limited-range formula in floating point."""
    luma = 1.164383 * (y - 16)
    green = luma - 0.391762 * (u - 128) - 0.812968 * (v - 128)
    rgb = (luma + 1.596027 * (v - 128), green, luma + 2.017232 * (u - 128))
    return np.clip(np.round(rgb), 0, 255)


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        ("rgb8", lambda p: p),
        ("8UC3", lambda p: p),
        ("bgr8", lambda p: p[:, :, ::-1]),
        ("rgba8", lambda p: np.dstack((p, np.full(p.shape[:2], 7, np.uint8)))),
        ("bgra8", lambda p: np.dstack((p[:, :, ::-1], np.full(p.shape[:2], 7, np.uint8)))),
    ],
)
def test_b05_colour_encodings_of_one_scene_give_one_picture(encoding, encode):
    scene = _scene()
    stored = np.ascontiguousarray(encode(scene))
    rgb = raw_to_rgb(stored.tobytes(), encoding, 6, 8, 8 * stored.shape[2])
    np.testing.assert_array_equal(rgb, scene)
    assert rgb.flags.c_contiguous
    assert rgb.flags.writeable


@pytest.mark.parametrize("encoding", ["mono8", "8UC1"])
def test_grey_picture_repeats_its_channel(encoding):
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4)
    rgb = raw_to_rgb(grey.tobytes(), encoding, 3, 4, 4)
    np.testing.assert_array_equal(rgb, np.dstack((grey, grey, grey)))


def _packed(order: str, pixels: list[tuple[int, int, int]]) -> bytes:
    """Pairs of equal (y, u, v) pixels in UYVY or YUYV order."""
    out = bytearray()
    for y, u, v in pixels:
        out += bytes((u, y, v, y)) if order == "uyvy" else bytes((y, u, y, v))
    return bytes(out)


PURE_RED_YUV, PURE_BLUE_YUV = (81, 90, 240), (41, 240, 110)


@pytest.mark.parametrize(
    ("encoding", "order"), [("yuv422", "uyvy"), ("uyvy", "uyvy"), ("yuv422_yuy2", "yuyv"), ("yuyv", "yuyv")]
)
def test_b03_yuv_of_pure_colours_is_within_3_of_bt601(encoding, order):
    row = _packed(order, [PURE_RED_YUV, PURE_BLUE_YUV])
    rgb = raw_to_rgb(row * 2, encoding, 2, 4, 8).astype(int)
    assert np.abs(rgb[:, :2] - _bt601(*PURE_RED_YUV)).max() <= 3
    assert np.abs(rgb[:, 2:] - _bt601(*PURE_BLUE_YUV)).max() <= 3
    assert np.abs(rgb[:, :2] - RED).max() <= 3
    assert np.abs(rgb[:, 2:] - BLUE).max() <= 3


def test_b03_yuv_of_random_bytes_follows_the_formula_everywhere():
    data = np.random.default_rng(1).integers(0, 256, (5, 12), dtype=np.uint8)
    rgb = raw_to_rgb(data.tobytes(), "yuv422_yuy2", 5, 6, 12).astype(int)
    for row in range(5):
        for column in range(6):
            pair = data[row, column // 2 * 4 :]
            wanted = _bt601(int(pair[0 if column % 2 == 0 else 2]), int(pair[1]), int(pair[3]))
            assert np.abs(rgb[row, column] - wanted).max() <= 3


def test_b03_odd_width_of_a_paired_encoding_is_refused():
    with pytest.raises(ContractError, match=r"image\.odd.*width 5"):
        raw_to_rgb(bytes(10 * 2), "yuv422_yuy2", 2, 5, 10)


def test_b04_one_buffer_under_two_labels_gives_two_pictures():
    data = _packed("yuyv", [PURE_RED_YUV, PURE_BLUE_YUV])
    as_uyvy = raw_to_rgb(data, "yuv422", 1, 4, 8).astype(int)
    as_yuyv = raw_to_rgb(data, "yuv422_yuy2", 1, 4, 8).astype(int)
    assert np.abs(as_yuyv[0, 0] - RED).max() <= 3
    assert np.abs(as_uyvy[0, 0] - _bt601(90, 81, 81)).max() <= 3
    assert not np.array_equal(as_uyvy, as_yuyv)


@pytest.mark.parametrize(("encoding", "depth"), [("rgb8", 3), ("bgra8", 4), ("mono8", 1), ("yuyv", 2)])
def test_b06_row_padding_never_shows(encoding, depth):
    width = 6
    rows = np.random.default_rng(2).integers(0, 0xA9, (3, width * depth), dtype=np.uint8)
    padded = np.full((3, width * depth + 5), 0xAA, np.uint8)
    padded[:, : width * depth] = rows
    plain = raw_to_rgb(rows.tobytes(), encoding, 3, width, width * depth)
    np.testing.assert_array_equal(raw_to_rgb(padded.tobytes(), encoding, 3, width, width * depth + 5), plain)


def test_b06_padded_5x3_picture_holds_no_pad_byte():
    rows = np.full((3, 16), 0xAA, np.uint8)
    rows[:, :15] = 9
    rgb = raw_to_rgb(array("B", rows.tobytes()), "rgb8", 3, 5, 16)
    assert rgb.shape == (3, 5, 3)
    assert set(rgb.ravel()) == {9}


@pytest.mark.parametrize(
    ("encoding", "height", "width", "step", "num_bytes", "code"),
    [
        ("rgb8", 3, 5, 14, 42, "image.step"),
        ("rgb8", 3, 5, 16, 47, "image.short"),
        ("rgb8", 0, 5, 15, 0, "image.size"),
        ("mono8", 4, 0, 0, 0, "image.size"),
        ("16UC1", 720, 1280, 1280, 720 * 1280, "image.depth"),
        ("mono16", 1, 1, 2, 2, "image.depth"),
        ("rgb16", 1, 1, 6, 6, "image.depth"),
        ("bayer_rggb16", 1, 1, 2, 2, "image.depth"),
        ("32FC1", 1, 1, 4, 4, "image.depth"),
        ("64FC1", 1, 1, 8, 8, "image.depth"),
    ],
)
def test_b06_b07_b08_bad_layout_is_refused_by_name(encoding, height, width, step, num_bytes, code):
    with pytest.raises(ContractError, match=code) as caught:
        check_layout(encoding, height, width, step, num_bytes)
    assert encoding in str(caught.value)


def test_unknown_encoding_is_refused_with_the_known_ones():
    with pytest.raises(ContractError, match=r"image\.encoding.*'nv21'.*rgb8"):
        raw_to_rgb(bytes(16), "nv21", 2, 2, 4)


@pytest.mark.parametrize("encoding", KNOWN_ENCODINGS)
def test_result_never_shares_memory_with_the_message(encoding):
    data = bytearray(8 * 4 * 2)
    rgb = raw_to_rgb(data, encoding, 2, 8, 32)
    assert not np.shares_memory(rgb, np.frombuffer(data, np.uint8))
