"""Delays that guided chunks reckoned with: noted in a recorded run, the same in one that reproduces it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence


class NotedDelays:
    """Takes note of each delay, in actions. Control thread."""

    def __init__(self) -> None:
        self._noted: list[int] = []

    def settle(self, measured: int) -> int:
        """The measured delay counts."""
        self._noted.append(measured)
        return measured

    def take(self) -> list[int]:
        """Delays since the last call."""
        noted, self._noted = self._noted, []
        return noted


class RecordedDelays:
    """The delays of a recorded run by cycle; as measured where there is none left."""

    def __init__(self, by_cycle: Mapping[int, Sequence[int]]) -> None:
        self._by_cycle = by_cycle
        self._left: deque[int] = deque()

    def begin(self, cycle_id: int) -> None:
        """A cycle begins."""
        self._left = deque(self._by_cycle.get(cycle_id, ()))

    def settle(self, measured: int) -> int:
        """As it was then."""
        return self._left.popleft() if self._left else measured
