"""Cycles at a fixed period: deadline misses, and what full text does to the latency of actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.executors.oxygen import OxygenExecutor
from benchmarks.executors.protocol import CycleRecord
from benchmarks.lab import Lab
from benchmarks.metrics import Spread, spread
from benchmarks.tokenizer import NumberTokenizer
from benchmarks.workloads import Job, make_jobs
from oxygen_ros.clock import SimClock, SteadyClock
from oxygen_ros.engine.budget import AutoSteps
from oxygen_ros.runners.fake import FakeCosts, FakeRunner
from oxygen_ros.types import CycleReport

PERIOD_FACTORS = (2.0, 1.3, 1.05)
RESERVE_SHARE = 0.04
CYCLES_PER_TURN = 5


@dataclass(frozen=True)
class Deadlines:
    """One run at one period.

    Attributes:
        period_factor: period by the cost of prefill and denoising.
        misses: cycles that ended after their deadline.
        steps_per_cycle, tokens: what text got out of it.
        texts_finished, texts_refused: of those that were asked for.
    """

    clock: str
    period_factor: float
    period_ms: float
    cycles: int
    misses: int
    steps_per_cycle: float
    tokens: int
    texts_finished: int
    texts_refused: int


@dataclass(frozen=True)
class TextEffect:
    """Action latency from the time a cycle was due, with as much text as fits and without any.

    ``allowed_p99_ms``: 1.10 times the 99th percentile without text, and one decode step.
    """

    with_text: Spread
    without_text: Spread
    decode_step_ms: float

    @property
    def allowed_p99_ms(self) -> float:
        """What the 99th percentile with text may be."""
        return 1.10 * self.without_text.p99_ms + self.decode_step_ms


class Paced:
    """One executor whose cycles are due one period apart."""

    def __init__(self, executor: OxygenExecutor, clock: SimClock | SteadyClock, period_ns: int) -> None:
        self.executor = executor
        self._clock = clock
        self._period_ns = period_ns
        self.records: list[CycleRecord] = []
        self.reports: list[CycleReport] = []

    def run(self, jobs: Sequence[Job]) -> None:
        """Run ``jobs``, the first one due now; a late cycle moves those after it."""
        due_ns = self._clock.now_ns()
        for job in jobs:
            self._clock.sleep_until_ns(due_ns)
            record, report = self.executor.run_due(job, due_ns)
            self.records.append(record)
            self.reports.append(report)
            due_ns = max(due_ns + self._period_ns, self._clock.now_ns())


def on_virtual_clock(lab: Lab, costs: FakeCosts, num_cycles: int, factor: float) -> Deadlines:
    """Engine and cycle on exact time, with a stand-in for the model that costs what was measured."""
    clock, kv = SimClock(), lab.runner().layout
    tokenizer = NumberTokenizer(lab.config.vocab_size)
    runner = FakeRunner(lab.model.spec, kv, clock, tokenizer, costs, {"": [7, 11, 13]})
    period_ns = round(factor * (costs.prefill_ns + costs.act_ns))
    reserve_ns = round(RESERVE_SHARE * period_ns)
    executor = OxygenExecutor("oxygen", runner, AutoSteps(), 4, period_ns, reserve_ns, clock, is_strict=False)
    executor.engine.warm_up()
    paced = Paced(executor, clock, period_ns)
    paced.run(make_jobs(lab.workload, lab.config, num_cycles))
    return _deadlines("virtual", factor, period_ns, paced)


def on_wall_clock(lab: Lab, action_ns: int, num_cycles: int, factor: float) -> Deadlines:
    """The same on real time and the real model."""
    executor, period_ns = _real(lab, action_ns, factor)
    paced = Paced(executor, SteadyClock(), period_ns)
    paced.run(make_jobs(lab.workload, lab.config, num_cycles))
    executor.close()
    return _deadlines("wall", factor, period_ns, paced)


def measure_text_effect(lab: Lab, quiet: Lab, action_ns: int, num_cycles: int, factor: float) -> TextEffect:
    """Turns of some cycles with all the text that fits, and of some without, at the same period."""
    (busy, period_ns), (idle, _) = _real(lab, action_ns, factor), _real(quiet, action_ns, factor)
    turns = [Paced(busy, SteadyClock(), period_ns), Paced(idle, SteadyClock(), period_ns)]
    jobs = [make_jobs(one.workload, one.config, num_cycles) for one in (lab, quiet)]
    for start in range(0, num_cycles, CYCLES_PER_TURN):
        for paced, its_jobs in zip(turns, jobs, strict=True):
            paced.run(its_jobs[start : start + CYCLES_PER_TURN])
    busy.close()
    idle.close()
    with_text, without = (spread([r.action_latency_ns for r in paced.records]) for paced in turns)
    assert with_text is not None
    assert without is not None
    stepped = [r for r in turns[0].records if r.decode_steps]
    step_ms = float(np.median([r.decode_ns / r.decode_steps / 1e6 for r in stepped])) if stepped else 0.0
    return TextEffect(with_text, without, step_ms)


def _real(lab: Lab, action_ns: int, factor: float) -> tuple[OxygenExecutor, int]:
    period_ns = round(factor * action_ns)
    reserve_ns = round(RESERVE_SHARE * period_ns)
    executor = OxygenExecutor("oxygen", lab.runner(), AutoSteps(), 4, period_ns, reserve_ns, is_strict=False)
    executor.engine.warm_up()
    return executor, period_ns


def _deadlines(clock: str, factor: float, period_ns: int, paced: Paced) -> Deadlines:
    reports = paced.reports
    return Deadlines(
        clock=clock,
        period_factor=factor,
        period_ms=period_ns / 1e6,
        cycles=len(reports),
        misses=sum(report.is_late for report in reports),
        steps_per_cycle=float(np.mean([report.decode_steps for report in reports])),
        tokens=sum(report.text_tokens for report in reports),
        texts_finished=sum(len(record.finished) for record in paced.records),
        texts_refused=paced.executor.num_refused,
    )
