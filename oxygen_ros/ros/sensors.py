"""Subscriptions of cameras, joints, instruction and player: each callback stores, and does nothing else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.qos import QoSPolicyKind
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import String

from oxygen_ros.config import OxygenConfig
from oxygen_ros.msg import PlayerState
from oxygen_ros.ros import qos
from oxygen_ros.ros.managed_node import ManagedNode
from oxygen_ros.runtime.mailbox import Mailbox
from oxygen_ros.runtime.stamps import from_time

PICTURE_TYPES = {"Image": Image, "CompressedImage": CompressedImage}


class QosWatch:
    """Publishers whose quality of service does not fit ours: nothing they send would ever arrive."""

    def __init__(self, node: ManagedNode) -> None:
        self._node = node
        self.problems: dict[str, str] = {}

    def callbacks(self, topic: str) -> SubscriptionEventCallbacks:
        """Event callbacks of one subscription."""
        return SubscriptionEventCallbacks(incompatible_qos=partial(self._on_incompatible, topic))

    def heard(self, topic: str) -> None:
        """A message has come from ``topic``."""
        self.problems.pop(topic, None)

    def _on_incompatible(self, topic: str, event: Any) -> None:
        policy = QoSPolicyKind(event.last_policy_kind).name.lower()
        text = f"{topic}: a publisher offers another {policy} than is asked for; nothing it sends is received"
        if topic not in self.problems:
            self._node.get_logger().error(f"{text}. Try: the topic's qos.{policy} parameter")
        self.problems[topic] = text
        self._node.publish_diagnostics()


class JointTopics:
    """All JointState topics of a robot."""

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
        group = MutuallyExclusiveCallbackGroup()
        for name in config.robot.joint_topic_names:
            source = config.robot.joint_topics[name]
            node.create_subscription(
                JointState,
                source.topic,
                partial(self._on_joints, name, source.topic),
                qos.sensor(source.qos),
                callback_group=group,
                event_callbacks=watch.callbacks(source.topic),
            )

    def _on_joints(self, name: str, topic: str, message: JointState) -> None:
        self._watch.heard(topic)
        self._store(name, message)


class SensorInputs:
    """Everything that the mailbox gets. Sensors have callback groups of their own."""

    def __init__(self, node: ManagedNode, config: OxygenConfig, mailbox: Mailbox) -> None:
        """Subscribe."""
        self.watch = QosWatch(node)
        self._mailbox = mailbox
        topics = config.topics
        group = MutuallyExclusiveCallbackGroup()
        JointTopics(node, config, self.watch, self._on_joints)
        for role in config.robot.camera_roles:
            camera = config.robot.cameras[role]
            node.create_subscription(
                PICTURE_TYPES[camera.type],
                camera.topic,
                partial(self._on_picture, role, camera.topic),
                qos.sensor(camera.qos),
                callback_group=group,
                event_callbacks=self.watch.callbacks(camera.topic),
            )
        # Two, since a latched subscription hears latched publishers only. Hearing one twice does no harm.
        quiet = SubscriptionEventCallbacks(incompatible_qos=lambda _: None)
        hear = self._on_instruction
        node.create_subscription(String, topics.instruction, hear, qos.latched(), event_callbacks=quiet)
        node.create_subscription(String, topics.instruction, hear, qos.newest())
        node.create_subscription(PlayerState, topics.player_feedback, self._on_player, qos.newest())

    def _on_picture(self, role: str, topic: str, message: Image | CompressedImage) -> None:
        self.watch.heard(topic)
        self._mailbox.put_picture(role, from_time(message.header.stamp), message)

    def _on_joints(self, source: str, message: JointState) -> None:
        self._mailbox.put_joints(source, from_time(message.header.stamp), message.name, message.position)

    def _on_instruction(self, message: String) -> None:
        self._mailbox.put_instruction(message.data.strip())

    def _on_player(self, message: PlayerState) -> None:
        self._mailbox.put_actions_played(message.actions_played)
