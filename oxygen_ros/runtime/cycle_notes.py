"""What one control cycle writes down while it runs, whole or broken off, and the report made of it."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping

from oxygen_ros.clock import Clock
from oxygen_ros.engine.budget import CycleBudget
from oxygen_ros.engine.engine import DecodeOutcome, Engine
from oxygen_ros.types import CycleReport, CycleStatus, Observation


class CycleNotes:
    """Notes of one cycle. All times are steady time."""

    def __init__(self, clock: Clock, budget: CycleBudget) -> None:
        self._clock = clock
        self._budget = budget
        self._sections_ns: Counter[str] = Counter()
        self.begin_ns = clock.now_ns()
        self.status = CycleStatus.WAITING
        self.reason = ""
        self.observation: Observation | None = None
        self.action_latency_ns = 0
        self.outcome = DecodeOutcome()
        self.num_finished = 0

    @contextlib.contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Add the time spent inside to section ``name``, also when it fails."""
        begin_ns = self._clock.now_ns()
        try:
            yield
        finally:
            self._sections_ns[name] += self._clock.now_ns() - begin_ns

    def elapsed_ns(self) -> int:
        """Time since the observation was asked for."""
        return self._clock.now_ns() - self.begin_ns

    def slack_ns(self) -> int:
        """Time left until the next cycle must start; negative when late."""
        return self._budget.deadline_ns - self._clock.now_ns()

    def report(self, engine: Engine, deadline_misses: int, refusals: Mapping[str, int]) -> CycleReport:
        """The report, as of now."""
        seen = self.observation
        slack_ns = self.slack_ns()
        return CycleReport(
            cycle_id=self._budget.cycle_id,
            observation_id=seen.observation_id if seen else 0,
            stamp_ns=seen.stamp_ns if seen else 0,
            status=self.status,
            reason=self.reason,
            period_ns=self._budget.deadline_ns - self._budget.start_ns,
            observe_ns=self._sections_ns["observe"],
            prefill_ns=self._sections_ns["prefill"],
            act_ns=self._sections_ns["act"],
            publish_ns=self._sections_ns["publish"],
            action_latency_ns=self.action_latency_ns,
            decode_ns=self._sections_ns["decode"],
            slack_ns=slack_ns,
            is_late=slack_ns < 0,
            decode_steps=self.outcome.num_steps,
            decode_steps_possible=self.outcome.num_steps_possible,
            text_rows=self.outcome.num_rows,
            text_tokens=self.outcome.num_tokens,
            texts_waiting=engine.num_waiting,
            texts_finished=self.num_finished,
            memory=engine.memory(),
            deadline_misses=deadline_misses,
            refusals=refusals,
        )
