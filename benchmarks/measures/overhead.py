"""W8: what the control cycle costs without any text, against prefill and denoising called by hand."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.executors.noise import noise_seed
from benchmarks.lab import Lab
from benchmarks.timing import Moment, moment
from benchmarks.workloads import Job, make_jobs
from oxygen_ros.runners.eager import EagerRunner


@dataclass(frozen=True)
class Overhead:
    """Medians in ms, and the median of the cycles' ratios, each pair run one after the other.

    Attributes:
        ratio: in wall time.
        processor_ratio: in processor time of the thread.
    """

    cycle_ms: float
    action_only_ms: float
    ratio: float
    processor_ratio: float
    pairs: int


def measure_overhead(lab: Lab, num_cycles: int) -> Overhead:
    """Pairs of a cycle without text and of the bare calls of its runner; who begins changes."""
    executor, runner = lab.oxygen(), lab.runner()
    cycles: list[tuple[int, int]] = []
    bare: list[tuple[int, int]] = []
    works: list[tuple[Callable[[], object], list[tuple[int, int]]]]
    for job in make_jobs(lab.workload, lab.config, num_cycles + 1):
        works = [(partial(executor.run, job), cycles), (partial(_by_hand, runner, job), bare)]
        for work, durations in works if job.cycle % 2 else works[::-1]:
            begin = moment(lab.device)
            work()
            durations.append(_since(begin, moment(lab.device)))
    pairs = list(zip(cycles[1:], bare[1:], strict=True))
    return Overhead(
        cycle_ms=statistics.median(c[0] for c, _ in pairs) / 1e6,
        action_only_ms=statistics.median(b[0] for _, b in pairs) / 1e6,
        ratio=statistics.median(c[0] / b[0] for c, b in pairs),
        processor_ratio=statistics.median(c[1] / b[1] for c, b in pairs),
        pairs=len(pairs),
    )


def _by_hand(runner: EagerRunner, job: Job) -> None:
    runner.prefill(job.inputs, 0)
    for index, expert in enumerate(runner.spec.experts):
        runner.sample_actions(0, expert.name, noise_seed(job.inputs.observation_id, index))


def _since(begin: Moment, end: Moment) -> tuple[int, int]:
    return end.wall_ns - begin.wall_ns, end.cpu_ns - begin.cpu_ns
