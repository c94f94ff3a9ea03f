"""Both nodes in one process with a probe beside them, spun until something has happened. No sleeping."""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from node_process import may_take_s
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import Empty, Float64MultiArray, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from oxygen_ros.clock import SteadyClock
from oxygen_ros.config import QosConfig
from oxygen_ros.msg import ActionChunk, CycleReport, PlayerState, TextDelta, TextRequest
from oxygen_ros.ros import conversions, qos
from oxygen_ros.ros.brain_node import OxygenNode
from oxygen_ros.ros.player_node import ActionPlayer

JOINTS = ("j1", "j2", "j3")
LIMIT_S = 60.0
DOMAIN = int(os.environ.get("ROS_DOMAIN_ID", "15"))
SMALL: dict[str, Any] = {
    "runner.kind": "fake",
    "runner.fake.prefill_ms": 2.0,
    "runner.fake.act_ms": 2.0,
    "runner.fake.decode_step_ms": 1.0,
    "runner.fake.prefix_tokens": 128,
    "robot.camera_roles": ["front"],
    "robot.cameras.front.topic": "front/image",
    "robot.cameras.front.max_age_s": 5.0,
    "robot.joint_names": list(JOINTS),
    "robot.joint_topics.joints.max_age_s": 5.0,
    "robot.sync.max_reuse": 100000,
    "safety.max_chunk_age_s": 30.0,
    "safety.brain_timeout_s": 30.0,
    "model.horizon": 16,
    "cycle.action_rate_hz": 20.0,
    "cycle.execute_horizon": 4,
    "instruction": "wave",
    "enable_control": True,
    "text.max_calls_per_s": 1000.0,
}
_numbers = itertools.count(1)


class Probe(Node):
    """Sends inputs, keeps everything that comes out, by topic."""

    def __init__(self, context: Context, namespace: str) -> None:
        super().__init__("probe", context=context, namespace=namespace)
        self.got: dict[str, list[Any]] = defaultdict(list)
        self.senders: dict[str, Any] = {}
        self.hear(ActionChunk, "oxygen_node/action_chunk", qos.newest(50))
        self.hear(JointTrajectory, "oxygen_node/joint_trajectory", qos.newest(50))
        self.hear(TextDelta, "oxygen_node/text_stream", qos.stream(500))
        self.hear(String, "oxygen_node/text", qos.latched())
        self.hear(String, "oxygen_node/text_sentence", qos.stream(500))
        self.hear(CycleReport, "oxygen_node/cycle_report", qos.stream(500))
        self.hear(PlayerState, "action_player/state", qos.newest(50))
        self.hear(DiagnosticArray, "/diagnostics", qos.stream(50))
        self.add_sender("image", Image, "front/image", qos.sensor(QosConfig()))
        self.add_sender("joints", JointState, "joint_states", qos.sensor(QosConfig()))
        self.add_sender("instruction", String, "oxygen_node/instruction", qos.latched())
        self.add_sender("ask", TextRequest, "oxygen_node/ask", qos.stream(50))
        self.add_sender("ask_text", String, "oxygen_node/ask_text", qos.stream(50))
        self.add_sender("stop", Empty, "action_player/stop", qos.newest())
        self.add_sender("chunk", ActionChunk, "oxygen_node/action_chunk", qos.newest(50))

    def hear(self, message_type: Any, topic: str, profile: QoSProfile, key: str = "") -> None:
        """Keep messages of ``topic`` under ``key``, by default the last part of its name."""
        store = self.got[key or topic.rpartition("/")[2]]
        self.create_subscription(message_type, topic, store.append, profile)

    def add_sender(self, name: str, message_type: Any, topic: str, profile: QoSProfile) -> None:
        self.senders[name] = self.create_publisher(message_type, topic, profile)

    def send(self, name: str, message: Any) -> None:
        self.senders[name].publish(message)

    def now_ns(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def send_picture(self, grey: int = 100, stamp_ns: int | None = None, **changes: Any) -> None:
        picture = np.full((12, 16, 3), grey, np.uint8)
        message = conversions.to_image(picture, self.now_ns() if stamp_ns is None else stamp_ns)
        for name, value in changes.items():
            setattr(message, name, value)
        self.send("image", message)

    def send_joints(self, names=JOINTS, positions=(0.1, 0.2, 0.3), stamp_ns: int | None = None) -> None:
        stamp_ns = self.now_ns() if stamp_ns is None else stamp_ns
        message = conversions.to_joint_state(names, np.zeros(0), stamp_ns)
        message.position = [float(p) for p in positions]
        self.send("joints", message)

    def feed(self) -> None:
        """One good picture and one good joint message."""
        self.send_picture()
        self.send_joints()


class Bench:
    """Nodes on one executor of the test's thread. ``until`` is the only way time passes."""

    def __init__(self, context: Context, **overrides: Any) -> None:
        self.context = context
        self.namespace = f"/bench_{os.getpid()}_{next(_numbers)}"
        self.executor = SingleThreadedExecutor(context=context)
        self.probe = Probe(context, self.namespace)
        self.executor.add_node(self.probe)
        self.overrides = {**SMALL, **{key.replace("__", "."): value for key, value in overrides.items()}}
        self.overrides = {key: value for key, value in self.overrides.items() if value is not None}
        self.nodes: list[Any] = []
        self.steady = SteadyClock()
        self.feed: Callable[[], object] | None = self.probe.feed

    def add(self, node_class: Any, **overrides: Any) -> Any:
        """Make a node with the bench's parameters and ``overrides``, and spin it from now on."""
        values = {**self.overrides, **overrides}
        node = node_class(
            context=self.context,
            namespace=self.namespace,
            parameter_overrides=[Parameter(name, value=value) for name, value in values.items()],
        )
        self.nodes.append(node)
        self.executor.add_node(node)
        return node

    def brain(self, **overrides: Any) -> OxygenNode:
        return self.add(OxygenNode, **overrides)

    def player(self, **overrides: Any) -> ActionPlayer:
        types = {"array": Float64MultiArray, "joint_state": JointState, "trajectory": JointTrajectory}
        output = self.overrides.get("player.output", "array")
        self.probe.hear(types[output], "action_player/joint_command", qos.newest(50))
        return self.add(ActionPlayer, **overrides)

    def mailbox(self) -> Any:
        """The brain's mailbox, once it is active."""
        brain = next(node for node in self.nodes if isinstance(node, OxygenNode))
        self.until_state(brain, "active")
        return brain._parts.mailbox

    def acted(self) -> list[CycleReport]:
        return [r for r in self.got("cycle_report") if r.status == CycleReport.STATUS_ACTED]

    def got(self, key: str) -> list[Any]:
        return self.probe.got[key]

    def until(self, condition: Callable[[], Any], what: str = "", limit_s: float = LIMIT_S) -> Any:
        """Spin, feeding inputs by ``feed`` unless that is None, until ``condition`` is true; its value."""
        until_ns = self.steady.now_ns() + round(may_take_s(limit_s) * 1e9)
        while not (value := condition()):
            if self.steady.now_ns() > until_ns:
                raise AssertionError(f"did not happen in {limit_s:g} s: {what}\n{self.describe()}")
            if self.feed is not None:
                self.feed()
            for _ in range(10):
                self.executor.spin_once(timeout_sec=0.01)
        return value

    def spin_s(self, seconds: float) -> None:
        """Let ``seconds`` pass, to see that something does not happen."""
        until_ns = self.steady.now_ns() + round(seconds * 1e9)
        self.until(lambda: self.steady.now_ns() >= until_ns, limit_s=seconds + LIMIT_S)

    def until_state(self, node: Any, state: str) -> None:
        self.until(lambda: node.state == state, f"{node.get_name()} {state}, is {node.state}")

    def call(self, service_type: Any, name: str, request: Any = None) -> Any:
        """Response of a service of the nodes."""
        client = self.probe.create_client(service_type, name)
        self.until(client.service_is_ready, f"service {name}")
        future = client.call_async(request or service_type.Request())
        self.until(future.done, f"answer of {name}")
        self.probe.destroy_client(client)
        return future.result()

    def trigger(self, name: str) -> Any:
        return self.call(Trigger, name)

    def health(self, line: str) -> Any:
        """Newest diagnostic status whose name ends with ``line`` and is of this bench."""
        for array in reversed(self.got("diagnostics")):
            for status in array.status:
                if status.name.startswith(self.namespace.strip("/")) and status.name.endswith(line):
                    return status
        return None

    def reasons(self) -> set[str]:
        return {report.reason for report in self.got("cycle_report")}

    def refused(self, kind: str) -> int:
        """Count of a refusal in the newest report."""
        if not self.got("cycle_report"):
            return 0
        report = self.got("cycle_report")[-1]
        counts = dict(zip(report.refusal_kinds, report.refusal_counts, strict=True))
        return counts.get(kind, 0)

    def describe(self) -> str:
        counts = {key: len(values) for key, values in self.probe.got.items()}
        states = {node.get_name(): (node.state, node._failure) for node in self.nodes}
        last = self.got("cycle_report")[-1:] and self.got("cycle_report")[-1].reason
        return f"got {counts}; states {states}; last report: {last!r}"

    def close(self) -> None:
        self.executor.shutdown(timeout_sec=5.0)
        for node in self.nodes:
            node.shut_down()
            node.destroy_node()
        self.probe.destroy_node()


@contextmanager
def bench(**overrides: Any) -> Iterator[Bench]:
    """A bench with a context of its own."""
    context = Context()
    context.init(domain_id=DOMAIN)
    made = Bench(context, **overrides)
    try:
        yield made
    finally:
        made.close()
        context.try_shutdown()
