"""Runs executors on the same jobs, turn by turn, so that whatever disturbs the machine disturbs all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.executors.protocol import CycleRecord, Executor
from benchmarks.workloads import Job

Progress = Callable[[str], None]


def run_rounds(
    executors: Sequence[Executor], jobs: Sequence[Job], num_warm_up: int, progress: Progress
) -> dict[str, list[CycleRecord]]:
    """Records of the jobs after the first ``num_warm_up``, by executor. Whoever begins changes with each job."""
    records: dict[str, list[CycleRecord]] = {executor.name: [] for executor in executors}
    try:
        for index, job in enumerate(jobs):
            first = index % len(executors)
            for executor in (*executors[first:], *executors[:first]):
                record = executor.run(job)
                if index >= num_warm_up:
                    records[executor.name].append(record)
            progress(f"cycle {index + 1} of {len(jobs)}")
    finally:
        for executor in executors:
            executor.close()
    return records
