"""How many calls per second are let through. Knows time only."""

from __future__ import annotations

from oxygen_ros.clock import Clock

S = 1_000_000_000


class RateLimit:
    """Lets through ``per_second`` calls on average and as many at once. One thread."""

    def __init__(self, per_second: float, clock: Clock) -> None:
        self._per_ns = per_second / S
        self._most = max(1.0, per_second)
        self._clock = clock
        self._left = self._most
        self._at_ns = clock.now_ns()

    def allows(self) -> bool:
        """True if one more call may pass now; it counts then."""
        now_ns = self._clock.now_ns()
        self._left = min(self._most, self._left + (now_ns - self._at_ns) * self._per_ns)
        self._at_ns = now_ns
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
