"""Simple pictures for bring-up: what a simulated robot without physics sees."""

from __future__ import annotations

import numpy as np

from oxygen_ros.types import ImageArray


def background(height: int, width: int) -> ImageArray:
    """A table seen from above: a smooth ramp with a darker far edge."""
    ramp = np.linspace(60, 170, height)[:, None, None] * np.array([1.0, 0.9, 0.75])
    return np.broadcast_to(ramp, (height, width, 3)).astype(np.uint8)


def draw(canvas: ImageArray, number: int, positions: list[float]) -> ImageArray:
    """A red square that wanders, and a bar per joint whose height follows its position."""
    picture = canvas.copy()
    height, width, _ = picture.shape
    side = height // 8
    x = (width - side) // 2 + int((width - side) / 2.2 * np.sin(number / 40))
    y = height // 3 + int(height / 6 * np.cos(number / 25))
    picture[y : y + side, x : x + side] = (200, 30, 30)
    step = max(1, width // max(1, len(positions)))
    for i, position in enumerate(positions):
        bar = int(height / 8 * (1 + np.tanh(position)))
        picture[height - bar :, i * step : i * step + max(1, step - 2)] = (40, 70, 160)
    return picture
