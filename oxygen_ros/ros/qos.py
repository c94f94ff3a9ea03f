"""Quality of service of each topic, with its reason."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from oxygen_ros.config.camera import QosConfig


def sensor(config: QosConfig) -> QoSProfile:
    """Cameras and joints. By default best effort, which hears every publisher, and only the newest."""
    reliability = {"best_effort": ReliabilityPolicy.BEST_EFFORT, "reliable": ReliabilityPolicy.RELIABLE}
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST, depth=config.depth, reliability=reliability[config.reliability]
    )


def newest(depth: int = 1) -> QoSProfile:
    """Actions, commands, states: reliable as controllers want it; an old command is never sent again."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.VOLATILE,
    )


def stream(depth: int = 200) -> QoSProfile:
    """Text as it grows, sentences, questions, reports: every message counts, late joiners get none."""
    return newest(depth)


def pieces() -> QoSProfile:
    """Text as it grows, where it is heard: a cycle sends its pieces at once, rows times rounds of them."""
    return newest(2000)


def latched() -> QoSProfile:
    """Instruction and complete texts: a late joiner gets the last one."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=1,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
    )
