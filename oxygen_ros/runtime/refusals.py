"""Counts what was refused, by kind, and says so: at once the first time, then throttled.

Knows neither ROS nor what the kinds mean. Shared by sensor callbacks, request intake and the control thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from oxygen_ros.clock import Clock
from oxygen_ros.runtime.throttle import Throttle


class Refusals:
    """Counts never go back while the node lives. Safe to call from any thread.

    The pairs (kind, source) come from configuration and code, never from messages: the table is bounded.
    """

    def __init__(self, clock: Clock, say: Callable[[str], None]) -> None:
        """Count from zero.

        Args:
            clock: steady time, for the throttle.
            say: takes one line to be logged as a warning; called from the refusing thread.
        """
        self._say = say
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._throttle = Throttle(clock)

    def add(self, kind: str, source: str, detail: str) -> None:
        """Count one refusal of ``kind`` from ``source`` (a stream or topic) and log it unless throttled."""
        with self._lock:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            held_back = self._throttle.held_back((kind, source))
        if held_back is not None:
            more = f" ({held_back} more since the last such line)" if held_back else ""
            self._say(f"refused ({kind}) from {source}: {detail}{more}")

    def counts(self) -> dict[str, int]:
        """Refusals so far by kind."""
        with self._lock:
            return dict(self._counts)
