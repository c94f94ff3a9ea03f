"""How many actions are played while a chunk is being made. Counts actions, not milliseconds."""

from __future__ import annotations

from collections import deque


class DelayEstimate:
    """The largest delay among the newest chunks.

    Whoever observes leaves out chunks that were made while nothing was played: the first one waits for the
    model to warm up, and no action was missed by it.
    """

    def __init__(self, window: int) -> None:
        self._delays: deque[int] = deque(maxlen=window)

    def observe(self, num_actions: int) -> None:
        """One chunk took over ``num_actions`` actions after its observation, all of which were played."""
        self._delays.append(num_actions)

    @property
    def num_actions(self) -> int | None:
        """Delay to expect; None before the first measure."""
        return max(self._delays, default=None)

    def clear(self) -> None:
        """Forget all measures."""
        self._delays.clear()
