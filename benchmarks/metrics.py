"""Numbers made of cycle records. Every name says what it counts: actions are not chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.executors.protocol import CycleRecord

MS = 1e6


@dataclass(frozen=True)
class Spread:
    """Median, mean, tails and best of some durations, in milliseconds."""

    p50_ms: float
    mean_ms: float
    p95_ms: float
    p99_ms: float
    min_ms: float
    count: int


def spread(durations_ns: Sequence[int]) -> Spread | None:
    """Spread of ``durations_ns``; None of nothing."""
    if not durations_ns:
        return None
    values = np.array(durations_ns) / MS
    p50, p95, p99 = (float(q) for q in np.percentile(values, (50, 95, 99)))
    return Spread(p50, float(values.mean()), p95, p99, float(values.min()), len(values))


@dataclass(frozen=True)
class Metrics:
    """One executor on one workload.

    Attributes:
        cycle: observation in to the end of the cycle's decode steps.
        cycle_processor: processor time of the thread for the same.
        action_latency: observation in to actions that somebody else can use.
        actions_per_second: rows of chunks by the mean cycle; ``chunks_per_second`` counts chunks.
        text_tokens_per_second: tokens of all texts by the mean cycle.
        mean_rows: texts that advanced in a cycle.
        first_token, completion: of texts, from taking the observation they are about.
        completion_cycles: mean cycles a text took.
    """

    cycle: Spread
    cycle_processor: Spread
    action_latency: Spread
    prefill: Spread
    act: Spread
    decode: Spread
    actions_per_second: float
    chunks_per_second: float
    text_tokens_per_second: float
    decode_steps_per_cycle: float
    mean_rows: float
    first_token: Spread | None
    completion: Spread | None
    completion_cycles: float | None


def _needed(durations_ns: Sequence[int]) -> Spread:
    result = spread(durations_ns)
    if result is None:
        raise ValueError("no cycle was measured")
    return result


def summarise(records: Sequence[CycleRecord]) -> Metrics:
    """Metrics of measured cycles; warm-up cycles are left out by the caller.

    Raises:
        ValueError: if there are no records.
    """
    texts = [text for record in records for text in record.finished]
    total_s = sum(record.wall_ns for record in records) / 1e9
    chunks = sum(len(record.actions) for record in records)
    rows = sum(len(chunk) for record in records for chunk in record.actions.values())
    return Metrics(
        cycle=_needed([r.wall_ns for r in records]),
        cycle_processor=_needed([r.cpu_ns for r in records]),
        action_latency=_needed([r.action_latency_ns for r in records]),
        prefill=_needed([r.prefill_ns for r in records]),
        act=_needed([r.act_ns for r in records]),
        decode=_needed([r.decode_ns for r in records]),
        actions_per_second=rows / total_s,
        chunks_per_second=chunks / total_s,
        text_tokens_per_second=sum(r.tokens for r in records) / total_s,
        decode_steps_per_cycle=float(np.mean([r.decode_steps for r in records])),
        mean_rows=float(np.mean([r.rows for r in records])),
        first_token=spread([t.first_token_ns for t in texts]),
        completion=spread([t.completion_ns for t in texts]),
        completion_cycles=float(np.mean([t.cycles for t in texts])) if texts else None,
    )


@dataclass(frozen=True)
class Ratios:
    """Ours beside another executor: cycles above one and latencies below one are better.

    Attributes:
        cycle: their median cycle by ours.
        cycle_processor: the same in processor time, which other programs disturb less.
        cycle_best: their best cycle by our best.
        action_latency: our median action latency by theirs.
    """

    cycle: float
    cycle_processor: float
    cycle_best: float
    action_latency: float


def compare(ours: Metrics, theirs: Metrics) -> Ratios:
    """Ratios of two executors that ran the same jobs, interleaved."""
    return Ratios(
        cycle=theirs.cycle.p50_ms / ours.cycle.p50_ms,
        cycle_processor=theirs.cycle_processor.p50_ms / ours.cycle_processor.p50_ms,
        cycle_best=theirs.cycle.min_ms / ours.cycle.min_ms,
        action_latency=ours.action_latency.p50_ms / theirs.action_latency.p50_ms,
    )
