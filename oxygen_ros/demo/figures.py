"""Numbers of a run: control rate, deadlines, latencies, tokens. None where the bag does not say."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from oxygen_ros.demo.recording import RunRecording, Text
from oxygen_ros.runtime.stamps import S

SHARES = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "max": 1.0}


def percentiles(values: Sequence[float], digits: int = 2) -> dict[str, float | None]:
    """p50, p95, p99 and the largest: values that occurred, never between two."""
    ordered = sorted(values)
    if not ordered:
        return dict.fromkeys(SHARES)
    ranks = {name: max(0, math.ceil(share * len(ordered)) - 1) for name, share in SHARES.items()}
    return {name: round(ordered[rank], digits) for name, rank in ranks.items()}


def control_figures(run: RunRecording) -> dict[str, Any]:
    """What the robot got: ticks, cycles, latency of actions."""
    acted = [cycle for cycle in run.cycles if cycle.has_acted]
    gaps = [(b - a) / 1e6 for a, b in itertools.pairwise(run.ticks)]
    span_s = (run.ticks[-1] - run.ticks[0]) / S if len(run.ticks) > 1 else 0.0
    missed, clamped = run.player if run.player is not None else (None, None)
    return {
        "commands": len(run.ticks),
        "control_rate_hz": round(len(gaps) / span_s, 2) if span_s else None,
        "command_gap_ms": percentiles(gaps),
        "ticks_missed": missed,
        "steps_clamped": clamped,
        "cycles": len(run.cycles),
        "cycles_acted": len(acted),
        "chunks": run.num_chunks,
        "deadline_misses": sum(cycle.is_late for cycle in run.cycles),
        "period_ms": round(run.cycles[-1].period_ms, 2) if run.cycles else None,
        "action_latency_ms": percentiles([cycle.action_latency_ms for cycle in acted]),
        "prefill_ms": percentiles([cycle.prefill_ms for cycle in acted]),
        "act_ms": percentiles([cycle.act_ms for cycle in acted]),
        "slack_ms": percentiles([cycle.slack_ms for cycle in run.cycles]),
    }


def text_figures(run: RunRecording) -> dict[str, Any]:
    """What was written, and how long it took."""
    complete = [text for text in run.texts if text.is_complete]
    steps = sum(cycle.decode_steps for cycle in run.cycles)
    tokens = sum(cycle.text_tokens for cycle in run.cycles)
    return {
        "texts": len(run.texts),
        "by_end": dict(sorted(Counter(text.reason or "unfinished" for text in run.texts).items())),
        "tokens": tokens,
        "tokens_per_s": round(tokens / run.duration_s, 1) if run.duration_s else None,
        "decode_steps": steps,
        "tokens_per_step": round(tokens / steps, 2) if steps else None,
        "latency_s": percentiles([_latency_s(text) for text in complete], 3),
        "by_task": {
            task: {
                "texts": sum(text.task == task for text in run.texts),
                "completed": sum(text.task == task for text in complete),
                "latency_s": percentiles([_latency_s(text) for text in complete if text.task == task], 3),
            }
            for task in sorted({text.task for text in run.texts})
        },
    }


def _latency_s(text: Text) -> float:
    """From the observation it is about to its last piece."""
    return (text.end_ns - text.born_ns) / S
