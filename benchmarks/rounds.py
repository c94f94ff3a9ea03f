"""Runs executors on the same jobs, turn by turn, so that whatever disturbs the machine disturbs all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from benchmarks.executors.protocol import CycleRecord, Executor
from benchmarks.workloads import Job

Progress = Callable[[str], None]


def run_rounds(
    executors: Sequence[Executor],
    jobs: Sequence[Job],
    num_warm_up: int,
    progress: Progress,
    stateless: Collection[str] = (),
    stateless_every: int = 1,
) -> dict[str, list[CycleRecord]]:
    """Records of the jobs after the first ``num_warm_up``, by executor. Whoever begins changes with each job.

    Args:
        stateless: executors that hold nothing between jobs: one job warms them up, and they run in every
            ``stateless_every``-th measured round only, since they take many times longer.
    """
    records: dict[str, list[CycleRecord]] = {executor.name: [] for executor in executors}

    def takes_part(name: str, index: int) -> bool:
        if name not in stateless:
            return True
        measured = index - num_warm_up
        return measured == -1 or (measured >= 0 and measured % stateless_every == 0)

    try:
        for index, job in enumerate(jobs):
            first = index % len(executors)
            for executor in (*executors[first:], *executors[:first]):
                if not takes_part(executor.name, index):
                    continue
                record = executor.run(job)
                if index >= num_warm_up:
                    records[executor.name].append(record)
            progress(f"cycle {index + 1} of {len(jobs)}")
    finally:
        for executor in executors:
            executor.close()
    return records
