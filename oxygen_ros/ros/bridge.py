"""The encodings that only cv_bridge knows, where it is installed and works.

Imported lazily: its compiled part is bound to the system's numpy and may fail with another one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oxygen_ros.errors import ContractError
from oxygen_ros.runtime.pictures import Fallback
from oxygen_ros.types import ImageArray


def bridge_reader() -> tuple[Fallback | None, str]:
    """A reader of all encodings of cv_bridge, or None and why there is none."""
    try:
        from cv_bridge import CvBridge, CvBridgeError

        bridge = CvBridge()
    # It is known to fail on import with either, when numpy is not the one it was built for.
    except (ImportError, AttributeError) as error:
        return None, f"{type(error).__name__}: {error}"

    def read(message: Any) -> ImageArray:
        if message.is_bigendian:
            raise ContractError("image.encoding", f"big-endian '{message.encoding}' is not read")
        try:
            image = bridge.imgmsg_to_cv2(message, desired_encoding="rgb8")
        except (CvBridgeError, TypeError, ValueError, AttributeError) as error:
            text = f"cv_bridge cannot read '{message.encoding}': {error}"
            raise ContractError("image.encoding", text) from error
        return np.array(image, dtype=np.uint8)

    return read, ""
