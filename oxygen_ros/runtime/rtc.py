"""Guided chunks: what is still to be played of the last chunk pulls the next one while it is denoised.

Counts actions, never milliseconds: row 0 of the guidance is the action that the player plays next. Knows
model space only, no joints and no time.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oxygen_ros.models.protocol import Guidance
from oxygen_ros.runtime.delay import DelayEstimate
from oxygen_ros.types import FloatArray, Observation


class Schedule(enum.Enum):
    """How the pull fades over the rows. Values equal the parameter's."""

    ZEROS = "zeros"
    """Full over the delay, nothing after it."""
    ONES = "ones"
    """Full over the whole window."""
    LINEAR = "linear"
    """Full over the delay, then a straight line to nothing at the end of the window."""
    EXP = "exp"
    """As LINEAR, bent down."""


def guidance_weights(
    delay: int, window: int, num_previous: int, horizon: int, schedule: Schedule
) -> FloatArray:
    """Weight of each row, float32 [horizon].

    Args:
        delay: rows that will have been played when the new chunk is there; cut to the window.
        window: rows that are guided, at most ``num_previous``.
        num_previous: rows that the last chunk still has.
        horizon: rows of a chunk.
        schedule: how the weights fade.

    Source: LeRobot's real-time chunking (reference in docs/decisions/0003-guided-chunks.md).
    """
    end = max(0, min(window, num_previous, horizon))
    full = min(max(0, delay), end)
    rows = np.arange(horizon)
    if schedule is Schedule.ONES:
        return (rows < end).astype(np.float32)
    weights = (rows < full).astype(np.float64)
    if schedule is not Schedule.ZEROS:
        ramp = 1.0 - (rows - full + 1) / (end - full + 1)
        if schedule is Schedule.EXP:
            ramp = ramp * np.expm1(ramp) / math.expm1(1.0)
        weights = np.where((rows >= full) & (rows < end), ramp, weights)
    return weights.astype(np.float32)


@dataclass(frozen=True)
class GuideSettings:
    """Choices that hold while the guide lives.

    Attributes:
        window: rows of the last chunk that guide.
        max_gain: largest gain of the pull.
        delay_window: newest chunks that the delay is taken from.
        first_delay: delay in actions until one has been measured, from warm-up.
    """

    schedule: Schedule
    window: int
    max_gain: float
    delay_window: int
    first_delay: int


@dataclass(frozen=True)
class _Made:
    start: int
    actions: FloatArray


class ChunkGuide:
    """Remembers each expert's last chunk in model space. Control thread.

    No guidance is given where it is not known what the player will play next: before it has played anything,
    when it is not heard, and when the last chunk is used up.
    """

    def __init__(
        self,
        settings: GuideSettings,
        num_played: Callable[[], int],
        settle: Callable[[int], int] = lambda delay: delay,
    ) -> None:
        """Start without a chunk.

        Args:
            settings: see there.
            num_played: gives the player's count as last heard, 0 if unknown.
            settle: is told the delay that was measured, gives the one that counts. For recordings.
        """
        self._settings = settings
        self._num_played = num_played
        self._settle = settle
        self._delay = DelayEstimate(settings.delay_window)
        self._last: dict[str, _Made] = {}
        self.num_clamped = 0

    @property
    def delay(self) -> int:
        """Actions that are expected to be played while the next chunk is made."""
        measured = self._delay.num_actions
        return self._settings.first_delay if measured is None else measured

    def guidance(self, expert: str, observation: Observation) -> Guidance | None:
        """What pulls the next chunk of ``expert``; None for no pull."""
        last, played = self._last.get(expert), observation.actions_played
        if last is None or played == 0 or played < last.start:
            return None
        left = last.actions[played - last.start :]
        if len(left) == 0:
            return None
        settings, horizon = self._settings, len(last.actions)
        delay = self._settle(self.delay)
        if delay > min(settings.window, len(left)):
            self.num_clamped += 1
        weights = guidance_weights(delay, settings.window, len(left), horizon, settings.schedule)
        # Where it has ended, the last chunk stands still: zeros would pull towards the mean of the data.
        previous = np.concatenate((left, np.repeat(left[-1:], horizon - len(left), axis=0)))
        return Guidance(previous, weights, settings.max_gain)

    def made(self, expert: str, observation: Observation, actions: FloatArray) -> None:
        """Take note of a chunk in model space that has just been published, and of how long it took."""
        played = observation.actions_played
        if played and (delay := self._num_played() - played) >= 0:
            self._delay.observe(delay)
        self._last[expert] = _Made(played, actions)

    def forget(self) -> None:
        """The chunks have been withdrawn: nothing of them will be played."""
        self._last.clear()
