"""Actions on their way to the player and to trajectory controllers. Safe to call from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from oxygen_ros.config import OxygenConfig
from oxygen_ros.msg import ActionChunk as ActionChunkMessage
from oxygen_ros.ros import qos
from oxygen_ros.ros.conversions import to_chunk_message, to_trajectory
from oxygen_ros.ros.managed_node import ManagedNode
from oxygen_ros.runtime.limits import CommandArray, JointLimits
from oxygen_ros.types import ActionChunk


class ActionOutlet:
    """An ActionSink with a gate: once it is shut, no action gets out, whatever still runs.

    Trajectories go to the robot itself, so they are sent only with ``enable_control``, and only where
    commands are positions. They are cut to the limits of the joints.
    """

    def __init__(
        self,
        node: ManagedNode,
        config: OxygenConfig,
        positions: Callable[[], Mapping[str, float]],
        sent: Callable[[ActionChunk], None] = lambda chunk: None,
    ) -> None:
        """Make the publishers; shut.

        Args:
            node: that publishes.
            config: of the robot and the topics.
            positions: gives where the joints are.
            sent: told each chunk that got out.
        """
        self._sent = sent
        self._node = node
        self._config = config
        self._positions = positions
        robot = config.robot
        kinds = {robot.command_kind_of(name) for name in robot.command_joint_names}
        self._sends_trajectories = config.enable_control and kinds == {"position"}
        depth = 2 * len(config.model.experts)
        self._chunk = node.create_lifecycle_publisher(
            ActionChunkMessage, config.topics.action_chunk, qos.newest(depth)
        )
        self._trajectory = node.create_lifecycle_publisher(
            JointTrajectory, config.topics.joint_trajectory, qos.newest(len(config.model.experts))
        )
        self._lock = threading.Lock()
        limits = JointLimits.of(config)
        has_limits = np.isfinite((limits.lower, limits.upper, limits.max_step)).any()
        self._limits = limits if has_limits else None
        self._is_open = self._is_moving = False
        self._after_observation = 0

    def open(self) -> None:
        """Let actions out."""
        with self._lock:
            self._is_open = True

    def shut(self) -> None:
        """Let no action out any more, and withdraw those that are out: the robot holds."""
        with self._lock:
            self._is_open = False
            self._withdraw(ActionChunkMessage())

    def bar(self, forget: Callable[[], int]) -> None:
        """Withdraw the actions that are out; let none out up to the observation that ``forget`` gives.

        It is called after the hold, which needs to know where the joints are.
        """
        with self._lock:
            self._withdraw(ActionChunkMessage())
            self._after_observation = forget()

    def publish_action(self, chunk: ActionChunk) -> None:
        """Send one chunk, unless the gate is shut or its observation barred."""
        is_action = len(chunk.actions) > 0
        with self._lock:
            if is_action and (not self._is_open or chunk.observation_id <= self._after_observation):
                return
            if not is_action:
                self._withdraw(to_chunk_message(chunk))
                return
            self._chunk.publish(to_chunk_message(chunk))
            self._sent(chunk)
            if self._sends_trajectories:
                stamp_ns = self._node.now_ns() if self._config.player.stamp == "now" else 0
                rows = chunk.actions if self._limits is None else self._within_limits(chunk, self._limits)
                self._trajectory.publish(to_trajectory(chunk.joint_names, rows, chunk.dt_ns, stamp_ns))
                self._is_moving = True

    def _withdraw(self, message: ActionChunkMessage) -> None:
        self._chunk.publish(message)
        if not self._is_moving:
            return
        names = self._config.robot.command_joint_names
        positions = self._positions()
        if all(name in positions for name in names):
            here = np.array([[positions[name] for name in names]])
            self._trajectory.publish(to_trajectory(names, here, self._config.cycle.action_dt_ns))
            self._is_moving = False

    def _within_limits(self, chunk: ActionChunk, limits: JointLimits) -> CommandArray:
        """The rows of ``chunk`` as the joints' limits allow them, from where the joints are on."""
        positions, all_names = self._positions(), self._config.robot.command_joint_names
        columns = [all_names.index(name) for name in chunk.joint_names]
        lower, upper = limits.lower[columns], limits.upper[columns]
        limits = JointLimits(lower, upper, limits.max_step[columns], limits.is_position[columns])
        last = np.array([positions.get(name, np.nan) for name in chunk.joint_names])
        rows = [last := limits.cut(row.astype(np.float64), last)[0] for row in chunk.actions]
        return np.array(rows)
