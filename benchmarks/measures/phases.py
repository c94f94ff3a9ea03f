"""Cost of single phases of the product's runner: curves over requests, prefix length, cameras, experts."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace

from benchmarks.executors.own_kernels import text_row
from benchmarks.lab import Lab
from benchmarks.timing import moment
from benchmarks.workloads import RobotShape, TextJob, Workload, make_jobs
from oxygen_ros.runners.eager import EagerRunner

REPEATS = 3
MAX_PREFIXES = 8


@dataclass(frozen=True)
class Point:
    """One point of a curve. Processor time of the thread in ms, wall time on a GPU.

    Attributes:
        x: what the curve goes over.
        cycle_ms: prefill, all experts and the workload's decode steps.
    """

    x: int
    prefix_tokens: int
    rows: int
    prefill_ms: float
    act_ms: float
    decode_step_ms: float
    cycle_ms: float


@dataclass(frozen=True)
class Curve:
    """Cost against one quantity, all else as in W1."""

    name: str
    points: tuple[Point, ...]


def measure_phases(lab: Lab, rows: int) -> Point:
    """Median cost of each phase with ``rows`` texts in the middle of their length."""
    prefixes = min(MAX_PREFIXES, max(rows, 1))
    runner = lab.runner(num_prefixes=prefixes, num_rows=max(rows, 1))
    inputs = make_jobs(lab.workload, lab.config, 1)[0].inputs
    tokens = max(runner.prefill(inputs, slot) for slot in range(prefixes))
    prefill_ms = _median_ms(lambda: runner.prefill(inputs, 0), lab)
    act_ms = sum(
        _median_ms(lambda name=expert.name: runner.sample_actions(0, name, 1), lab)  # type: ignore[misc]
        for expert in runner.spec.experts
    )
    step_ms = _decode_ms(lab, runner, rows, tokens) if rows else 0.0
    cycle_ms = prefill_ms + act_ms + lab.workload.steps_per_cycle * step_ms
    return Point(rows, tokens, rows, prefill_ms, act_ms, step_ms, cycle_ms)


def _decode_ms(lab: Lab, runner: EagerRunner, rows: int, tokens: int) -> float:
    text = TextJob("text", "text", (), lab.workload.max_tokens)
    prefixes = runner.layout.num_prefixes
    written = 0

    def step() -> None:
        nonlocal written
        batch = [text_row(text, row, row % prefixes, tokens, written) for row in range(rows)]
        runner.decode_step(batch)
        runner.read_tokens()
        written += 1

    return _median_ms(step, lab)


def _median_ms(work: Callable[[], object], lab: Lab) -> float:
    work()
    spent = []
    for _ in range(REPEATS):
        begin = moment(lab.device)
        work()
        end = moment(lab.device)
        on_cpu = lab.device.type == "cpu"
        spent.append((end.cpu_ns - begin.cpu_ns) if on_cpu else (end.wall_ns - begin.wall_ns))
    return statistics.median(spent) / 1e6


def curves(make_lab: Callable[[Workload], Lab], base: Workload, row_counts: tuple[int, ...]) -> list[Curve]:
    """All curves around ``base``."""
    lab, robot, rows = make_lab(base), base.robot, base.steady_rows
    over_rows = tuple(measure_phases(lab, count) for count in row_counts)
    return [
        Curve("active requests", over_rows),
        Curve(
            "prefix tokens",
            tuple(
                _at(make_lab, replace(base, robot=_with_prompt(robot, prompt)), rows)
                for prompt in (20, 148, 404, 740)
            ),
        ),
        Curve(
            "cameras",
            tuple(
                replace(_at(make_lab, replace(base, robot=replace(robot, num_cameras=count)), rows), x=count)
                for count in (1, 2, 3)
            ),
        ),
        Curve(
            "action experts",
            tuple(
                replace(_at(make_lab, replace(base, num_experts=count), rows), x=count) for count in (1, 2, 4)
            ),
        ),
    ]


def _with_prompt(robot: RobotShape, prompt_tokens: int) -> RobotShape:
    longest = max(robot.max_token_len, prompt_tokens)
    return replace(robot, prompt_tokens=prompt_tokens, max_token_len=longest)


def _at(make_lab: Callable[[Workload], Lab], workload: Workload, rows: int) -> Point:
    point = measure_phases(make_lab(workload), rows)
    return replace(point, x=point.prefix_tokens)
