"""What the doctor sees of the running ROS graph: topics, types, quality of service, rates, joints.

A node of its own that listens for a few seconds and changes nothing. Imported only when it is asked for.

Size: the checks of one stream stand in the order in which they make each other needless.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSCompatibility, qos_check_compatible
from sensor_msgs.msg import CompressedImage, Image, JointState

from oxygen_ros.clock import SteadyClock
from oxygen_ros.config import OxygenConfig
from oxygen_ros.config.camera import QosConfig
from oxygen_ros.errors import ContractError
from oxygen_ros.ros import qos
from oxygen_ros.ros.bridge import bridge_reader
from oxygen_ros.runtime.pictures import MessageReader
from oxygen_ros.tools.examination.findings import Section
from oxygen_ros.types import FloatArray

TYPES = {"Image": Image, "CompressedImage": CompressedImage, "JointState": JointState}
FROZEN_AFTER = 3
"""Messages with the same stamp that make a stream "frozen"."""


@dataclass
class Stream:
    """One topic that was listened to."""

    topic: str
    type: str
    count: int = 0
    stamps: set[int] = field(default_factory=set)
    last: Any = None

    def hear(self, message: Any) -> None:
        """Take one message."""
        self.count += 1
        stamp = message.header.stamp
        self.stamps.add(stamp.sec * 1_000_000_000 + stamp.nanosec)
        self.last = message


@dataclass(frozen=True)
class GraphSight:
    """What the graph told: bytes of one message by topic, and the robot's state if all joints came."""

    message_bytes: dict[str, int]
    state: FloatArray | None


def examine_graph(config: OxygenConfig, seconds: float) -> tuple[list[Section], GraphSight]:
    """Listen for ``seconds`` to all topics of the robot. Blocks."""
    robot = config.robot
    context = Context()
    rclpy.init(context=context)
    node = Node("oxygen_doctor", context=context)
    try:
        cameras = {
            role: Stream(robot.cameras[role].topic, robot.cameras[role].type) for role in robot.camera_roles
        }
        joints = {
            name: Stream(robot.joint_topics[name].topic, "JointState") for name in robot.joint_topic_names
        }
        for role, stream in cameras.items():
            _listen(node, stream, robot.cameras[role].qos)
        for name, stream in joints.items():
            _listen(node, stream, robot.joint_topics[name].qos)
        _spin(node, seconds)
        sections = [
            _camera_section(node, config, cameras, seconds),
            _joint_section(node, config, joints, seconds),
        ]
        sizes = {
            node.resolve_topic_name(stream.topic): len(stream.last.data)
            for stream in cameras.values()
            if stream.last is not None
        }
        return sections, GraphSight(sizes, _state(config, joints))
    finally:
        node.destroy_node()
        rclpy.shutdown(context=context)


def _listen(node: Node, stream: Stream, config: QosConfig) -> None:
    hear: Callable[[Any], None] = stream.hear
    node.create_subscription(TYPES[stream.type], stream.topic, hear, qos.sensor(config))


def _spin(node: Node, seconds: float) -> None:
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    clock = SteadyClock()
    end_ns = clock.now_ns() + round(seconds * 1e9)
    while clock.now_ns() < end_ns:
        executor.spin_once(timeout_sec=0.05)
    executor.shutdown()


def _camera_section(node: Node, config: OxygenConfig, streams: dict[str, Stream], seconds: float) -> Section:
    section = Section("live cameras")
    robot = config.robot
    fallback, _ = bridge_reader()
    reader = MessageReader(robot.cameras, fallback)
    for role, stream in streams.items():
        camera = robot.cameras[role]
        if not _examine_stream(
            section, node, f"camera {role}", stream, camera.qos, camera.expected_rate_hz, seconds
        ):
            continue
        message = stream.last
        try:
            picture = reader.read(role, message)
        except ContractError as error:
            section.refuse_error(error)
            continue
        encoding = getattr(message, "encoding", "") or getattr(message, "format", "")
        section.fact(
            f"camera {role}: {picture.shape[1]} x {picture.shape[0]}, {encoding}, {len(message.data)} bytes",
            role=role,
            width=picture.shape[1],
            height=picture.shape[0],
            encoding=encoding,
        )
    return section


def _joint_section(node: Node, config: OxygenConfig, streams: dict[str, Stream], seconds: float) -> Section:
    section = Section("live joints")
    robot = config.robot
    there: dict[str, float] = {}
    for name, stream in streams.items():
        source = robot.joint_topics[name]
        if _examine_stream(
            section, node, f"joints {name}", stream, source.qos, source.expected_rate_hz, seconds
        ):
            there |= _positions(stream.last, source.name_prefix)
    missing = [joint for joint in robot.joint_names if joint not in there]
    if missing and there:
        section.refuse(
            f"no position of {', '.join(missing)}; there is {', '.join(sorted(there))}",
            "joints_missing",
            "robot.joint_names must be names of the messages, with robot.joint_topics.<source>.name_prefix",
            missing=missing,
            available=sorted(there),
        )
    bad = [joint for joint in robot.joint_names if joint in there and not np.isfinite(there[joint])]
    if bad:
        section.refuse(f"position is not a number: {', '.join(bad)}", "nan_state", "check the joint source")
    return section


def _examine_stream(
    section: Section,
    node: Node,
    what: str,
    stream: Stream,
    config: QosConfig,
    expected_hz: float,
    seconds: float,
) -> bool:
    """Publishers, types, quality of service, rate and stamps of one topic; False if nothing was heard."""
    topic = node.resolve_topic_name(stream.topic)
    publishers = node.get_publishers_info_by_topic(topic)
    wanted = f"sensor_msgs/msg/{stream.type}"
    if not publishers:
        section.refuse(
            f"{what}: nobody publishes {topic}", "no_publisher", _similar(node, topic, wanted), topic=topic
        )
        return False
    others = sorted({info.topic_type for info in publishers} - {wanted})
    if others:
        section.refuse(
            f"{what}: {topic} is {', '.join(others)}, want {wanted}",
            "topic_type",
            "the type parameter, or the topic",
        )
        return False
    for info in publishers:
        verdict, reason = qos_check_compatible(info.qos_profile, qos.sensor(config))
        if verdict == QoSCompatibility.ERROR:
            section.refuse(
                f"{what}: {info.node_name} publishes {topic} "
                f"{info.qos_profile.reliability.name.lower()}, asked for is {config.reliability}: "
                f"nothing arrives ({reason.strip()})",
                "qos",
                "the topic's qos.reliability: best_effort",
            )
            return False
    rate = stream.count / seconds
    values: dict[str, Any] = {"topic": topic, "rate_hz": rate, "publishers": len(publishers)}
    if not stream.count:
        section.refuse(
            f"{what}: {topic} has a publisher, and nothing arrived in {seconds:g} s",
            "silent",
            "is the driver running; do large messages survive the kernel's buffers; one ROS_DOMAIN_ID?",
            **values,
        )
        return False
    if expected_hz and rate < expected_hz / 2:
        section.warn(f"{what}: {topic} at {rate:.1f} Hz, expected {expected_hz:g} Hz", "rate", **values)
    else:
        section.fact(f"{what}: {topic} at {rate:.1f} Hz", **values)
    if 0 in stream.stamps:
        section.warn(f"{what}: {topic} has no stamps", "unstamped", "robot.sync.mode: receive does without")
    elif stream.count >= FROZEN_AFTER and len(stream.stamps) == 1:
        section.warn(
            f"{what}: the stamp of {topic} does not advance",
            "frozen_stamp",
            "robot.sync.stale_clock: receive",
        )
    return True


def _similar(node: Node, topic: str, wanted: str) -> str:
    """Topics of the wanted type, the most alike first."""
    there = [
        name
        for name, types in node.get_topic_names_and_types()
        if wanted in types and node.count_publishers(name)
    ]
    close = get_close_matches(topic, there, n=3, cutoff=0.3) or there[:5]
    return (
        f"{wanted} is published on {', '.join(close)}"
        if close
        else f"no topic is {wanted}: is the driver running?"
    )


def _positions(message: JointState, prefix: str) -> dict[str, float]:
    if len(message.name) != len(message.position):
        return {}
    return {prefix + name: float(value) for name, value in zip(message.name, message.position, strict=True)}


def _state(config: OxygenConfig, streams: dict[str, Stream]) -> FloatArray | None:
    there: dict[str, float] = {}
    for name, stream in streams.items():
        if stream.last is not None:
            there |= _positions(stream.last, config.robot.joint_topics[name].name_prefix)
    values = [there.get(joint, float("nan")) for joint in config.robot.joint_names]
    return np.array(values, np.float32) if np.isfinite(values).all() else None
