"""Per-joint limits of commands: value, and change from one action to the next.

Knows arrays and limits; not where targets come from. A limit is never a reason to refuse: targets are cut to
it, and the cuts are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isnan

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.config.root import OxygenConfig

CommandArray = NDArray[np.float64]

ROUNDING = 1e-9


@dataclass(frozen=True)
class JointLimits:
    """Limits of all commanded joints, in command order; all arrays float64 [num_joints].

    Attributes:
        lower: smallest value.
        upper: largest value.
        max_step: largest change from one action to the next.
        is_position: bool; True where a command is a position, False where it is a velocity or an offset.
    """

    lower: CommandArray
    upper: CommandArray
    max_step: CommandArray
    is_position: NDArray[np.bool_]

    @classmethod
    def of(cls, config: OxygenConfig) -> JointLimits:
        """Limits of the commanded joints.

        A speed limit cuts the step of a position, the value of a velocity, and the value of an offset.
        """
        robot, dt_s = config.robot, 1.0 / config.cycle.action_rate_hz
        lower, upper, step, kinds = [], [], [], []
        for name, joint in zip(robot.command_joint_names, robot.command_joints, strict=True):
            kind = robot.command_kind_of(name)
            speed = {"position": np.inf, "velocity": joint.max_velocity, "delta": joint.max_velocity * dt_s}[
                kind
            ]
            offset = min(joint.max_step, config.safety.max_step) if kind == "delta" else np.inf
            lower.append(max(joint.position_min, -speed, -offset))
            upper.append(min(joint.position_max, speed, offset))
            by_speed = joint.max_velocity * dt_s if kind == "position" else np.inf
            step.append(np.inf if kind == "delta" else min(joint.max_step, by_speed, config.safety.max_step))
            kinds.append(kind == "position")
        return cls(np.array(lower), np.array(upper), np.array(step), np.array(kinds, dtype=bool))

    def cut(self, target: CommandArray, previous: CommandArray) -> tuple[CommandArray, int]:
        """``target`` within all limits, and how many of its values had to be changed.

        Args:
            target: float64 [num_joints]; NaN where there is no target: the joint stands still.
            previous: float64 [num_joints], the command before; NaN where there is none: no limit on the step.

        Returns:
            float64 [num_joints], NaN where both are; and a count.
        """
        # A loop: for some tens of joints, with cold caches, a dozen array functions take longer.
        values, num_cut = [], 0
        for wanted, last, (low, high, step, is_position) in zip(
            target.tolist(), previous.tolist(), self._by_joint, strict=True
        ):
            if isnan(wanted):
                wanted = last if is_position else 0.0
            value = min(max(wanted, low), high)
            if not isnan(last):  # the step last: a joint outside its range comes back in steps
                value = min(max(value, last - step), last + step)
            num_cut += abs(value - wanted) > ROUNDING
            values.append(value)
        return np.array(values), num_cut

    @cached_property
    def _by_joint(self) -> list[tuple[float, float, float, bool]]:
        columns = (self.lower, self.upper, self.max_step, self.is_position)
        return list(zip(*(column.tolist() for column in columns), strict=True))
