"""JPEG and PNG to RGB. What can be read from the header is checked first, so that nothing is lost in silence.

Decoders accept pictures that are cut short, and squeeze 16 bit into 8: both are refused here, by name.
"""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np

from oxygen_ros.errors import ContractError
from oxygen_ros.runtime.images import is_depth
from oxygen_ros.types import ImageArray

MAX_PIXELS = 64_000_000
_JPEG_START, _JPEG_END = b"\xff\xd8\xff", b"\xff\xd9"
_PNG_START, _PNG_END = b"\x89PNG\r\n\x1a\n", b"IEND"
_NO_SIZE_MARKERS = frozenset({0xC4, 0xC8, 0xCC})


def check_compressed(picture_format: str, head: bytes) -> None:
    """Check what format and first bytes tell. Cheap enough for a sensor callback.

    Args:
        picture_format: as in sensor_msgs/CompressedImage, e.g. "rgb8; jpeg compressed bgr8".
        head: first 32 bytes or more.

    Raises:
        ContractError: codes ``image.depth``, ``image.empty`` and ``image.format``.
    """
    original = picture_format.split(";")[0].strip()
    is_16_bit_png = head.startswith(_PNG_START) and len(head) > 24 and head[24] == 16
    if is_depth(original) or "compressedDepth" in picture_format or is_16_bit_png:
        raise ContractError(
            "image.depth",
            f"format '{picture_format}' holds a depth or 16-bit picture, wanted 8-bit JPEG or PNG",
            "point the camera's topic parameter at the colour stream",
        )
    if not head:
        raise ContractError("image.empty", f"no bytes (format '{picture_format}')")
    if not head.startswith((_JPEG_START, _PNG_START)):
        raise ContractError("image.format", f"format '{picture_format}' is neither JPEG nor PNG")


def compressed_to_rgb(data: Any, picture_format: str) -> ImageArray:
    """A compressed picture as RGB uint8 [H, W, 3], owned by the caller. Orientation tags are not followed.

    Raises:
        ContractError: as ``check_compressed``, and ``image.short``, ``image.size``, ``image.broken``.
    """
    encoded = bytes(data)
    check_compressed(picture_format, encoded[:32])
    end = _PNG_END if encoded.startswith(_PNG_START) else _JPEG_END
    if encoded.rfind(end) < 0:
        raise ContractError("image.short", f"{len(encoded)} bytes of '{picture_format}' are cut short")
    width, height = picture_size(encoded)
    if not 0 < width * height <= MAX_PIXELS:
        raise ContractError("image.size", f"a picture of {width}x{height} pixels ('{picture_format}')")
    image = _decode(encoded)
    if image is None:
        raise ContractError("image.broken", f"{len(encoded)} bytes of '{picture_format}' cannot be decoded")
    return image


def picture_size(encoded: bytes) -> tuple[int, int]:
    """Width and height that the header of a JPEG or PNG states; (0, 0) if it states none."""
    if encoded.startswith(_PNG_START):
        return struct.unpack(">II", encoded[16:24]) if len(encoded) >= 24 else (0, 0)
    at = 2
    while at + 9 <= len(encoded):
        if encoded[at] != 0xFF:
            return (0, 0)
        marker, size = encoded[at + 1], int.from_bytes(encoded[at + 2 : at + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in _NO_SIZE_MARKERS:
            height, width = struct.unpack(">HH", encoded[at + 5 : at + 9])
            return width, height
        at += 1 if marker == 0xFF else 2 + size
    return (0, 0)


def _decode(encoded: bytes) -> ImageArray | None:
    """By OpenCV, which is faster, else by Pillow; None if the decoder gives up."""
    try:
        import cv2
    except ImportError:
        return _decode_with_pillow(encoded)
    try:
        flags = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
        bgr = cv2.imdecode(np.frombuffer(encoded, dtype=np.uint8), flags)
    except cv2.error:
        return None
    return None if bgr is None else np.ascontiguousarray(bgr[:, :, ::-1])


def _decode_with_pillow(encoded: bytes) -> ImageArray | None:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise ContractError(
            "image.decoder", "compressed pictures need OpenCV or Pillow", "install python3-opencv"
        ) from error
    try:
        with Image.open(io.BytesIO(encoded)) as picture:
            return np.array(picture.convert("RGB"), dtype=np.uint8)
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
        return None
