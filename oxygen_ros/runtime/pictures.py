"""Reads camera messages of a robot: raw or compressed, with the encoding that the configuration overrides.

Takes anything with the fields of sensor_msgs/Image or CompressedImage: a bag and a live topic are read by the
same code. Knows no ROS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oxygen_ros.config.camera import CameraConfig
from oxygen_ros.errors import ContractError
from oxygen_ros.runtime.compressed import check_compressed, compressed_to_rgb
from oxygen_ros.runtime.images import KNOWN_ENCODINGS, check_layout, raw_to_rgb
from oxygen_ros.types import ImageArray

Fallback = Callable[[Any], ImageArray]


class MessageReader:
    """A PictureReader. Stateless: safe to share between threads."""

    def __init__(self, cameras: Mapping[str, CameraConfig], fallback: Fallback | None = None) -> None:
        """Read messages of ``cameras``, by role.

        Args:
            cameras: type and encoding override of each role.
            fallback: reads raw messages in encodings that are not known here; raises ContractError.
        """
        self._cameras = cameras
        self._fallback = fallback

    def check(self, role: str, payload: Any) -> None:
        """Look at what is cheap to look at.

        Raises:
            ContractError: if the message cannot be read, as far as its fields tell.
        """
        if self._cameras[role].type == "CompressedImage":
            check_compressed(payload.format, bytes(payload.data[:32]))
            return
        encoding = self._encoding(role, payload)
        check_layout(encoding, payload.height, payload.width, payload.step, len(payload.data))
        if encoding not in KNOWN_ENCODINGS and self._fallback is None:
            known = ", ".join(KNOWN_ENCODINGS)
            raise ContractError(
                "image.encoding",
                f"encoding '{encoding}' is not one of {known}",
                "install cv_bridge, which knows more, or set encoding_override if the label is wrong",
            )

    def read(self, role: str, payload: Any) -> ImageArray:
        """RGB uint8 [H, W, 3], owned by the caller.

        Raises:
            ContractError: if the message cannot be read.
        """
        if self._cameras[role].type == "CompressedImage":
            return compressed_to_rgb(payload.data, payload.format)
        encoding = self._encoding(role, payload)
        if encoding not in KNOWN_ENCODINGS and self._fallback is not None:
            return self._fallback(payload)
        return raw_to_rgb(payload.data, encoding, payload.height, payload.width, payload.step)

    def _encoding(self, role: str, payload: Any) -> str:
        return self._cameras[role].encoding_override or str(payload.encoding)
