"""A mailbox on simulated time: steady and ROS time move together, ROS time has its own origin."""

from __future__ import annotations

import numpy as np

from oxygen_ros.clock import SimClock
from oxygen_ros.config.camera import CameraConfig
from oxygen_ros.config.joint import JointTopicConfig
from oxygen_ros.config.robot import RobotConfig
from oxygen_ros.config.sync import SyncConfig
from oxygen_ros.errors import ContractError
from oxygen_ros.runtime.mailbox import Mailbox
from oxygen_ros.runtime.readiness import MailboxRules
from oxygen_ros.runtime.refusals import Refusals
from oxygen_ros.types import ImageArray

MS = 1_000_000
S = 1_000 * MS
ROS_ORIGIN_NS = 1_700_000_000 * S


class GreyReader:
    """Reads a payload number as a 2x2 picture of that grey; numbers below 0 break when read, None at once."""

    def check(self, role: str, payload: object) -> None:
        if payload is None:
            raise ContractError("image.depth", f"{role}: encoding '16UC1'")

    def read(self, role: str, payload: int) -> ImageArray:
        if payload < 0:
            raise ContractError("image.broken", f"{role}: cut short")
        return np.full((2, 2, 3), payload, np.uint8)


class Bench:
    """A mailbox, its clock, and what it said."""

    def __init__(
        self, cameras=("front",), joints=("j1", "j2"), sources=("arm",), optional=(), **sync
    ) -> None:
        robot = RobotConfig(
            camera_roles=tuple(cameras),
            cameras={c: CameraConfig(topic=f"{c}/image", required=c not in optional) for c in cameras},
            joint_names=tuple(joints),
            joint_topic_names=tuple(sources),
            joint_topics={s: JointTopicConfig(topic=f"{s}/joint_states") for s in sources},
            sync=SyncConfig(**sync),
        )
        self.clock = SimClock(5 * S)
        self.said: list[str] = []
        self.refusals = Refusals(self.clock, self.said.append)
        self.box = Mailbox(
            MailboxRules.of(robot), GreyReader(), self.clock, self.ros_ns, self.refusals, self.said.append
        )
        self.box.put_instruction("wave")

    def ros_ns(self) -> int:
        return ROS_ORIGIN_NS + self.clock.now_ns()

    def wait_ms(self, ms: int) -> None:
        self.clock.advance_ns(ms * MS)

    def picture(self, role="front", grey=1, stamp_ns: int | None = None) -> None:
        self.box.put_picture(role, self.ros_ns() if stamp_ns is None else stamp_ns, grey)

    def joints(
        self, names=("j1", "j2"), positions=(0.1, 0.2), source="arm", stamp_ns: int | None = None
    ) -> None:
        self.box.put_joints(
            source, self.ros_ns() if stamp_ns is None else stamp_ns, list(names), list(positions)
        )

    def feed(self, cameras=("front",)) -> None:
        for role in cameras:
            self.picture(role)
        self.joints()

    def count(self, kind: str) -> int:
        return self.box.refusals().get(kind, 0)
