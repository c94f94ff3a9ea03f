"""What has to hold, and whether it does. Works on plain result data, so old results can be judged too."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Results = dict[str, Any]
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
}


@dataclass(frozen=True)
class Gate:
    """One figure and its limit. ``find`` gives the figure, and the limit where it depends on the run."""

    name: str
    comparison: str
    limit: float
    find: Callable[[Results], float]
    limit_from: Callable[[Results], float] | None = None


@dataclass(frozen=True)
class Verdict:
    """A gate on the better of some runs; ``value`` is None where nothing was measured."""

    name: str
    comparison: str
    limit: float
    value: float | None
    holds: bool


def _ratio(workload: str, against: str, field: str) -> Callable[[Results], float]:
    return lambda r: float(r["workloads"][workload]["ratios"][against][field])


def _decode(rows: int, field: str) -> Callable[[Results], float]:
    def find(results: Results) -> float:
        return next(float(step[field]) for step in results["decode_bfloat16"] if step["rows"] == rows)

    return find


def _value(*path: str) -> Callable[[Results], float]:
    def find(results: Results) -> float:
        value: Any = results
        for key in path:
            value = value[key]
        return float(value)

    return find


def _miss_share(clock: str) -> Callable[[Results], float]:
    def find(results: Results) -> float:
        runs = [d for d in results["deadlines"] if d["clock"] == clock and d["period_factor"] >= 1.3]
        return max(d["misses"] / d["cycles"] for d in runs if clock == "virtual" or d["period_factor"] == 1.3)

    return find


GATES = (
    Gate("W1 cycle against isolated", ">=", 3.5, _ratio("W1", "isolated", "cycle")),
    Gate("W1 cycle against reference", ">=", 1.7, _ratio("W1", "reference", "cycle")),
    Gate("W5 cycle against isolated", ">=", 5.0, _ratio("W5", "isolated", "cycle")),
    Gate("W5 cycle against reference", ">=", 1.9, _ratio("W5", "reference", "cycle")),
    Gate("W4 cycle against isolated", ">=", 5.0, _ratio("W4", "isolated", "cycle")),
    Gate("W4 cycle against reference", ">=", 1.7, _ratio("W4", "reference", "cycle")),
    Gate("W1 action latency by isolated", "<=", 0.65, _ratio("W1", "isolated", "action_latency")),
    Gate("W1 action latency by reference", "<=", 0.45, _ratio("W1", "reference", "action_latency")),
    Gate("decode step, 8 rows, bfloat16, against isolated", ">=", 5.0, _decode(8, "against_isolated")),
    Gate("decode step, 16 rows, bfloat16, against isolated", ">=", 7.0, _decode(16, "against_isolated")),
    Gate("decode step, 8 rows, bfloat16, against reference", ">=", 2.0, _decode(8, "against_reference")),
    Gate("decode step, 16 rows, bfloat16, against reference", ">=", 2.5, _decode(16, "against_reference")),
    Gate("KV per request by reference", "<=", 0.65, _value("memory", "one_task_ratio")),
    Gate("KV per request, each of 3 tasks", "<=", 0.30, _value("memory", "each_of_three_ratio")),
    Gate(
        "p99 action latency with full text, ms",
        "<=",
        0.0,
        _value("text_effect", "with_text", "p99_ms"),
        _value("text_effect", "allowed_p99_ms"),
    ),
    Gate("deadline misses, virtual clock", "<=", 0.0, _miss_share("virtual")),
    Gate("deadline misses, wall clock, 1.3x period", "<=", 0.01, _miss_share("wall")),
    Gate("KV-sized allocations in decode steps", "==", 0, _value("operators", "kv_sized_allocations")),
    Gate("copies of prefixes in decode steps", "==", 0, _value("operators", "prefix_copies")),
    Gate("token transfers per cycle", "<=", 1, _value("operators", "token_transfers_per_cycle")),
    Gate(
        "cycle without text by action-only, processor time", "<=", 1.02, _value("overhead", "processor_ratio")
    ),
)


def judge(runs: Sequence[Results], gates: Sequence[Gate] = GATES) -> list[Verdict]:
    """Each gate on the better of ``runs``."""
    return [_judge(gate, runs) for gate in gates]


def _judge(gate: Gate, runs: Sequence[Results]) -> Verdict:
    found = []
    for run in runs:
        try:
            limit = gate.limit_from(run) if gate.limit_from else gate.limit
            found.append((gate.find(run), limit))
        except (KeyError, StopIteration, ValueError, TypeError):
            continue
    if not found:
        return Verdict(gate.name, gate.comparison, gate.limit, None, False)
    compare = COMPARISONS[gate.comparison]
    sign = -1 if gate.comparison == ">=" else 1
    value, limit = min(found, key=lambda pair: sign * (pair[0] - pair[1]))
    return Verdict(gate.name, gate.comparison, limit, value, compare(value, limit))
