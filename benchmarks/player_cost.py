"""What the action player costs, and how steadily it ticks.

Usage: python -m benchmarks.player_cost [--preset humanoid] [--seconds 20] [--rate 50]. The player of a robot
preset in a process of its own gets chunks, and joint states on each of its topics at 200 Hz. Printed are its
share of one CPU, by the kernel's accounts, and how far the time between two actions is off the period, by
stamps.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import JointState

from oxygen_ros.clock import SteadyClock
from oxygen_ros.config import OxygenConfig, QosConfig, RobotConfig, load_config
from oxygen_ros.msg import ActionChunk, PlayerState
from oxygen_ros.ros import qos
from oxygen_ros.ros.conversions import to_chunk_message, to_joint_state
from oxygen_ros.runtime.stamps import from_time
from oxygen_ros.types import ActionChunk as Chunk

JOINT_HZ = 200.0
PATIENCE_S = 30.0
NAMESPACE = "/player_cost"


class Feeder(Node):
    """Is the brain and the robot, and notes when each action was played."""

    def __init__(self, config: OxygenConfig) -> None:
        super().__init__("feeder", namespace=NAMESPACE)
        self.stamps_ns: list[int] = []
        self.config = config
        self._played = self._num_chunks = 0
        self.reason = "nothing heard from it"
        robot = config.robot
        self._chunks = self.create_publisher(ActionChunk, "oxygen_node/action_chunk", qos.newest(2))
        self._joints = [
            (
                self.create_publisher(JointState, robot.joint_topics[source].topic, qos.sensor(QosConfig())),
                names,
            )
            for source, names in joints_by_topic(robot).items()
        ]
        self.create_subscription(PlayerState, "action_player/state", self._on_state, qos.newest(50))
        self.create_timer(config.cycle.execute_horizon / config.cycle.action_rate_hz, self._send_chunk)
        self.create_timer(1 / JOINT_HZ, self._send_joints)

    def _send_joints(self) -> None:
        now_ns = self.get_clock().now().nanoseconds
        for publisher, names in self._joints:
            publisher.publish(to_joint_state(names, np.zeros(len(names)), now_ns))

    def _send_chunk(self) -> None:
        names = self.config.robot.command_joint_names
        self._num_chunks += 1
        wave = 0.1 * np.sin(0.05 * (self._played + np.arange(self.config.model.horizon)))
        self._chunks.publish(
            to_chunk_message(
                Chunk(
                    observation_id=self._num_chunks,
                    stamp_ns=self.get_clock().now().nanoseconds,
                    cycle_id=self._num_chunks,
                    chunk_id=self._num_chunks,
                    expert="default",
                    instruction="wave",
                    joint_names=names,
                    actions=np.repeat(wave[:, None], len(names), axis=1).astype(np.float32),
                    dt_ns=self.config.cycle.action_dt_ns,
                    execute_horizon=self.config.cycle.execute_horizon,
                    latency_ns=0,
                    actions_played=self._played,
                )
            )
        )

    def _on_state(self, message: PlayerState) -> None:
        self.reason = message.reason
        if message.mode == PlayerState.MODE_PLAYING and message.actions_played > self._played:
            self._played = message.actions_played
            self.stamps_ns.append(from_time(message.header.stamp))


def joints_by_topic(robot: RobotConfig) -> dict[str, list[str]]:
    """The names that each joint topic carries: those of its prefix, without it, or an equal share."""
    sources = robot.joint_topic_names
    shares = np.array_split(np.array(robot.joint_names, dtype=object), len(sources))
    names = {source: [str(name) for name in share] for source, share in zip(sources, shares, strict=True)}
    for source in sources:
        if prefix := robot.joint_topics[source].name_prefix:
            own = [name for name in robot.joint_names if name.startswith(prefix)]
            names[source] = [name.removeprefix(prefix) for name in own]
    return names


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has taken, all threads, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="humanoid", help="robot preset (default: humanoid)")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long is measured (default: 20)")
    parser.add_argument("--rate", type=float, default=50.0, help="actions per second (default: 50)")
    options = parser.parse_args()
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    given = {"preset": options.preset, "cycle.action_rate_hz": options.rate, "enable_control": True}
    words = [w for key, value in given.items() for w in ("-p", f"{key}:={str(value).lower()}")]
    command = [sys.executable, "-m", "oxygen_ros.ros.action_player", "--ros-args", "-r", f"__ns:={NAMESPACE}"]
    clock = SteadyClock()
    with subprocess.Popen([*command, *words], stderr=subprocess.DEVNULL) as player:
        rclpy.init()
        feeder = Feeder(load_config(overrides=given).config)
        started_ns = clock.now_ns()
        while len(feeder.stamps_ns) < 2 * options.rate:
            rclpy.spin_once(feeder, timeout_sec=0.1)
            if clock.now_ns() - started_ns > PATIENCE_S * 1e9:
                player.kill()
                sys.exit(f"the player does not play: {feeder.reason}")
        feeder.stamps_ns.clear()
        begin_ns, begin_s = clock.now_ns(), cpu_seconds(player.pid)
        while clock.now_ns() - begin_ns < options.seconds * 1e9:
            rclpy.spin_once(feeder, timeout_sec=0.1)
        share = (cpu_seconds(player.pid) - begin_s) / ((clock.now_ns() - begin_ns) / 1e9)
        player.terminate()
    errors = np.abs(np.diff(np.array(feeder.stamps_ns) / 1e6) - 1000 / options.rate)
    spread = " / ".join(f"{v:.1f}" for v in (*np.percentile(errors, (50, 95, 99)), errors.max()))
    robot = feeder.config.robot
    print(
        f"{options.preset}: {len(robot.command_joint_names)} joints; joint states on "
        f"{len(robot.joint_topic_names)} topics at {JOINT_HZ:g} Hz"
    )
    print(
        f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; {options.rate:g} Hz for {options.seconds:g} s"
    )
    print(f"share of one CPU: {share:.1%}")
    print(f"actions seen: {len(feeder.stamps_ns)} of {options.seconds * options.rate:.0f}")
    print(f"error of the time between two actions, p50 / p95 / p99 / max: {spread} ms")


if __name__ == "__main__":
    main()
