"""Model pictures: exact against the recorded ones, per dialect, any size and memory layout."""

import numpy as np
import pytest
from lerobot_cases import FLOAT32_CASES, FRAMES, PI05_CASES, Frame, camera_keys
from PIL import Image

from oxygen_ros.errors import ContractError
from oxygen_ros.models.pi05.dialect import DIALECTS, LEROBOT_0_4, LEROBOT_0_5_PLUS, OPENPI
from oxygen_ros.models.pi05.images import PictureMaker, fit_square


def make(image, dialect, size=224, **options):
    out = np.full((3, size, size), np.nan, np.float32)
    PictureMaker(size, dialect, **options).write(image, out)
    return out


def noise(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("case", FLOAT32_CASES)
def test_picture_recorded_frames_equal(case, frame):
    recorded = Frame(case, frame)
    inputs, wanted = recorded.inputs(), recorded.images()
    for index, key in enumerate(camera_keys(case)):
        np.testing.assert_allclose(
            make(inputs[key], LEROBOT_0_5_PLUS), wanted[f"image{index}"][0], rtol=0, atol=1e-6
        )


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("case", PI05_CASES)
def test_picture_older_dialect_recorded_frames_equal(case, frame):
    recorded = Frame(case, frame)
    inputs, wanted = recorded.inputs(), recorded.legacy_images()
    for index, key in enumerate(camera_keys(case)):
        np.testing.assert_allclose(
            make(inputs[key], LEROBOT_0_4), wanted[f"image{index}"][0], rtol=0, atol=1e-6
        )


@pytest.mark.parametrize(("name", "value"), [("openpi", -1), ("lerobot_0_4", -3), ("lerobot_0_5_plus", -1)])
def test_letterbox_each_dialect_has_its_value(name, value):
    out = make(noise(120, 240), DIALECTS[name])
    assert (out[:, :56] == value).all()
    assert (out[:, 168:] == value).all()
    assert out[:, 56:168].min() >= -1.0


@pytest.mark.parametrize(("height", "width"), [(480, 640), (256, 256), (100, 37), (720, 1280), (97, 300)])
def test_picture_openpi_equals_pillow_on_8_bits(height, width):
    image = noise(height, width)
    fit = fit_square(height, width, 224)
    small = np.asarray(Image.fromarray(image).resize((fit.width, fit.height), Image.Resampling.BILINEAR))
    wanted = np.zeros((224, 224, 3), np.uint8)
    wanted[fit.top : fit.top + fit.height, fit.left : fit.left + fit.width] = small
    plain = wanted.astype(np.float32) / 255.0 * 2.0 - 1.0
    np.testing.assert_array_equal(make(image, OPENPI), plain.transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("height", "width"), [(480, 640), (31, 17), (1, 5), (5, 1), (1, 1), (224, 100), (225, 224)]
)
def test_picture_lerobot_equals_four_neighbour_mean(height, width):
    image = noise(height, width)
    fit = fit_square(height, width, 56)
    out = make(image, LEROBOT_0_5_PLUS, 56)
    for y, x in [(0, 0), (fit.height - 1, fit.width - 1), (fit.height // 2, fit.width // 3)]:
        source_y = min(max((y + 0.5) * height / fit.height - 0.5, 0), height - 1)
        source_x = min(max((x + 0.5) * width / fit.width - 0.5, 0), width - 1)
        y0, x0 = int(source_y), int(source_x)
        y1, x1 = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
        down, right = source_y - y0, source_x - x0
        mean = (
            image[y0, x0] * (1 - down) * (1 - right)
            + image[y0, x1] * (1 - down) * right
            + image[y1, x0] * down * (1 - right)
            + image[y1, x1] * down * right
        )
        np.testing.assert_allclose(out[:, fit.top + y, fit.left + x], mean / 255 * 2 - 1, atol=1e-4)


def test_picture_of_model_size_is_only_scaled():
    image = noise(224, 224)
    for dialect in DIALECTS.values():
        np.testing.assert_array_equal(
            make(image, dialect), (image.astype(np.float32) / 255.0 * 2.0 - 1.0).transpose(2, 0, 1)
        )


def test_fit_odd_rest_goes_right_and_below():
    assert (fit_square(100, 99, 224).left, fit_square(100, 99, 224).width) == (1, 221)
    assert (fit_square(99, 100, 224).top, fit_square(99, 100, 224).height) == (1, 221)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_picture_upside_down_camera_is_turned_by_180_degrees(dialect):
    image = noise(64, 96)
    turned = make(image, dialect, 64, is_upside_down=True)
    np.testing.assert_array_equal(turned, make(np.ascontiguousarray(image[::-1, ::-1]), dialect, 64))
    assert not np.array_equal(turned, make(image, dialect, 64))


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_picture_any_strides_give_the_same(dialect):
    padded = noise(48, 70)
    view = padded[:, :64]
    assert not view.flags.c_contiguous
    np.testing.assert_array_equal(make(view, dialect, 56), make(view.copy(), dialect, 56))


def test_picture_maker_size_changes_between_frames_gives_fresh_result():
    maker, out = PictureMaker(56, LEROBOT_0_5_PLUS), np.empty((3, 56, 56), np.float32)
    for height, width in [(40, 60), (60, 40), (56, 56), (40, 60)]:
        maker.write(noise(height, width), out)
        np.testing.assert_array_equal(out, make(noise(height, width), LEROBOT_0_5_PLUS, 56))


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((4, 4), np.uint8),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((3, 4, 4), np.uint8),
        np.zeros((4, 4, 3), np.float32),
        np.zeros((0, 4, 3), np.uint8),
    ],
    ids=["grey", "rgba", "planes_first", "float", "empty"],
)
def test_picture_that_is_no_rgb_is_refused(image):
    with pytest.raises(ContractError, match="want \\[H, W, 3\\] of uint8"):
        make(image, LEROBOT_0_5_PLUS)
