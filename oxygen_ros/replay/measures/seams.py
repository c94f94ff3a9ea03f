"""How far commands jump where one chunk takes over from another, beside their ordinary steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.replay.measures.series import Series
from oxygen_ros.runtime.playback import Command


class SeamJumps:
    """Absolute change from one command to the next, by joint: at seams, and elsewhere."""

    def __init__(self, num_joints: int) -> None:
        self.num_seams = self.num_steps = 0
        self.maximum = np.zeros(num_joints)
        self._seam_sum = np.zeros(num_joints)
        self._step_sum = np.zeros(num_joints)
        self._last: NDArray[np.float64] | None = None
        self.jumps = Series()

    def add(self, time_ns: int, command: Command) -> None:
        """Take in a command of the player."""
        if self._last is not None:
            jump = np.nan_to_num(np.abs(command.values - self._last))
            if command.takes_over:
                self.num_seams += 1
                self._seam_sum += jump
                self.maximum = np.maximum(self.maximum, jump)
                self.jumps.add(time_ns / 1e9, float(jump.max()))
            else:
                self.num_steps += 1
                self._step_sum += jump
        self._last = command.values

    def interrupt(self) -> None:
        """The player does not play: what comes next follows on nothing."""
        self._last = None

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean jump at a seam."""
        return self._seam_sum / max(1, self.num_seams)

    @property
    def step_mean(self) -> NDArray[np.float64]:
        """Mean step elsewhere."""
        return self._step_sum / max(1, self.num_steps)
