"""Before configure: are the configured joints on this robot? Listens for a moment, and compares names."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock as RosClock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from sensor_msgs.msg import JointState

from oxygen_ros.clock import Clock
from oxygen_ros.config import RobotConfig
from oxygen_ros.errors import ConfigError
from oxygen_ros.ros import qos

LISTEN_S = 1.0


class JointCheck:
    """Await it in a callback of the executor: done when all names were heard, or after a second.

    A robot that is not up yet is no reason to refuse: it is waited for once the node is active.
    """

    def __init__(self, node: Node, robot: RobotConfig, steady: Clock) -> None:
        """Begin to listen."""
        self._node = node
        self._robot = robot
        self._steady = steady
        self._until_ns = steady.now_ns() + round(LISTEN_S * 1e9)
        self._heard: dict[str, set[str]] = {}
        group = ReentrantCallbackGroup()
        self._subscriptions = [
            node.create_subscription(
                JointState,
                source.topic,
                partial(self._on_joints, name),
                qos.sensor(source.qos),
                callback_group=group,
            )
            for name, source in ((n, robot.joint_topics[n]) for n in robot.joint_topic_names)
        ]
        clock = RosClock(clock_type=ClockType.STEADY_TIME)
        # Its callback does nothing: it wakes the executor, which then looks at who waits.
        self._alarm = node.create_timer(LISTEN_S, lambda: None, callback_group=group, clock=clock)

    def refuse_strangers(self) -> None:
        """Stop listening, and refuse joints that every topic was heard without.

        Raises:
            ConfigError: with the joints that are missing, and those that are there.
        """
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self._node.destroy_timer(self._alarm)
        missing = self._missing()
        if not missing or len(self._heard) < len(self._robot.joint_topic_names):
            return
        there = sorted(set().union(*self._heard.values()))
        raise ConfigError(
            "joints_not_on_robot",
            f"robot.joint_names has {', '.join(missing)}, which no joint topic carries; "
            f"the robot has {', '.join(there)}",
            "choose the preset of this robot, or correct robot.joint_names",
        )

    def __await__(self) -> Generator[None, None, None]:
        while self._missing() and self._steady.now_ns() < self._until_ns:
            yield

    def _missing(self) -> list[str]:
        heard = set().union(*self._heard.values())
        return [name for name in self._robot.joint_names if name not in heard]

    def _on_joints(self, name: str, message: JointState) -> None:
        if not message.name or len(message.name) != len(message.position):
            return  # damaged: it proves nothing
        prefix = self._robot.joint_topics[name].name_prefix
        self._heard.setdefault(name, set()).update(prefix + joint for joint in message.name[:1000])
