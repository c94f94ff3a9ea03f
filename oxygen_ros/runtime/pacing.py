"""Ticks of a timer as they really came: what was missed, and what would be a burst. Knows time only."""

from __future__ import annotations


class Pacer:
    """Tells late ticks from early ones by measured time, never by counting ticks.

    A timer that stalled fires again at its old phase, soon after the late tick: two actions in one period.
    Such a tick is dropped.
    """

    def __init__(self, period_ns: int) -> None:
        self._period_ns = period_ns
        self._last_ns: int | None = None
        self._was_late = False

    def tick(self, now_ns: int) -> int | None:
        """Whole periods missed since the last tick; None if this tick comes too soon after a late one."""
        if self._last_ns is None:
            self._last_ns = now_ns
            return 0
        gap_ns = now_ns - self._last_ns
        if self._was_late and gap_ns < 0.75 * self._period_ns:
            return None
        self._last_ns = now_ns
        missed = max(0, round(gap_ns / self._period_ns) - 1)
        self._was_late = missed > 0
        return missed

    def reset(self) -> None:
        """Forget the last tick: the timer has been stopped."""
        self._last_ns, self._was_late = None, False
