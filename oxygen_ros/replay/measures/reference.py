"""What the robot was told at the time, as the bag has it: the yardstick of predicted actions."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.runtime.stamps import S, from_time

VALID_NS = S // 2


class Reference:
    """Newest recorded values by time, held until the next ones: float64 [num_joints], NaN where not told."""

    def __init__(self, joint_names: Sequence[str], source: str, kept_ns: int) -> None:
        """Collect for these joints.

        Args:
            joint_names: the commanded joints.
            source: says in words what they are compared with.
            kept_ns: how far back it must remember: a horizon and what else a chunk waits for.
        """
        self.source = source
        self._kept_ns = kept_ns
        self._column = {name: i for i, name in enumerate(joint_names)}
        self._times: deque[int] = deque()
        self._values: deque[NDArray[np.float64]] = deque()
        self._now = np.full(len(joint_names), np.nan)
        self._coming: list[tuple[int, list[str], list[float]]] = []

    def reset(self) -> None:
        """Forget all: time has jumped."""
        self._times.clear()
        self._values.clear()
        self._coming = []

    def put(self, time_ns: int, names: Sequence[str], values: Sequence[float]) -> None:
        """Values by joint name, from ``time_ns`` on."""
        self._now = self._now.copy()
        for name, value in zip(names, values, strict=False):
            if name in self._column:
                self._now[self._column[name]] = value
        self._times.append(time_ns)
        self._values.append(self._now)
        while self._times[0] < time_ns - self._kept_ns:
            self._times.popleft()
            self._values.popleft()

    def put_message(self, time_ns: int, message: Any, order: Sequence[str]) -> None:
        """A command message: Float64MultiArray in the given order, JointState, or JointTrajectory."""
        self._arrive(time_ns)
        if hasattr(message, "points"):
            # A new trajectory takes the place of what was still to come of the old one.
            names = list(message.joint_names)
            self._coming = [
                (time_ns + from_time(point.time_from_start), names, list(point.positions))
                for point in message.points
            ]
            self._arrive(time_ns)
        elif hasattr(message, "name"):
            self.put(time_ns, message.name, message.position)
        else:
            self.put(time_ns, order, message.data)

    def at(self, time_ns: int) -> NDArray[np.float64] | None:
        """Values in force at ``time_ns``; None if there are none or they are too old."""
        index = bisect_right(self._times, time_ns) - 1
        if index < 0 or time_ns - self._times[index] > VALID_NS:
            return None
        return self._values[index]

    def _arrive(self, time_ns: int) -> None:
        due = [point for point in self._coming if point[0] <= time_ns]
        self._coming = [point for point in self._coming if point[0] > time_ns]
        for at_ns, names, values in due:
            self.put(at_ns, names, values)
