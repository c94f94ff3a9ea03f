"""How many decode steps a cycle may take. Knows time as integers only: no clock, no torch, no requests.

Called by the engine between decode steps; every figure comes from measured costs.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class CycleBudget:
    """Time one control cycle has. ``reserve_ns`` before the deadline is never given to text."""

    cycle_id: int
    start_ns: int
    deadline_ns: int
    reserve_ns: int

    def remaining_ns(self, now_ns: int) -> int:
        """Time left for text; negative when late."""
        return self.deadline_ns - self.reserve_ns - now_ns

    def fits(self, cost_ns: int, now_ns: int) -> bool:
        """True if work of ``cost_ns`` begun now ends before the reserve."""
        return 0 <= cost_ns <= self.remaining_ns(now_ns)

    def num_steps(self, cost_ns: int, now_ns: int) -> int:
        """Steps of ``cost_ns`` each that fit from now on. 0 while the cost is not known."""
        return max(0, self.remaining_ns(now_ns) // cost_ns) if cost_ns > 0 else 0


@dataclass(frozen=True)
class AutoSteps:
    """As many steps as fit, by the cost that similar steps had."""

    def allows(self, num_done: int, cost_ns: int, budget: CycleBudget, now_ns: int) -> bool:
        """True if one more step fits. A step of unknown cost (0) may begin while there is time."""
        return budget.remaining_ns(now_ns) > 0 and budget.fits(cost_ns, now_ns)


@dataclass(frozen=True)
class FixedSteps:
    """At most ``num_steps`` a cycle whatever they cost, as in the paper; none begins past the reserve."""

    num_steps: int

    def allows(self, num_done: int, cost_ns: int, budget: CycleBudget, now_ns: int) -> bool:
        """True if one more step may begin. It may end late, by less than its own length."""
        return num_done < self.num_steps and budget.remaining_ns(now_ns) > 0


StepPolicy = AutoSteps | FixedSteps


class StepCostEstimator:
    """Running high quantile of step costs, by tokens fed: one per row, more where a suffix prompt begins.

    Tokens are counted in buckets: those that warm-up measured, then powers of two. Each bucket keeps a
    bounded window of its last costs.
    """

    def __init__(self, quantile: float = 0.95, window: int = 64) -> None:
        self._quantile = quantile
        self._window = window
        self._declared: tuple[int, ...] = ()
        self._samples: dict[int, deque[int]] = {}

    def seed(self, costs_ns: Mapping[int, Iterable[int]]) -> None:
        """Begin anew with the costs that warm-up measured, by tokens fed."""
        self._declared = tuple(sorted(costs_ns))
        self._samples = {b: deque(c, self._window) for b, costs in costs_ns.items() if (c := tuple(costs))}

    def observe(self, num_tokens: int, cost_ns: int) -> None:
        """Take in the cost of a step that was run."""
        self._samples.setdefault(self._bucket(num_tokens), deque(maxlen=self._window)).append(cost_ns)

    def estimate_ns(self, num_tokens: int) -> int:
        """High quantile of what such steps cost.

        A bucket without a measure is taken to cost what the dearest smaller one does, else what the next
        larger one does. 0 when nothing was ever measured.
        """
        source = self._source(num_tokens)
        return 0 if source is None else self._quantile_ns(source)

    def forget_dearest(self, num_tokens: int) -> None:
        """Drop the largest cost behind the estimate, but for the last one of its bucket."""
        source = self._source(num_tokens)
        if source is not None and len(samples := self._samples[source]) > 1:
            samples.remove(max(samples))

    def _source(self, num_tokens: int) -> int | None:
        """The bucket whose measures stand for such steps."""
        bucket = self._bucket(num_tokens)
        if bucket in self._samples:
            return bucket
        if smaller := [b for b in self._samples if b < bucket]:
            return max(smaller, key=self._quantile_ns)
        return min(self._samples, default=None)

    def _bucket(self, num_tokens: int) -> int:
        for bucket in self._declared:
            if num_tokens <= bucket:
                return bucket
        return 1 << max(0, num_tokens - 1).bit_length()

    def _quantile_ns(self, bucket: int) -> int:
        ordered = sorted(self._samples[bucket])
        return ordered[math.ceil(self._quantile * len(ordered)) - 1]
