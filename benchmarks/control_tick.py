"""Where the control cycle should run: inside the timer's callback, or on a thread that the callback wakes.

Usage: python -m benchmarks.control_tick [--seconds 10]. The real node with the fake runner gets three raw
640x480 cameras at 30 Hz and joints at 200 Hz from another process, over shared memory. Per way of running the
cycle, and for cycles that wait (as kernels do) or spin in Python (the worst case), one line:

  error of the cycle's period, p50 / p95 / max in ms
  age of the joints that a cycle begins with, by their stamp, p50 / p95 / max in ms
  joint messages stored, of those sent
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from numpy.typing import NDArray
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Image, JointState

from oxygen_ros.clock import SteadyClock
from oxygen_ros.config import OxygenConfig, QosConfig, load_config
from oxygen_ros.ros import qos
from oxygen_ros.ros.brain_node import OxygenNode
from oxygen_ros.ros.conversions import to_image, to_joint_state
from oxygen_ros.types import CycleReport

ROOT = Path(__file__).resolve().parents[1]
PROFILE = ROOT / "config" / "fastdds_shm.xml"
PERIOD_MS = 100.0
JOINT_HZ = 200.0
CAMERA_HZ = 30.0
GIVEN = {
    "preset": "humanoid",
    "runner.kind": "fake",
    "runner.fake.prefill_ms": 25.0,
    "runner.fake.act_ms": 20.0,
    "runner.fake.decode_step_ms": 5.0,
    "text.tasks.subtask.every_cycles": 1,
    "cycle.action_rate_hz": 50.0,
    "cycle.execute_horizon": 5,
    "instruction": "wave",
    "robot.joint_topic_names": ["body"],
    "robot.joint_topics.body.topic": "joint_states",
}


class SpinningClock(SteadyClock):
    """Waits by spinning in Python: holds the interpreter as badly as glue code can."""

    def sleep_until_ns(self, deadline_ns: int) -> None:
        """Spin until ``deadline_ns``."""
        while self.now_ns() < deadline_ns:
            pass


class MeasuredNode(OxygenNode):
    """Notes when each cycle starts, how old its joints are, and which joint messages were stored."""

    runs_in_callback = False

    def __init__(self, **kwargs: Any) -> None:
        self.starts_ns: list[int] = []
        self.joint_ages_ms: list[float] = []
        self.numbers: list[float] = []
        self._newest_ns = 0
        super().__init__(**kwargs)

    def set_up(self, config: OxygenConfig, prepared: Any) -> None:
        """As the node does, with notes."""
        super().set_up(config, prepared)
        parts: Any = self._parts
        run, put = parts.cycle.run, parts.mailbox.put_joints

        def noted_run(due_ns: int) -> CycleReport:
            self.starts_ns.append(self.steady.now_ns())
            self.joint_ages_ms.append((self.now_ns() - self._newest_ns) / 1e6)
            return run(due_ns)

        def noted_put(source: str, stamp_ns: int, names: Sequence[str], positions: Sequence[float]) -> None:
            self._newest_ns = stamp_ns
            self.numbers.append(positions[0])
            put(source, stamp_ns, names, positions)

        parts.cycle.run, parts.mailbox.put_joints = noted_run, noted_put

    def forget(self) -> None:
        """Begin to measure."""
        for notes in (self.starts_ns, self.joint_ages_ms, self.numbers):
            notes.clear()

    def _on_tick(self) -> None:
        if self.runs_in_callback and self._parts is not None:
            self._parts.cycle.run(self.steady.now_ns())
        else:
            super()._on_tick()


def send(seconds: float) -> None:
    """Be the robot for so long. Pictures are serialised once: the sender takes little of the machine."""
    rclpy.init()
    node = rclpy.create_node("load")
    robot = load_config(overrides=GIVEN).config.robot
    best_effort = qos.sensor(QosConfig())
    picture = np.random.default_rng(0).integers(0, 256, (480, 640, 3), dtype=np.uint8)
    raw = serialize_message(to_image(picture, 0))
    values = np.zeros(len(robot.joint_names))
    joints = node.create_publisher(JointState, "joint_states", best_effort)

    def send_joints() -> None:
        values[0] += 1  # the number of the message
        joints.publish(to_joint_state(robot.joint_names, values, node.get_clock().now().nanoseconds))

    node.create_timer(1 / JOINT_HZ, send_joints)
    for role in robot.camera_roles:
        camera = node.create_publisher(Image, robot.cameras[role].topic, best_effort)
        node.create_timer(1 / CAMERA_HZ, lambda camera=camera: camera.publish(raw))
    end_ns = SteadyClock().now_ns() + round(seconds * 1e9)
    while SteadyClock().now_ns() < end_ns:
        rclpy.spin_once(node, timeout_sec=0.1)


def measure(way: str, is_spinning: bool, seconds: float) -> str:
    """One line of the table."""
    context = rclpy.context.Context()
    context.init()
    node = MeasuredNode(
        context=context,
        clock=SpinningClock() if is_spinning else SteadyClock(),
        parameter_overrides=[Parameter(name, value=value) for name, value in GIVEN.items()],
    )
    node.runs_in_callback = way != "thread"
    multi = way == "callback, MultiThreadedExecutor(3)"
    executor = MultiThreadedExecutor(3, context=context) if multi else SingleThreadedExecutor(context=context)
    executor.add_node(node)
    robot = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.control_tick", "--send", str(seconds + 30)], cwd=ROOT
    )
    try:
        while len(node.starts_ns) < 10 or not node.numbers:
            executor.spin_once(timeout_sec=0.1)
        node.forget()
        begin_ns = node.steady.now_ns()
        while node.steady.now_ns() - begin_ns < seconds * 1e9:
            executor.spin_once(timeout_sec=0.1)
    finally:
        robot.kill()
        robot.wait()
    errors = np.abs(np.diff(np.array(node.starts_ns) / 1e6) - PERIOD_MS)
    stored = len(node.numbers) / max(1.0, node.numbers[-1] - node.numbers[0] + 1)
    work = "spins" if is_spinning else "waits"
    executor.shutdown(timeout_sec=5.0)
    node.shut_down()
    node.destroy_node()
    context.try_shutdown()
    return f"| {way} | {work} | {_spread(errors)} | {_spread(np.array(node.joint_ages_ms))} | {stored:.0%} |"


def _spread(values: NDArray[np.float64]) -> str:
    return " / ".join(f"{v:.1f}" for v in (*np.percentile(values, (50, 95)), values.max()))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="per line (default: 10)")
    parser.add_argument("--send", type=float, default=0.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ.setdefault("FASTRTPS_DEFAULT_PROFILES_FILE", str(PROFILE))
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    if options.send:
        send(options.send)
        return
    sys.setswitchinterval(0.0005)
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, cycles of {PERIOD_MS:g} ms")
    print("| cycle runs in | work | period error p50 / p95 / max, ms | age of joints, ms | joints stored |")
    print("|---|---|---|---|---|")
    for way in ("thread", "callback, SingleThreadedExecutor", "callback, MultiThreadedExecutor(3)"):
        for is_spinning in (False, True):
            print(measure(way, is_spinning, options.seconds), flush=True)


if __name__ == "__main__":
    main()
