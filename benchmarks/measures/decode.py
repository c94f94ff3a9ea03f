"""One decode step by number of rows: ours, single rows one after another, and the reference's batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.executors.own_kernels import text_row
from benchmarks.executors.padding import padded
from benchmarks.lab import Lab
from benchmarks.reference.policy import TextState, copied, split, stack
from benchmarks.timing import moment
from benchmarks.workloads import TextJob, make_jobs
from oxygen_ros.runners.eager import EagerRunner

STEPS_PER_ROUND = 3


@dataclass(frozen=True)
class DecodeStep:
    """Best time of one step that gives ``rows`` texts one token each; processor time of the thread, ms.

    The reference's data path runs in the dtype that it is fastest in, see ``Lab.opponents_dtype``.

    Attributes:
        oxygen: the product's runner, every row on a prefix of its own.
        oxygen_one_prefix: the same, all rows on one prefix.
        isolated: ``rows`` single-row steps of the reference's data path.
        isolated_own_kernels: ``rows`` single-row steps of the product's runner.
        reference: one batched step of the reference, caches already joined.
        reference_per_cycle: joining and splitting them, once per cycle.
    """

    rows: int
    oxygen: float
    oxygen_one_prefix: float
    isolated: float
    isolated_own_kernels: float
    reference: float
    reference_per_cycle: float

    @property
    def against_isolated(self) -> float:
        """Times faster per token than single rows in the reference's data path."""
        return self.isolated / self.oxygen

    @property
    def against_reference(self) -> float:
        """Times faster per token than the reference's batch, without its joining and splitting."""
        return self.reference / self.oxygen


class _OxygenSteps:
    """Steps of the product's runner over ``num_rows`` texts in the middle of their length."""

    def __init__(self, lab: Lab, runner: EagerRunner, num_rows: int, slots: list[int], tokens: int) -> None:
        text = TextJob("text", "text", (), lab.workload.max_tokens)
        self._runner = runner
        self._texts = [(row, slots[row]) for row in range(num_rows)]
        self._text = text
        self._tokens = tokens
        self._written = 0

    def __call__(self) -> None:
        """One step; begins anew at the end of the texts."""
        if self._written >= self._text.max_tokens:
            self._written = 0
        self._runner.decode_step(
            [text_row(self._text, row, slot, self._tokens, self._written) for row, slot in self._texts]
        )
        self._written += 1
        self._runner.read_tokens()


class _ReferenceSteps:
    """Steps of one joined state; goes back before its cache is full."""

    def __init__(self, lab: Lab, state: TextState) -> None:
        self._policy = lab.policy
        self._state = state
        self._room = lab.workload.max_tokens

    def __call__(self) -> None:
        """One step."""
        if int(self._state.count.max()) >= self._room:
            self._state.count -= self._room
            self._state.slot -= self._room
            self._state.position -= self._room
        self._policy.text_step(self._state)


def measure_decode(lab: Lab, row_counts: tuple[int, ...], num_rounds: int) -> list[DecodeStep]:
    """Interleaved rounds for each number of rows; best of ``num_rounds``."""
    jobs = make_jobs(lab.workload, lab.config, 1)
    most = max(row_counts)
    runner = lab.runner(num_prefixes=most, num_rows=most)
    tokens = max(runner.prefill(jobs[0].inputs, slot) for slot in range(most))
    prefix = lab.policy.prefill(padded(jobs[0].inputs, (), lab.config, lab.device))
    single = lab.policy.begin_text(prefix, lab.workload.max_tokens)
    results = []
    for rows in row_counts:
        own = list(range(rows))
        batch = stack([single] * rows)
        candidates: dict[str, Callable[[], object]] = {
            "oxygen": _OxygenSteps(lab, runner, rows, own, tokens),
            "oxygen_one_prefix": _OxygenSteps(lab, runner, rows, [0] * rows, tokens),
            "single_own": _OxygenSteps(lab, runner, 1, [0], tokens),
            "single": _ReferenceSteps(lab, stack([single])),
            "reference": _ReferenceSteps(lab, batch),
            "joining": partial(_join_and_split, batch),
        }
        best = _best_ms(candidates, num_rounds, lab)
        results.append(
            DecodeStep(
                rows=rows,
                oxygen=best["oxygen"],
                oxygen_one_prefix=best["oxygen_one_prefix"],
                isolated=rows * best["single"],
                isolated_own_kernels=rows * best["single_own"],
                reference=best["reference"],
                reference_per_cycle=best["joining"],
            )
        )
    return results


def _join_and_split(batch: TextState) -> None:
    stack([copied(state) for state in split(batch)])


def _best_ms(candidates: dict[str, Callable[[], object]], num_rounds: int, lab: Lab) -> dict[str, float]:
    """Best processor time (wall time on a GPU) of one call of each candidate, in turns."""
    best: dict[str, float] = {}
    for index in range(num_rounds + 1):
        for name, step in candidates.items():
            for _ in range(STEPS_PER_ROUND):
                begin = moment(lab.device)
                step()
                end = moment(lab.device)
                cpu = end.cpu_ns - begin.cpu_ns
                spent = cpu if lab.device.type == "cpu" else end.wall_ns - begin.wall_ns
                if index:
                    best[name] = min(best.get(name, float("inf")), spent / 1e6)
    return best
