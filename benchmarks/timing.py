"""Time of work on a device: wall time, time of this thread on the processor, and CUDA events."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Moment:
    """Wall clock and processor time of this thread, in nanoseconds.

    With one thread of computation the second is what the work costs whatever else runs on the machine.
    """

    wall_ns: int
    cpu_ns: int


def moment(device: torch.device) -> Moment:
    """Now, after all work given to ``device`` is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return Moment(time.perf_counter_ns(), time.thread_time_ns())


def timed_ns(work: Callable[[], object], device: torch.device) -> int:
    """Duration of ``work``: by events on CUDA, else of this thread, or of all if there are more."""
    if device.type == "cuda":
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        return round(begin.elapsed_time(end) * 1e6)
    clock = time.thread_time_ns if torch.get_num_threads() == 1 else time.perf_counter_ns
    start = clock()
    work()
    return clock() - start
