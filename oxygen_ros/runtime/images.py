"""Raw camera bytes to RGB, by numpy alone.

Knows encodings, row padding and sizes. Knows no ROS message, no time and no topic: the caller adds those.
The encoding on the label is trusted; depth and 16-bit pictures are refused by name, never squeezed to 8 bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.errors import ContractError
from oxygen_ros.types import ImageArray

# BT.601, limited range (Y 16-235, U and V 16-240), in 1/2^16: what cameras that deliver YUV 4:2:2 send.
_Y, _RV, _GU, _GV, _BU = 76309, 104597, -25675, -53279, 132201
_HALF = 1 << 15


def _rgb(rows: ImageArray) -> ImageArray:
    return rows.reshape(rows.shape[0], -1, 3)


def _bgr(rows: ImageArray) -> ImageArray:
    return rows.reshape(rows.shape[0], -1, 3)[:, :, ::-1]


def _rgba(rows: ImageArray) -> ImageArray:
    return rows.reshape(rows.shape[0], -1, 4)[:, :, :3]


def _bgra(rows: ImageArray) -> ImageArray:
    return rows.reshape(rows.shape[0], -1, 4)[:, :, 2::-1]


def _mono(rows: ImageArray) -> ImageArray:
    return np.repeat(rows[:, :, None], 3, axis=2)


def _yuv(luma: ImageArray, u: ImageArray, v: ImageArray) -> ImageArray:
    """RGB from Y [H, W] and from U and V [H, W/2], one pair of pixels sharing one chroma sample."""
    y = (luma.astype(np.int32) - 16) * _Y + _HALF
    cu = np.repeat(u.astype(np.int32) - 128, 2, axis=1)
    cv = np.repeat(v.astype(np.int32) - 128, 2, axis=1)
    rgb: NDArray[np.int32] = np.stack((y + _RV * cv, y + _GU * cu + _GV * cv, y + _BU * cu), axis=2) >> 16
    return rgb.clip(0, 255).astype(np.uint8)


def _uyvy(rows: ImageArray) -> ImageArray:
    return _yuv(rows[:, 1::2], rows[:, 0::4], rows[:, 2::4])


def _yuyv(rows: ImageArray) -> ImageArray:
    return _yuv(rows[:, 0::2], rows[:, 1::4], rows[:, 3::4])


# Bytes per pixel, and what turns rows of exactly width * bytes into RGB. 8UC3 names no order: taken as RGB.
_READERS: dict[str, tuple[int, Callable[[ImageArray], ImageArray]]] = {
    "rgb8": (3, _rgb),
    "bgr8": (3, _bgr),
    "rgba8": (4, _rgba),
    "bgra8": (4, _bgra),
    "mono8": (1, _mono),
    "8UC1": (1, _mono),
    "8UC3": (3, _rgb),
    "yuv422": (2, _uyvy),
    "uyvy": (2, _uyvy),
    "yuv422_yuy2": (2, _yuyv),
    "yuyv": (2, _yuyv),
}
_PAIRED = frozenset({"yuv422", "uyvy", "yuv422_yuy2", "yuyv"})

KNOWN_ENCODINGS = tuple(_READERS)


def is_depth(encoding: str) -> bool:
    """True for encodings that hold distances or more than 8 bit: never a colour picture."""
    is_wide = encoding.endswith("16") and encoding != "nv16"  # mono16, rgb16, bayer_rggb16 and their like
    return is_wide or encoding.startswith(("16U", "16S", "32F", "32S", "64F"))


def check_encoding(encoding: str) -> None:
    """Refuse a depth encoding by name.

    Raises:
        ContractError: code ``image.depth``.
    """
    if is_depth(encoding):
        raise ContractError(
            "image.depth",
            f"encoding '{encoding}' is a depth or 16-bit picture, wanted one of {', '.join(KNOWN_ENCODINGS)}",
            "point the camera's topic parameter at the colour stream",
        )


def check_layout(encoding: str, height: int, width: int, step: int, num_bytes: int) -> None:
    """Check what can be known without touching a pixel. Cheap enough for a sensor callback.

    Encodings outside ``KNOWN_ENCODINGS`` are only checked for depth; whoever can read them checks the rest.

    Raises:
        ContractError: codes ``image.depth``, ``image.size``, ``image.step``, ``image.short``, ``image.odd``.
    """
    check_encoding(encoding)
    if height < 1 or width < 1:
        raise ContractError("image.size", f"a picture of {width}x{height} pixels ({encoding})")
    if encoding in _READERS and step < width * _READERS[encoding][0]:
        wanted = width * _READERS[encoding][0]
        raise ContractError("image.step", f"step {step} for {width} pixels of {encoding}, wanted {wanted}")
    if num_bytes < step * height:
        wanted = step * height
        raise ContractError("image.short", f"{num_bytes} bytes of {encoding} for {height} rows, not {wanted}")
    if encoding in _PAIRED and width % 2:
        raise ContractError("image.odd", f"width {width} with {encoding}, which stores pixels in pairs")


def raw_to_rgb(data: Any, encoding: str, height: int, width: int, step: int) -> ImageArray:
    """A picture as RGB uint8 [height, width, 3]: contiguous, owned by the caller, without row padding.

    Args:
        data: bytes, array('B') or any other buffer of at least ``step * height`` bytes.
        encoding: one of ``KNOWN_ENCODINGS``.
        height: in pixels.
        width: in pixels.
        step: bytes from one row to the next, padding included.

    Raises:
        ContractError: if the layout does not hold, or (``image.encoding``) the encoding is not known here.
    """
    buffer: NDArray[np.uint8] = np.frombuffer(data, dtype=np.uint8)
    check_layout(encoding, height, width, step, buffer.size)
    if encoding not in _READERS:
        known = ", ".join(KNOWN_ENCODINGS)
        raise ContractError("image.encoding", f"encoding '{encoding}', wanted one of {known}")
    pixel_bytes, read = _READERS[encoding]
    rows = buffer[: step * height].reshape(height, step)[:, : width * pixel_bytes]
    return np.array(read(rows), dtype=np.uint8, order="C", copy=True)
