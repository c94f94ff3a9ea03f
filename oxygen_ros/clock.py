"""Steady time, injected everywhere. The only module that reads a wall clock or sleeps."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A source of steady time. It never goes back and has no relation to ROS time."""

    def now_ns(self) -> int:
        """Nanoseconds since an arbitrary start."""
        ...

    def sleep_until_ns(self, deadline_ns: int) -> None:
        """Return at or after ``deadline_ns``; at once when it is past."""
        ...


class SteadyClock:
    """The machine's monotonic clock. Safe to share between threads."""

    def now_ns(self) -> int:
        """Nanoseconds of ``time.monotonic_ns``."""
        return time.monotonic_ns()

    def sleep_until_ns(self, deadline_ns: int) -> None:
        """Block the calling thread until ``deadline_ns``."""
        while (left_ns := deadline_ns - time.monotonic_ns()) > 0:
            time.sleep(left_ns / 1e9)


class SimClock:
    """Time that moves only when told: tests are exact and replay is deterministic. One thread."""

    def __init__(self, start_ns: int = 0) -> None:
        self._now_ns = start_ns

    def now_ns(self) -> int:
        """Simulated nanoseconds."""
        return self._now_ns

    def sleep_until_ns(self, deadline_ns: int) -> None:
        """Jump to ``deadline_ns`` unless it is past."""
        self._now_ns = max(self._now_ns, deadline_ns)

    def advance_ns(self, duration_ns: int) -> None:
        """Move on by ``duration_ns``.

        Raises:
            ValueError: if ``duration_ns`` is negative.
        """
        if duration_ns < 0:
            raise ValueError(f"steady time cannot go back: {duration_ns} ns")
        self._now_ns += duration_ns
