"""Where the robot is and where it was last sent: what a step is measured from, and what a hold sends.

Arrays are float64 [num_joints] in command order; NaN where nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.clock import Clock
from oxygen_ros.runtime.joints import FLOAT32_MAX
from oxygen_ros.runtime.limits import CommandArray

FRESH_NS = 500_000_000


class Pose:
    """Measured and commanded values of all commanded joints. One thread."""

    def __init__(self, joint_names: Sequence[str], is_position: NDArray[np.bool_], clock: Clock) -> None:
        """Know nothing yet; ``is_position`` is False where commands are velocities or offsets."""
        self._index = {name: i for i, name in enumerate(joint_names)}
        self._is_position = is_position
        self._clock = clock
        self._measured = np.full(len(joint_names), np.nan)
        self._measured_ns = np.full(len(joint_names), -FRESH_NS - 1, dtype=np.int64)
        self.commanded: CommandArray | None = None

    def put_measured(self, names: Sequence[str], positions: Sequence[float]) -> bool:
        """Take note of measured positions of commanded joints that are numbers. False if names do not fit."""
        if len(names) != len(positions):
            return False
        now_ns = self._clock.now_ns()
        for name, position in zip(names, positions, strict=True):
            i = self._index.get(name)
            if i is not None and self._is_position[i] and abs(position) <= FLOAT32_MAX:
                self._measured[i], self._measured_ns[i] = position, now_ns
        return True

    def measured(self) -> CommandArray:
        """Fresh measured positions; what was measured before the clock jumped back is not."""
        age_ns = self._clock.now_ns() - self._measured_ns
        return np.where((age_ns >= 0) & (age_ns <= FRESH_NS), self._measured, np.nan)

    def before_step(self, is_first: bool) -> CommandArray:
        """What a step is measured from: the last command.

        For the first step after a standstill, where the robot is, else the last command, else unknown (NaN);
        velocities and offsets start from 0.
        """
        if self.commanded is not None and not is_first:
            return self.commanded
        measured = self.measured()
        known = measured if self.commanded is None else np.where(np.isnan(measured), self.commanded, measured)
        return np.where(self._is_position, known, 0.0)

    def unmeasured(self, names: Sequence[str]) -> list[str]:
        """Those of ``names`` that are commanded positions and not freshly measured."""
        measured = self.measured()
        pairs = ((name, self._index.get(name)) for name in names)
        return [n for n, i in pairs if i is not None and self._is_position[i] and np.isnan(measured[i])]

    def standstill(self, prefer_measured: bool) -> CommandArray:
        """What holds the robot: a position it has, 0 for velocities and offsets."""
        commanded = np.full(len(self._index), np.nan) if self.commanded is None else self.commanded
        first, second = (self.measured(), commanded) if prefer_measured else (commanded, self.measured())
        return np.where(self._is_position, np.where(np.isnan(first), second, first), 0.0)
