"""One run of the benchmark: which parts are measured, and the plain results they give.

Size: the parts of one run in their order, read from top to bottom.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from benchmarks.ablations import ABLATIONS, ablated
from benchmarks.equality import Equality, check_equality
from benchmarks.executors.protocol import CycleRecord, Executor
from benchmarks.lab import EXECUTORS, Lab
from benchmarks.machine import Machine, load_average, probe
from benchmarks.measures.deadlines import PERIOD_FACTORS, measure_text_effect, on_virtual_clock, on_wall_clock
from benchmarks.measures.decode import measure_decode
from benchmarks.measures.memory import count_kv_bytes
from benchmarks.measures.operators import count_operators
from benchmarks.measures.overhead import measure_overhead
from benchmarks.measures.phases import curves, measure_phases
from benchmarks.measures.roofline import bounds
from benchmarks.measures.soak import run_soak
from benchmarks.metrics import compare, summarise
from benchmarks.results import SCHEMA, to_plain
from benchmarks.rounds import Progress, run_rounds
from benchmarks.sizes import MODEL_SIZES
from benchmarks.workloads import WORKLOADS, Workload, make_jobs, steps_sweep
from oxygen_ros.runners.fake import FakeCosts

STATELESS = tuple(name for name in EXECUTORS if name not in ("reference", "oxygen"))
MAIN_EXECUTORS = ("isolated", "reference", "oxygen")
ROW_COUNTS = (1, 2, 4, 8, 16)
SCALING_ROWS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class SuiteSettings:
    """What is run.

    Attributes:
        cycles: measured cycles of each workload.
        stateless_every: executors without state run in every so many-th cycle.
        parts: names of ``Suite`` methods.
        paced_cycles, soak_cycles: cycles on the wall clock at a period, and of the soak.
        max_tokens: of all texts, for runs that are to be short.
    """

    size: str
    dtype: str
    device: str
    workloads: tuple[str, ...]
    parts: tuple[str, ...]
    cycles: int = 30
    stateless_every: int = 3
    paced_cycles: int = 100
    soak_cycles: int = 2000
    decode_rounds: int = 5
    sweep_steps: tuple[int, ...] = (2, 10)
    max_tokens: int | None = None

    def workload(self, name: str) -> Workload:
        """Workload ``name``, with shorter texts where ``max_tokens`` says so."""
        workload = WORKLOADS[name]
        return replace(workload, max_tokens=self.max_tokens or workload.max_tokens)


class UnequalError(RuntimeError):
    """Executors give different outputs: ratios between them would mean nothing."""


class Suite:
    """Runs the parts in order and collects plain results under their names."""

    def __init__(
        self, settings: SuiteSettings, progress: Progress, keep: Callable[[dict[str, Any]], None]
    ) -> None:
        """Make a run.

        Args:
            keep: called with the results so far after each part, since a whole run takes long.
        """
        self._settings = settings
        self._keep = keep
        self._results: dict[str, Any] = {}
        self._progress = progress
        self._device = torch.device(settings.device)
        self._dtype: torch.dtype = getattr(torch, settings.dtype)

    def run(self) -> dict[str, Any]:
        """Measure everything.

        Raises:
            UnequalError: if executors do not give the same; nothing was compared then.
        """
        results = self._results = {
            "schema": SCHEMA,
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "settings": self._settings,
            "machine": self._machine,
            "model": self._model_facts(),
            "equality": self._equality(),
        }
        for part in self._settings.parts:
            self._progress(part)
            results[part] = getattr(self, f"_{part}")()
            results["load_average_at_end"] = load_average()
            self._keep(to_plain(results))
        plain: dict[str, Any] = to_plain(results)
        return plain

    @cached_property
    def _machine(self) -> Machine:
        return probe(self._device)

    def _lab(self, workload: Workload) -> Lab:
        return Lab(MODEL_SIZES[self._settings.size], self._dtype, self._device, workload)

    @cached_property
    def _w1(self) -> Lab:
        return self._lab(self._settings.workload("W1"))

    def _model_facts(self) -> dict[str, Any]:
        lab = self._w1
        return {
            "name": self._settings.size,
            "dtype": self._settings.dtype,
            "parameters": lab.parameters,
            "linear_kernels": lab.model.kernels,
            "opponents_dtype": str(lab.opponents_dtype).removeprefix("torch."),
            "vlm": lab.config.vlm,
            "vision": lab.config.vision,
            "expert": lab.config.experts[0].size,
            "vocab_size": lab.config.vocab_size,
            "note": "random weights; text is causal; no token ends a text; greedy everywhere",
        }

    def _equality(self) -> dict[str, Equality]:
        """Tokens and actions of the other executors against ours, in float32; not at full size."""
        size = MODEL_SIZES["cpu" if self._settings.size == "pi05" else self._settings.size]
        checks = {name: replace(WORKLOADS[name], max_tokens=10) for name in ("W1", "W6")}
        found: dict[str, Equality] = {}
        for name, workload in checks.items():
            self._progress(f"equality on {name}")
            lab = Lab(size, torch.float32, self._device, workload)
            jobs = make_jobs(workload, lab.config, workload.cycles_until_steady + 1)
            found[f"{name} reference"] = check_equality(lab.oxygen(), lab.executor("reference"), jobs)
            found[f"{name} isolated"] = check_equality(lab.oxygen(), lab.executor("isolated"), jobs)
        if not all(check.holds for check in found.values()):
            raise UnequalError(f"outputs differ, no ratio means anything: {found}")
        return found

    def _rounds(
        self, lab: Lab, executors: Sequence[Executor], cycles: int | None = None
    ) -> dict[str, list[CycleRecord]]:
        warm_up = lab.workload.cycles_until_steady
        jobs = make_jobs(lab.workload, lab.config, warm_up + (cycles or self._settings.cycles))
        return run_rounds(
            executors,
            jobs,
            warm_up,
            lambda text: self._progress(f"{lab.workload.id}: {text}"),
            STATELESS,
            self._settings.stateless_every,
        )

    def _measured(self, lab: Lab, names: Sequence[str], cycles: int | None = None) -> dict[str, Any]:
        load = load_average()
        records = self._rounds(lab, [lab.executor(name) for name in names], cycles)
        metrics = {name: summarise(measured) for name, measured in records.items()}
        ours = metrics["oxygen"]
        return {
            "title": lab.workload.title,
            "workload": lab.workload,
            "executors": metrics,
            "ratios": {name: compare(ours, theirs) for name, theirs in metrics.items() if name != "oxygen"},
            "latencies_ms": {
                name: [round(r.action_latency_ns / 1e6, 3) for r in measured]
                for name, measured in records.items()
            },
            "load_average": (load, load_average()),
        }

    def _workloads(self) -> dict[str, Any]:
        measured = {}
        for name in self._settings.workloads:
            workload = self._settings.workload(name)
            executors = EXECUTORS if name == "W1" else MAIN_EXECUTORS
            lab = self._w1 if name == "W1" else self._lab(workload)
            measured[name] = self._measured(lab, executors)
            self._keep(
                to_plain({**self._results, "workloads": measured, "load_average_at_end": load_average()})
            )
        return measured

    def _sweep(self) -> dict[str, Any]:
        cycles = max(2, self._settings.cycles // 3)
        return {
            workload.id: self._measured(self._lab(workload), ("reference", "oxygen"), cycles)
            for workload in steps_sweep(self._settings.workload("W1"), self._settings.sweep_steps)
        }

    def _ablations(self) -> dict[str, Any]:
        """Each feature off alone; then all off, and on again one by one in the order of the list."""
        lab, cycles = self._w1, max(2, self._settings.cycles // 3)
        alone = [ablated(lab, a.feature, [a]) for a in ABLATIONS]
        ladder = [ablated(lab, f"+{i}", ABLATIONS[i:]) for i in range(len(ABLATIONS))]
        records = self._rounds(lab, [lab.oxygen(), *alone, *ladder], cycles)
        metrics = {name: summarise(measured) for name, measured in records.items()}
        return {
            "oxygen": metrics["oxygen"],
            "alone": {a.feature: metrics[a.feature] for a in ABLATIONS},
            "changes_outputs": [a.feature for a in ABLATIONS if a.changes_outputs],
            "ladder": [
                {"switched_on": "nothing" if not i else ABLATIONS[i - 1].feature, "metrics": metrics[f"+{i}"]}
                for i in range(len(ABLATIONS))
            ]
            + [{"switched_on": ABLATIONS[-1].feature, "metrics": metrics["oxygen"]}],
        }

    def _decode(self) -> Any:
        return measure_decode(self._w1, ROW_COUNTS, self._settings.decode_rounds)

    def _decode_bfloat16(self) -> Any:
        lab = Lab(
            MODEL_SIZES[self._settings.size], torch.bfloat16, self._device, self._settings.workload("W1")
        )
        return measure_decode(lab, ROW_COUNTS, self._settings.decode_rounds)

    def _memory(self) -> Any:
        return count_kv_bytes(self._w1)

    def _operators(self) -> Any:
        return count_operators(self._w1)

    def _overhead(self) -> Any:
        return measure_overhead(self._lab(self._settings.workload("W8")), self._settings.cycles)

    def _action_ns(self) -> tuple[int, int, int]:
        point = measure_phases(self._w1, 1)
        return round(point.prefill_ms * 1e6), round(point.act_ms * 1e6), round(point.decode_step_ms * 1e6)

    def _deadlines(self) -> list[Any]:
        lab = self._lab(self._settings.workload("W7"))
        prefill, act, step = self._action_ns()
        costs = FakeCosts(prefill, act, step, step // 20, jitter_ns=step // 10)
        virtual = [on_virtual_clock(lab, costs, 5 * self._settings.paced_cycles, f) for f in PERIOD_FACTORS]
        action_ns = self._wall_action_ns(lab)
        wall = [on_wall_clock(lab, action_ns, self._settings.paced_cycles, f) for f in (2.0, 1.3)]
        return [*virtual, *wall]

    def _text_effect(self) -> Any:
        lab, quiet = self._lab(self._settings.workload("W1")), self._lab(self._settings.workload("W8"))
        return measure_text_effect(lab, quiet, self._wall_action_ns(quiet), self._settings.paced_cycles, 1.3)

    def _wall_action_ns(self, lab: Lab) -> int:
        """Median wall time of prefill and denoising as the machine is now."""
        quiet = self._lab(replace(lab.workload, arrivals="none"))
        executor = quiet.oxygen()
        records = [executor.run(job) for job in make_jobs(quiet.workload, quiet.config, 8)][1:]
        return round(summarise(records).cycle.p50_ms * 1e6)

    def _roofline(self) -> Any:
        lab = self._w1
        point = measure_phases(lab, lab.workload.steady_rows)
        measured = {"prefill": point.prefill_ms, "act": point.act_ms, "decode_step": point.decode_step_ms}
        return {
            phase: {
                "bound": bound,
                "measured_ms": measured[phase],
                "over_bound": measured[phase] / bound.bound_ms,
            }
            for phase, bound in bounds(lab, self._machine, lab.workload.steady_rows).items()
        }

    def _scaling(self) -> Any:
        most = 8 if self._settings.size == "tiny" else SCALING_ROWS[-1]
        counts = tuple(count for count in SCALING_ROWS if count <= most)
        return curves(self._lab, self._settings.workload("W1"), counts)

    def _soak(self) -> Any:
        """Always with the tiny model: accounts do not depend on its size."""
        lab = Lab(MODEL_SIZES["tiny"], torch.float32, self._device, WORKLOADS["W7"])
        return run_soak(lab, self._settings.soak_cycles)


PARTS: tuple[str, ...] = (
    "workloads",
    "sweep",
    "ablations",
    "decode",
    "decode_bfloat16",
    "memory",
    "operators",
    "overhead",
    "text_effect",
    "deadlines",
    "roofline",
    "scaling",
    "soak",
)
NOT_GATED = ("sweep", "ablations", "decode", "roofline", "scaling", "soak")
GATE_PARTS = tuple(part for part in PARTS if part not in NOT_GATED)
