"""Feeds the nodes good messages, and damaged ones to one input at a time; watches what actions come out."""

from __future__ import annotations

import copy
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.serialization import serialize_message
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import String

from oxygen_ros.config import OxygenConfig, QosConfig
from oxygen_ros.msg import ActionChunk, PlayerState, TextDelta, TextRequest
from oxygen_ros.ros import qos
from oxygen_ros.ros.conversions import to_image, to_joint_state, to_jpeg
from oxygen_ros.ros.endurance import damage
from oxygen_ros.ros.endurance.damage import Damage
from oxygen_ros.runtime.stamps import from_time

FEED_S = 0.05
CUT_SHARE = 0.1
"""Of messages that end in the middle of their bytes."""


@dataclass(frozen=True)
class Input:
    """One topic of the nodes.

    Attributes:
        good: makes a good message from a running number.
        is_fed: good messages are sent all the time, unless it is muted.
        max_age_ns: how old a message may get; 0 where actions do not depend on it.
    """

    name: str
    publisher: Any
    damages: Mapping[str, Damage]
    good: Callable[[int], Any]
    is_fed: bool = False
    max_age_ns: int = 0


class DamagedInputs(Node):
    """Publishers of all inputs. The timer feeds in the executor's thread, bursts come from the main one."""

    def __init__(self, config: OxygenConfig, namespace: str) -> None:
        super().__init__("damaged_inputs", namespace=namespace)
        self.inputs: dict[str, Input] = {}
        self.num_chunks = 0
        self.newest_chunk_ns = 0
        self.refused: dict[str, dict[str, int]] = {}
        self.kinds_sent: Counter[tuple[str, str]] = Counter()
        self.faults: list[str] = []
        self._config = config
        self._lock = threading.Lock()
        self._muted = ""
        self._actions_until_ns = 0
        self._newest_chunk: ActionChunk | None = None
        self._number = 0
        self._namespace = namespace.strip("/")
        self._add_sensors()
        self._add_texts()
        self.create_subscription(ActionChunk, "oxygen_node/action_chunk", self._on_chunk, qos.newest(50))
        self.create_subscription(PlayerState, "action_player/state", self._on_state, qos.newest(50))
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_health, qos.stream(50))
        self.create_timer(FEED_S, self._feed)

    def now_ns(self) -> int:
        """ROS time."""
        return int(self.get_clock().now().nanoseconds)

    def mute(self, target: Input, margin_ns: int) -> None:
        """Send no good message to ``target`` any more; from now on its actions are watched."""
        with self._lock:
            self._muted = target.name
            self._actions_until_ns = self.now_ns() + target.max_age_ns + margin_ns if target.max_age_ns else 0

    def restore(self) -> int:
        """Send good messages to all again; ROS time at which that began."""
        with self._lock:
            self._muted, self._actions_until_ns = "", 0
            self.inputs["oxygen_node/instruction"].publisher.publish(_text(0))
            return self.now_ns()

    def send_damaged(self, target: Input, rng: Random) -> None:
        """One damaged message."""
        self._number += 1
        message = target.good(self._number)
        kind = rng.choice(sorted(target.damages))
        if rng.random() < CUT_SHARE:
            kind = "bytes cut"
            whole = serialize_message(message)
            target.publisher.publish(bytes(whole[: rng.randrange(4, len(whole) // 2)]))
        else:
            target.damages[kind](message, rng)
            target.publisher.publish(message)
        self.kinds_sent[target.name, kind] += 1

    def _add(
        self, name: str, kind: Any, profile: Any, damages: Mapping[str, Damage], good: Any, **facts: Any
    ) -> None:
        publisher = self.create_publisher(kind, name, profile)
        self.inputs[name] = Input(name, publisher, damages, good, **facts)

    def _add_sensors(self) -> None:
        robot, profile = self._config.robot, qos.sensor(QosConfig())
        for role in robot.camera_roles:
            camera = robot.cameras[role]
            is_raw = camera.type == "Image"
            self._add(
                camera.topic,
                Image if is_raw else CompressedImage,
                profile,
                damage.IMAGE if is_raw else damage.COMPRESSED,
                partial(self._picture, to_image if is_raw else to_jpeg),
                is_fed=True,
                max_age_ns=round(camera.max_age_s * 1e9),
            )
        sources = [robot.joint_topics[name] for name in robot.joint_topic_names]
        for i, source in enumerate(sources):
            self._add(
                source.topic,
                JointState,
                profile,
                damage.JOINTS,
                partial(self._joints, robot.joint_names[i :: len(sources)]),
                is_fed=True,
                max_age_ns=round(source.max_age_s * 1e9),
            )

    def _add_texts(self) -> None:
        self._add("oxygen_node/action_chunk", ActionChunk, qos.newest(10), damage.CHUNK, self._chunk)
        self._add("oxygen_node/ask", TextRequest, qos.stream(50), damage.REQUEST, damage.good_request)
        self._add("oxygen_node/ask_text", String, qos.stream(50), damage.TEXT, _text)
        self._add("oxygen_node/instruction", String, qos.latched(), damage.TEXT, _text)
        self._add("oxygen_node/text_sentence", String, qos.stream(50), damage.TEXT, _text)
        self._add("oxygen_node/text_stream", TextDelta, qos.stream(50), damage.DELTA, damage.good_delta)
        self._add("action_player/state", PlayerState, qos.newest(1), damage.STATE, damage.good_state)

    def _feed(self) -> None:
        with self._lock:
            for target in self.inputs.values():
                if target.is_fed and target.name != self._muted:
                    target.publisher.publish(target.good(0))

    def _picture(self, convert: Any, _: int) -> Any:
        return convert(np.full((48, 64, 3), 90, np.uint8), self.now_ns())

    def _joints(self, names: Sequence[str], _: int) -> JointState:
        return to_joint_state(names, np.zeros(len(names)), self.now_ns())

    def _chunk(self, number: int) -> ActionChunk:
        chunk = copy.deepcopy(self._newest_chunk) or ActionChunk()
        chunk.chunk_id = damage.FIRST_DAMAGED_ID + number
        return chunk

    def _on_chunk(self, message: ActionChunk) -> None:
        if message.chunk_id >= damage.FIRST_DAMAGED_ID or not message.horizon:
            return
        stamp_ns = from_time(message.header.stamp)
        with self._lock:
            self.num_chunks += 1
            self._newest_chunk = message
            self.newest_chunk_ns = max(self.newest_chunk_ns, stamp_ns)
            if self._actions_until_ns and stamp_ns > self._actions_until_ns:
                self.faults.append(f"chunk {message.chunk_id} from a damaged message to {self._muted}")

    def _on_state(self, message: PlayerState) -> None:
        is_damaged = message.chunk_id >= damage.FIRST_DAMAGED_ID and message.chunk_id != damage.UINT64
        if is_damaged and len(self.faults) < 20:
            self.faults.append(f"the player plays the damaged chunk {message.chunk_id}")

    def _on_health(self, message: DiagnosticArray) -> None:
        for line in message.status:
            if line.name.startswith(self._namespace):
                counts = {pair.key: pair.value for pair in line.values if pair.key.startswith("refused_")}
                if counts:
                    name = line.name.removeprefix(f"{self._namespace}/").partition(":")[0]
                    self.refused[name] = {k.removeprefix("refused_"): int(v) for k, v in counts.items()}


def _text(_: int) -> String:
    return String(data="wave to the visitor")
