"""What every executor does, and what it hands back for each observation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.workloads import Job
from oxygen_ros.types import FloatArray


@dataclass(frozen=True)
class TextResult:
    """One finished text. Times are of the wall clock, from taking the observation it is about.

    Attributes:
        cycles: cycles it took, the first one included.
    """

    request_id: str
    token_ids: tuple[int, ...]
    first_token_ns: int
    completion_ns: int
    cycles: int


@dataclass(frozen=True)
class CycleRecord:
    """One observation, from taking it to the end of its decode steps. Durations in nanoseconds.

    Attributes:
        cpu_ns: processor time of the thread over the whole cycle.
        action_latency_ns: until the actions can be used by somebody else.
        rows: texts that advanced.
        tokens: text tokens written.
        actions: by expert.
    """

    wall_ns: int
    cpu_ns: int
    action_latency_ns: int
    prefill_ns: int
    act_ns: int
    decode_ns: int
    decode_steps: int
    rows: int
    tokens: int
    actions: dict[str, FloatArray]
    finished: tuple[TextResult, ...] = field(default=())


class Executor(Protocol):
    """One way of running jobs. It holds the texts that are not finished between two jobs."""

    name: str

    def run(self, job: Job) -> CycleRecord:
        """Run one cycle."""
        ...

    def close(self) -> None:
        """Give up all texts and the memory held for them."""
        ...
