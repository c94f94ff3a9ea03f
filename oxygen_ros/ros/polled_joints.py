"""Joint topics that are looked at when their positions are wanted, instead of a callback for each message.

A message that wakes the executor costs about a millisecond of Python: at 200 Hz more than all else that the
player does. Their events would wake it as well, so there are none: the brain, which hears the same topics,
reports a publisher whose quality of service does not fit. One caller at a time.
"""

from __future__ import annotations

from collections.abc import Callable

from rclpy.event_handler import SubscriptionEventCallbacks
from sensor_msgs.msg import JointState

from oxygen_ros.config import RobotConfig
from oxygen_ros.ros import qos
from oxygen_ros.ros.managed_node import ManagedNode
from oxygen_ros.ros.never_group import NeverGroup


class PolledJoints:
    """Newest message of each JointState topic, taken on demand."""

    def __init__(
        self, node: ManagedNode, robot: RobotConfig, store: Callable[[str, JointState], None]
    ) -> None:
        """Subscribe; ``store`` gets the name of the source and the message."""
        self._store = store
        group, no_events = NeverGroup(), SubscriptionEventCallbacks(use_default_callbacks=False)
        self._sources = [
            (
                name,
                node.create_subscription(
                    JointState,
                    source.topic,
                    lambda _: None,
                    qos.sensor(source.qos),
                    callback_group=group,
                    event_callbacks=no_events,
                ),
            )
            for name, source in ((n, robot.joint_topics[n]) for n in robot.joint_topic_names)
        ]

    def poll(self) -> None:
        """Store what has come since the last time, oldest first."""
        for name, subscription in self._sources:
            with subscription.handle:
                while (taken := subscription.handle.take_message(JointState, False)) is not None:
                    self._store(name, taken[0])
