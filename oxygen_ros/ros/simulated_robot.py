"""A robot for bring-up: cameras that draw simple pictures, joints that follow commands. No physics.

One node with the topics, types and joint names of a robot's configuration. For the demonstration, benchmarks
and tests.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from oxygen_ros.config import OxygenConfig, QosConfig
from oxygen_ros.ros import qos
from oxygen_ros.ros.conversions import to_image, to_joint_state, to_jpeg
from oxygen_ros.sim.pictures import background, draw

FOLLOWS = 0.3
"""Share of the way to its target that a joint goes in one joint tick."""


class SimulatedRobot(Node):
    """Publishes pictures and joint states by timers, and follows what the player sends."""

    def __init__(
        self,
        config: OxygenConfig,
        *,
        command_topic: str = "action_player/joint_command",
        camera_hz: float = 30.0,
        joint_hz: float = 100.0,
        width: int = 320,
        height: int = 240,
        **kwargs: Any,
    ) -> None:
        """Make all topics of ``config.robot``; nothing is published before the node is spun."""
        super().__init__("simulated_robot", **kwargs)
        self.config = config
        robot = config.robot
        self.positions = dict.fromkeys((*robot.joint_names, *robot.command_joint_names), 0.0)
        self.targets = dict(self.positions)
        self.num_commands = 0
        self._num_pictures = 0
        self._background = background(height, width)
        self._cameras = {role: self._camera_publisher(role) for role in robot.camera_roles}
        self._names = self._names_of(config)
        self._joints = {
            name: self.create_publisher(JointState, robot.joint_topics[name].topic, qos.sensor(QosConfig()))
            for name in robot.joint_topic_names
        }
        kind = {"array": Float64MultiArray, "joint_state": JointState, "trajectory": JointTrajectory}
        hear = {"array": self._on_array, "joint_state": self._on_state, "trajectory": self._on_trajectory}
        output = config.player.output
        self.create_subscription(kind[output], command_topic, hear[output], qos.newest())
        self.create_timer(1.0 / joint_hz, self.publish_joints)
        for role in robot.camera_roles:
            self.create_timer(1.0 / camera_hz, partial(self.publish_picture, role))

    def publish_picture(self, role: str) -> None:
        """One picture of camera ``role``, stamped now."""
        self._num_pictures += 1
        picture = draw(self._background, self._num_pictures, list(self.positions.values()))
        stamp_ns = int(self.get_clock().now().nanoseconds)
        is_raw = self.config.robot.cameras[role].type == "Image"
        self._cameras[role].publish((to_image if is_raw else to_jpeg)(picture, stamp_ns, role))

    def publish_joints(self) -> None:
        """One step of the joints towards their targets, and one message on each joint topic."""
        for name, target in self.targets.items():
            self.positions[name] += FOLLOWS * (target - self.positions[name])
        stamp_ns = int(self.get_clock().now().nanoseconds)
        for source, publisher in self._joints.items():
            names = self._names[source]
            prefix = self.config.robot.joint_topics[source].name_prefix
            values = np.array([self.positions[name] for name in names])
            publisher.publish(to_joint_state([n.removeprefix(prefix) for n in names], values, stamp_ns))

    def _camera_publisher(self, role: str) -> Publisher:
        camera = self.config.robot.cameras[role]
        message_type = Image if camera.type == "Image" else CompressedImage
        return self.create_publisher(message_type, camera.topic, qos.sensor(QosConfig()))

    def _names_of(self, config: OxygenConfig) -> dict[str, list[str]]:
        """Names that each joint topic carries: by its prefix, the others shared out in order."""
        robot = config.robot
        prefixes = {name: robot.joint_topics[name].name_prefix for name in robot.joint_topic_names}
        plain = [name for name, prefix in prefixes.items() if not prefix]
        rest = [n for n in robot.joint_names if not any(p and n.startswith(p) for p in prefixes.values())]
        shares = dict(
            zip(plain, np.array_split(np.array(rest, dtype=object), max(1, len(plain))), strict=False)
        )
        return {
            name: [n for n in robot.joint_names if n.startswith(prefix)] if prefix else list(shares[name])
            for name, prefix in prefixes.items()
        }

    def _follow(self, names: Any, values: Any) -> None:
        self.num_commands += 1
        self.targets.update(zip(names, (float(value) for value in values), strict=True))

    def _on_array(self, message: Float64MultiArray) -> None:
        self._follow(self.config.robot.command_joint_names, message.data)

    def _on_state(self, message: JointState) -> None:
        self._follow(message.name, message.position)

    def _on_trajectory(self, message: JointTrajectory) -> None:
        self._follow(message.joint_names, message.points[0].positions)
