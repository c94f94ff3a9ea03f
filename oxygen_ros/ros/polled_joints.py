"""Joint topics that are looked at when their positions are wanted, instead of a callback for each message.

A callback costs the executor some 0.2 ms of Python: at 200 Hz more than all else that the player does. One
caller at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.event_handler import EventHandler
from sensor_msgs.msg import JointState

from oxygen_ros.config import OxygenConfig
from oxygen_ros.ros import qos
from oxygen_ros.ros.managed_node import ManagedNode
from oxygen_ros.ros.sensors import QosWatch


class PolledGroup(CallbackGroup):
    """Keeps subscriptions from the executor. Their events get through: a publisher that does not fit."""

    def can_execute(self, entity: Any) -> bool:
        """True for events."""
        return isinstance(entity, EventHandler)

    def beginning_execution(self, entity: Any) -> bool:
        """True for events."""
        return isinstance(entity, EventHandler)

    def ending_execution(self, entity: Any) -> None:
        """Nothing to note."""


class PolledJoints:
    """Newest message of each JointState topic, taken on demand."""

    def __init__(
        self,
        node: ManagedNode,
        config: OxygenConfig,
        watch: QosWatch,
        store: Callable[[str, JointState], None],
    ) -> None:
        """Subscribe; ``store`` gets the name of the source and the message."""
        self._watch = watch
        self._store = store
        group = PolledGroup()
        self._sources = [
            (
                name,
                source.topic,
                node.create_subscription(
                    JointState,
                    source.topic,
                    lambda _: None,
                    qos.sensor(source.qos),
                    callback_group=group,
                    event_callbacks=watch.callbacks(source.topic),
                ),
            )
            for name, source in ((n, config.robot.joint_topics[n]) for n in config.robot.joint_topic_names)
        ]

    def poll(self) -> None:
        """Store what has come since the last time, oldest first."""
        for name, topic, subscription in self._sources:
            with subscription.handle:
                while (taken := subscription.handle.take_message(JointState, False)) is not None:
                    self._watch.heard(topic)
                    self._store(name, taken[0])
