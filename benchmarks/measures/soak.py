"""W9: thousands of cycles with Poisson arrivals. Nothing leaks, and memory does not grow."""

from __future__ import annotations

import resource
from dataclasses import dataclass

from benchmarks.lab import Lab
from benchmarks.workloads import make_jobs


@dataclass(frozen=True)
class Soak:
    """What a long run left behind.

    Attributes:
        texts_asked, texts_finished, texts_refused: they add up.
        rows_held, prefixes_held: after the last text was ended; none.
        kv_bytes_changed: memory of the KV tensors, at the end minus at the start.
        resident_growth_kib: peak memory of the process after the first tenth of the run.
    """

    cycles: int
    texts_asked: int
    texts_finished: int
    texts_refused: int
    texts_open: int
    rows_held: int
    prefixes_held: int
    kv_bytes_changed: int
    resident_growth_kib: int


def run_soak(lab: Lab, num_cycles: int) -> Soak:
    """Run ``num_cycles``; accounts are checked at the end.

    Raises:
        IntegrityError: if they do not add up.
    """
    runner = lab.runner()
    executor = lab.oxygen(runner=runner, is_strict=False)
    kv_bytes = runner.memory.num_bytes
    asked = finished = resident = 0
    for job in make_jobs(lab.workload, lab.config, num_cycles):
        asked += len(job.texts)
        finished += len(executor.run(job).finished)
        if job.cycle == num_cycles // 10:
            resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident
    refused = executor.num_refused
    executor.close()
    memory = executor.engine.memory()
    return Soak(
        cycles=num_cycles,
        texts_asked=asked,
        texts_finished=finished,
        texts_refused=refused,
        texts_open=asked - finished - refused,
        rows_held=memory.rows_used,
        prefixes_held=memory.prefixes_used,
        kv_bytes_changed=runner.memory.num_bytes - kv_bytes,
        resident_growth_kib=grown,
    )
