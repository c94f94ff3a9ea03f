"""Quality of service as bags keep it: numbers or words in YAML, or nothing at all."""

from __future__ import annotations

from typing import Any

import yaml
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2.errors import ReaderError
from rosbags.rosbag2.metadata import parse_qos

_FOREVER = QosTime(9223372036, 854775807)


def is_latched(offered: Any) -> bool | None:
    """Whether a publisher kept its last message for late joiners; None if the bag does not say."""
    if not offered:
        return None
    try:
        profiles = parse_qos(offered)
    except (ReaderError, yaml.YAMLError, KeyError, TypeError, AttributeError):
        return None
    if not profiles:
        return None
    return any(profile.durability is QosDurability.TRANSIENT_LOCAL for profile in profiles)


def profile(*, latched: bool = False, reliable: bool = True, depth: int = 1) -> Qos:
    """A profile to write into a bag."""
    return Qos(
        history=QosHistory.KEEP_LAST,
        depth=depth,
        reliability=QosReliability.RELIABLE if reliable else QosReliability.BEST_EFFORT,
        durability=QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE,
        deadline=_FOREVER,
        lifespan=_FOREVER,
        liveliness=QosLiveliness.AUTOMATIC,
        liveliness_lease_duration=_FOREVER,
        avoid_ros_namespace_conventions=False,
    )
