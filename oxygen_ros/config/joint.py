"""Joints: where their positions come from, what commands may be, and what a gripper's value means."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from oxygen_ros.config.camera import QosConfig
from oxygen_ros.config.field import parameter


@dataclass(frozen=True)
class JointTopicConfig:
    """One JointState topic. Several are merged by joint name."""

    topic: str = parameter("", help="Topic of the joint states.")
    name_prefix: str = parameter(
        "", help="Put before the names in the message, where two arms publish the same names."
    )
    qos: QosConfig = field(default_factory=QosConfig)
    max_age_s: float = parameter(
        0.1, unit="s", minimum=0.001, maximum=3600.0, help="Older positions are stale: the robot holds."
    )
    expected_rate_hz: float = parameter(
        0.0,
        unit="Hz",
        minimum=0.0,
        maximum=10_000.0,
        help="Diagnostics warn below half of it. 0: not checked.",
    )

    @property
    def max_age_ns(self) -> int:
        """The age limit in nanoseconds."""
        return round(self.max_age_s * 1e9)


@dataclass(frozen=True)
class JointConfig:
    """Limits of one commanded joint, in its own unit (rad or m). ``.inf`` is no limit."""

    position_min: float = parameter(-math.inf, unit="rad or m", help="Lowest command. -.inf: no limit.")
    position_max: float = parameter(math.inf, unit="rad or m", help="Highest command. .inf: no limit.")
    max_velocity: float = parameter(
        math.inf, unit="rad/s or m/s", minimum=0.0, help="Fastest change of the command. .inf: no limit."
    )
    max_step: float = parameter(
        math.inf, unit="rad or m", minimum=0.0, help="Largest change between two actions. .inf: no limit."
    )
    command_kind: str = parameter(
        "auto",
        choices=("auto", "position", "velocity", "delta"),
        help="What a command means; hold sends 0 for velocity and delta. auto: robot.command_kind.",
    )


@dataclass(frozen=True)
class GripperConfig:
    """One gripper: model value = (joint - closed) / (open - closed), or 1 minus that.

    ``convention`` says what the model means by 1. ``invert`` mirrors the joint's value between
    ``closed`` and ``open`` once more, for a driver that counts the other way.
    """

    open: float = parameter(
        1.0, unit="rad or m", minimum=-1000.0, maximum=1000.0, help="Value of the joint when open."
    )
    closed: float = parameter(
        0.0, unit="rad or m", minimum=-1000.0, maximum=1000.0, help="Value of the joint when closed."
    )
    convention: str = parameter(
        "one_is_open", choices=("one_is_open", "one_is_closed"), help="What the model means by 1."
    )
    invert: bool = parameter(False, help="Mirrors the joint's value, state and command alike.")
