"""Says the same thing at once, then at most every ten seconds. Knows no logger."""

from __future__ import annotations

from collections.abc import Hashable

from oxygen_ros.clock import Clock

QUIET_NS = 10_000_000_000


class Throttle:
    """Remembers when each key was let through. Keys come from a bounded set. One thread, or a lock around."""

    def __init__(self, clock: Clock, quiet_ns: int = QUIET_NS) -> None:
        self._clock = clock
        self._quiet_ns = quiet_ns
        self._last: dict[Hashable, tuple[int, int]] = {}  # (let through at, held back since)

    def held_back(self, key: Hashable) -> int | None:
        """How often ``key`` was held back since it was last let through, if it may pass now; else None."""
        now_ns = self._clock.now_ns()
        passed_ns, held = self._last.get(key, (now_ns - self._quiet_ns, 0))
        if 0 <= now_ns - passed_ns < self._quiet_ns:  # a simulated clock may have jumped back
            self._last[key] = (passed_ns, held + 1)
            return None
        self._last[key] = (now_ns, 0)
        return held
