"""Subscriptions of cameras, joints, instruction and player: each callback stores, and does nothing else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.qos import QoSPolicyKind, QoSProfile
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import String

from oxygen_ros.config import OxygenConfig
from oxygen_ros.msg import PlayerState
from oxygen_ros.ros import qos
from oxygen_ros.ros.managed_node import ManagedNode
from oxygen_ros.ros.sensor_thread import SensorThread
from oxygen_ros.runtime.mailbox import Mailbox
from oxygen_ros.runtime.stamps import from_time

PICTURE_TYPES = {"Image": Image, "CompressedImage": CompressedImage}


class QosWatch:
    """Publishers whose quality of service does not fit ours: nothing they send would ever arrive."""

    def __init__(self, node: ManagedNode) -> None:
        self._node = node
        self.problems: dict[str, str] = {}

    def heard(self, topic: str) -> None:
        """A message has come from ``topic``."""
        self.problems.pop(topic, None)

    def misfit(self, topic: str, event: Any) -> None:
        """A publisher of ``topic`` does not fit."""
        policy = QoSPolicyKind(event.last_policy_kind).name.lower()
        text = f"{topic}: a publisher offers another {policy} than is asked for; nothing it sends is received"
        if topic not in self.problems:
            self._node.get_logger().error(f"{text}. Try: the topic's qos.{policy} parameter")
        self.problems[topic] = text
        self._node.in_executor(self._node.publish_diagnostics)


class SensorInputs:
    """Everything that the mailbox gets. What comes often is served by a thread of its own."""

    def __init__(self, node: ManagedNode, config: OxygenConfig, mailbox: Mailbox) -> None:
        """Subscribe; nothing that comes often is stored before ``start``."""
        self.watch = QosWatch(node)
        self._mailbox = mailbox
        self._thread = SensorThread(node)
        topics, robot = config.topics, config.robot
        for name in robot.joint_topic_names:
            joints = robot.joint_topics[name]
            self._hear(JointState, joints.topic, partial(self._on_joints, name), qos.sensor(joints.qos))
        for role in robot.camera_roles:
            camera = robot.cameras[role]
            message_type, stored = PICTURE_TYPES[camera.type], partial(self._on_picture, role)
            self._hear(message_type, camera.topic, stored, qos.sensor(camera.qos))
        self._hear(PlayerState, topics.player_feedback, self._on_player, qos.newest())
        # Two, since a latched subscription hears latched publishers only. Hearing one twice does no harm.
        quiet = SubscriptionEventCallbacks(incompatible_qos=lambda _: None)
        hear = self._on_instruction
        node.create_subscription(String, topics.instruction, hear, qos.latched(), event_callbacks=quiet)
        node.create_subscription(String, topics.instruction, hear, qos.newest())

    def start(self) -> None:
        """Begin to hear what comes often."""
        self._thread.start()

    def end(self) -> None:
        """Hear no more, once started; before the subscriptions are destroyed."""
        self._thread.end()

    def _hear(self, message_type: Any, topic: str, store: Callable[[Any], None], profile: QoSProfile) -> None:
        def on_message(message: Any) -> None:
            self.watch.heard(topic)
            store(message)

        self._thread.hear(message_type, topic, on_message, profile, partial(self.watch.misfit, topic))

    def _on_picture(self, role: str, message: Image | CompressedImage) -> None:
        self._mailbox.put_picture(role, from_time(message.header.stamp), message)

    def _on_joints(self, source: str, message: JointState) -> None:
        self._mailbox.put_joints(source, from_time(message.header.stamp), message.name, message.position)

    def _on_instruction(self, message: String) -> None:
        self._mailbox.put_instruction(message.data.strip())

    def _on_player(self, message: PlayerState) -> None:
        self._mailbox.put_actions_played(message.actions_played)
