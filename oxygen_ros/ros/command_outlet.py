"""Commands on their way to the robot, in the form its controller takes. In a dry run nothing goes out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from oxygen_ros.config import OxygenConfig
from oxygen_ros.ros import qos
from oxygen_ros.ros.conversions import doubles, to_joint_state, to_trajectory
from oxygen_ros.ros.managed_node import ManagedNode
from oxygen_ros.runtime.limits import CommandArray
from oxygen_ros.runtime.playback import Command, Hold
from oxygen_ros.runtime.player import ChunkPlayer

MESSAGE_TYPES = {"array": Float64MultiArray, "joint_state": JointState, "trajectory": JointTrajectory}


class CommandOutlet:
    """Sends what the player gives: one action a tick, or the rows ahead whenever a chunk takes over.

    A trajectory goes on past the next one's start by ``player.overlap_steps``, so that the robot does not
    come to rest in between. Joints whose value is not known are left out; an array needs them all.
    """

    def __init__(self, node: ManagedNode, config: OxygenConfig, player: ChunkPlayer) -> None:
        """Make the publisher, unless this is a dry run."""
        self._node = node
        self._player = player
        self._names = config.robot.command_joint_names
        self._output = config.player.output
        self._dt_ns = config.cycle.action_dt_ns
        self._is_stamped = config.player.stamp == "now"
        self._overlap = config.player.overlap_steps
        self._num_rows = config.cycle.execute_horizon + config.player.overlap_steps
        self._rows_left = 0
        self.is_enabled = config.enable_control
        self._array = Float64MultiArray()
        """One command in the configured order of joints; used again for each, a new one costs too much."""
        self._publisher = None
        if self.is_enabled:
            message_type = MESSAGE_TYPES[self._output]
            self._publisher = node.create_lifecycle_publisher(
                message_type, config.topics.joint_command, qos.newest()
            )

    def send(self, sent: Command | Hold) -> None:
        """Send one action or a hold."""
        if self._publisher is None:
            return
        if self._output == "trajectory":
            self._send_rows(sent)
            return
        names, values = self._known(sent.values)
        if self._output == "joint_state":
            self._publisher.publish(to_joint_state(names, values, self._node.now_ns()))
        elif len(names) == len(self._names):
            self._array.data = doubles(values)
            self._publisher.publish(self._array)
        else:
            unknown = ", ".join(name for name in self._names if name not in names)
            self._node.refusals.add("incomplete_command", "joint_command", f"no value for {unknown}")

    def _send_rows(self, sent: Command | Hold) -> None:
        """A trajectory where a chunk takes over, where the last one runs out, and for a hold."""
        if isinstance(sent, Hold):
            rows = sent.values[None, :]
        else:
            self._rows_left -= 1
            if not sent.takes_over and self._rows_left > self._overlap:
                return
            rows = self._player.rows_ahead(self._num_rows)
            if not sent.takes_over and len(rows) <= self._rows_left + 1:
                return
        self._rows_left = len(rows)
        names, _ = self._known(rows[0])
        known = ~np.isnan(rows[0])
        stamp_ns = self._node.now_ns() if self._is_stamped else 0
        assert self._publisher is not None
        self._publisher.publish(to_trajectory(names, rows[:, known], self._dt_ns, stamp_ns))

    def _known(self, values: CommandArray) -> tuple[Sequence[str], CommandArray]:
        known = ~np.isnan(values)
        if known.all():
            return self._names, values
        names = [name for name, is_known in zip(self._names, known, strict=True) if is_known]
        return names, values[known]
