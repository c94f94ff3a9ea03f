"""Camera pictures to model pictures: resize keeping the aspect, letterbox, [-1, 1], planes first.

Numpy alone, and Pillow for openpi's resize. Writes straight into the array that the model gets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.errors import ContractError
from oxygen_ros.models.pi05.dialect import Dialect, Resize
from oxygen_ros.types import FloatArray, ImageArray

_LEVELS = (np.arange(256, dtype=np.float32) / np.float32(255.0)) * np.float32(2.0) - np.float32(1.0)


@dataclass(frozen=True)
class Fit:
    """Where a picture of one size lies in the square: its new size and its top left corner."""

    height: int
    width: int
    top: int
    left: int


def fit_square(height: int, width: int, size: int) -> Fit:
    """Largest picture of the same aspect in a square of ``size``; an odd rest goes right and below."""
    ratio = max(width / size, height / size)
    new_height, new_width = max(1, int(height / ratio)), max(1, int(width / ratio))
    return Fit(new_height, new_width, (size - new_height) // 2, (size - new_width) // 2)


class PictureMaker:
    """Makes model pictures of one camera. Keeps the taps of the last size it saw, nothing else."""

    def __init__(self, size: int, dialect: Dialect, *, is_upside_down: bool = False) -> None:
        self._size = size
        self._dialect = dialect
        self._is_upside_down = is_upside_down
        self._shape = (0, 0)
        self._fit = Fit(0, 0, 0, 0)
        self._corner: NDArray[np.intp] = np.zeros((3, 0, 0), np.intp)
        self._steps = (0, 0, 0, 0)
        self._right = self._down = np.zeros(0, np.float32)

    def write(self, image: ImageArray, out: FloatArray) -> None:
        """Write the model picture of ``image`` into ``out``.

        Args:
            image: RGB uint8 [H, W, 3], any strides.
            out: float32 [3, size, size]; all of it is written.

        Raises:
            ContractError: if ``image`` is no RGB uint8 picture.
        """
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or not image.size:
            raise ContractError(
                "picture_shape",
                f"got a picture of shape {image.shape} and type {image.dtype}, want [H, W, 3] of uint8",
                "convert the camera's pictures to rgb8",
            )
        pixels = np.ascontiguousarray(image[::-1, ::-1] if self._is_upside_down else image)
        self._plan(image.shape[0], image.shape[1])
        fit = self._fit
        if (fit.height, fit.width) != (self._size, self._size):
            out.fill(self._dialect.letterbox)
        window = out[:, fit.top : fit.top + fit.height, fit.left : fit.left + fit.width]
        if pixels.shape[:2] == (fit.height, fit.width):
            window[...] = np.take(_LEVELS, pixels).transpose(2, 0, 1)
        elif self._dialect.resize is Resize.PIL_UINT8:
            window[...] = np.take(_LEVELS, _resize_pil(pixels, fit)).transpose(2, 0, 1)
        else:
            self._resize_float(pixels, window)

    def _plan(self, height: int, width: int) -> None:
        if self._shape == (height, width):
            return
        self._shape = (height, width)
        self._fit = fit_square(height, width, self._size)
        rows, self._down = _taps(height, self._fit.height)
        columns, self._right = _taps(width, self._fit.width)
        row_step = max(width, 2) * 3
        self._corner = rows[:, None] * row_step + columns * 3 + np.arange(3)[:, None, None]
        self._steps = (0, 3, row_step, row_step + 3)

    def _resize_float(self, pixels: ImageArray, window: FloatArray) -> None:
        """Write the four-neighbour mean of ``pixels`` [H, W, 3] into ``window`` [3, h, w]."""
        if min(pixels.shape[:2]) == 1:  # a single row or column is its own neighbour
            repeats = [2 if length == 1 else 1 for length in pixels.shape[:2]]
            pixels = pixels.repeat(repeats[0], axis=0).repeat(repeats[1], axis=1)
        flat = pixels.reshape(-1)
        upper, upper_right, lower, lower_right = (
            np.take(flat[step:], self._corner).astype(np.float32) for step in self._steps
        )
        upper += (upper_right - upper) * self._right
        lower += (lower_right - lower) * self._right
        upper += (lower - upper) * self._down[:, None]
        upper *= np.float32(2.0 / 255.0)
        np.subtract(upper, np.float32(1.0), out=window)


def _taps(length: int, new_length: int) -> tuple[NDArray[np.intp], FloatArray]:
    """Bilinear taps of half-pixel centres along one axis, edges repeated.

    Returns:
        For every output its lower neighbour (the other is the next one), and the weight of the other.
    """
    scale = float(np.float32(length) / np.float32(new_length))
    # Rounded once to float32, as a fused multiply-add does it: the recorded weights are made so.
    centre = ((np.arange(new_length) + 0.5) * scale - 0.5).astype(np.float32)
    centre = np.clip(centre, np.float32(0.0), np.float32(length - 1))
    low = np.minimum(centre.astype(np.intp), max(length - 2, 0))
    return low, centre - low.astype(np.float32)


def _resize_pil(pixels: ImageArray, fit: Fit) -> ImageArray:
    from PIL import Image

    picture = Image.fromarray(pixels)
    return np.asarray(picture.resize((fit.width, fit.height), resample=Image.Resampling.BILINEAR))
