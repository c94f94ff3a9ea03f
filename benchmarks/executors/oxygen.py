"""The product: its ControlCycle, Engine and runner as they are, on prepared inputs.

Preparing pictures and prompts is left out for every executor alike.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from benchmarks.executors.protocol import CycleRecord, TextResult
from benchmarks.timing import moment
from benchmarks.tokenizer import NumberTokenizer
from benchmarks.workloads import Job
from oxygen_ros.clock import Clock, SteadyClock
from oxygen_ros.engine.budget import StepPolicy
from oxygen_ros.engine.engine import Engine, EngineSettings
from oxygen_ros.models.protocol import ModelInputs
from oxygen_ros.runners.eager import EagerRunner
from oxygen_ros.runners.protocol import ModelRunner
from oxygen_ros.runtime.control_cycle import ControlCycle, CycleSettings
from oxygen_ros.runtime.ports import NotReady
from oxygen_ros.types import (
    ActionChunk,
    CycleReport,
    CycleStatus,
    FinishReason,
    FloatArray,
    Observation,
    SamplingParams,
    TextDelta,
    TextKind,
    TextRequest,
)

HOUR_NS = 3_600_000_000_000
_NO_STATE = np.zeros(0, dtype=np.float32)


class PreparedSource:
    """Source, processor and sinks of one control cycle; inputs were prepared before."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._inputs: ModelInputs | None = None
        self.chunks: dict[str, FloatArray] = {}
        self.action_ns = 0
        self.deltas: list[TextDelta] = []

    def offer(self, inputs: ModelInputs) -> None:
        """What the next cycle takes."""
        self._inputs = inputs
        self.chunks = {}
        self.deltas = []

    def take(self) -> Observation | NotReady:
        """The observation that was offered, without its pictures: they are prepared already."""
        if self._inputs is None:
            return NotReady(CycleStatus.WAITING, "nothing was offered")
        return Observation(self._inputs.observation_id, 0, {}, _NO_STATE, "")

    def refusals(self) -> dict[str, int]:
        """None."""
        return {}

    def prepare(self, observation: Observation) -> ModelInputs:
        """The prepared inputs."""
        assert self._inputs is not None
        return self._inputs

    def finish(self, expert: str, actions: FloatArray, observation: Observation) -> FloatArray:
        """Actions as they are: model space is what all executors give."""
        return actions

    def joint_names(self, expert: str) -> tuple[str, ...]:
        """Numbers."""
        return tuple(f"joint_{index}" for index in range(32))

    def publish_action(self, chunk: ActionChunk) -> None:
        """Keep it and note the time: from now on somebody else can use it."""
        self.chunks[chunk.expert] = chunk.actions
        self.action_ns = self.action_ns if len(self.chunks) > 1 else self._clock.now_ns()

    def publish_text(self, delta: TextDelta) -> None:
        """Keep it."""
        self.deltas.append(delta)

    def publish_report(self, report: CycleReport) -> None:
        """The caller of ``run`` has it."""


@dataclasses.dataclass
class _Writing:
    """A text that is on its way."""

    born_ns: int
    born_cycle: int
    text: str = ""
    first_token_ns: int = 0


class OxygenExecutor:
    """One ControlCycle over one runner. ``name`` tells ablations apart."""

    def __init__(
        self,
        name: str,
        runner: ModelRunner,
        steps: StepPolicy,
        steps_per_round: int,
        period_ns: int = HOUR_NS,
        reserve_ns: int = 0,
        clock: Clock | None = None,
        is_strict: bool = True,
    ) -> None:
        """Put the product's parts together.

        Args:
            is_strict: texts that are refused are faults; otherwise they are counted.
        """
        self.name = name
        self._device = runner.model.device if isinstance(runner, EagerRunner) else torch.device("cpu")
        self._is_strict = is_strict
        self.num_refused = 0
        clock = clock or SteadyClock()
        self._source = PreparedSource(clock)
        waiting = 4 * runner.layout.num_rows
        self.engine = Engine(
            runner,
            NumberTokenizer(runner.spec.vocab_size),
            clock,
            EngineSettings(steps=steps, steps_per_round=steps_per_round, max_waiting=waiting),
        )
        horizon = min(expert.horizon for expert in runner.spec.experts)
        self._cycle = ControlCycle(
            engine=self.engine,
            processor=self._source,
            source=self._source,
            actions=self._source,
            texts=self._source,
            reports=self._source,
            clock=clock,
            settings=CycleSettings(period_ns, reserve_ns, execute_horizon=horizon, dt_ns=33_333_333),
        )
        self._clock = clock
        self._writing: dict[str, _Writing] = {}

    def run(self, job: Job) -> CycleRecord:
        """Run one cycle that was due now."""
        return self.run_due(job, None)[0]

    def run_due(self, job: Job, due_ns: int | None) -> tuple[CycleRecord, CycleReport]:
        """Run one cycle that was due at ``due_ns`` of the steady clock, and give its report too.

        Raises:
            RuntimeError: if the cycle failed.
        """
        device = self._device
        start, begin_ns = moment(device), self._clock.now_ns()
        for text in job.texts:
            self._submit(text.request_id, text.task, text.prompt_ids, text.max_tokens)
            self._writing[text.request_id] = _Writing(begin_ns, job.cycle)
        self._source.offer(job.inputs)
        report = self._cycle.run(due_ns)
        end = moment(device)
        if report.status is not CycleStatus.ACTED:
            raise RuntimeError(f"cycle {report.cycle_id}: {report.status.name}: {report.reason}")
        since_ns = begin_ns if due_ns is None else due_ns
        return CycleRecord(
            wall_ns=end.wall_ns - start.wall_ns,
            cpu_ns=end.cpu_ns - start.cpu_ns,
            action_latency_ns=self._source.action_ns - since_ns,
            prefill_ns=report.prefill_ns,
            act_ns=report.act_ns,
            decode_ns=report.decode_ns,
            decode_steps=report.decode_steps,
            rows=report.text_rows,
            tokens=report.text_tokens,
            actions=dict(self._source.chunks),
            finished=self._collect(job.cycle),
        ), report

    def close(self) -> None:
        """End all texts; the engine can be used at once."""
        self._cycle.halt("the benchmark has what it wants")
        self._writing.clear()
        self.engine.check_integrity()

    def _submit(self, request_id: str, task: str, prompt_ids: tuple[int, ...], max_tokens: int) -> None:
        refused = self.engine.submit(
            TextRequest(
                request_id=request_id,
                task=task,
                kind=TextKind.OTHER,
                prompt=" ".join(map(str, prompt_ids)),
                sampling=SamplingParams(max_tokens=max_tokens),
                max_age_ns=HOUR_NS,
            )
        )
        if refused:
            raise RuntimeError(f"{request_id} was not taken: {refused}")

    def _collect(self, cycle: int) -> tuple[TextResult, ...]:
        """Texts that this cycle's deltas completed."""
        finished = []
        now_ns = self._clock.now_ns()
        for delta in self._source.deltas:
            writing = self._writing[delta.request_id]
            writing.text += delta.text
            if delta.num_tokens and not writing.first_token_ns:
                writing.first_token_ns = now_ns - writing.born_ns
            if not delta.is_final:
                continue
            if delta.finish_reason is FinishReason.REFUSED and not self._is_strict:
                self.num_refused += 1
                del self._writing[delta.request_id]
                continue
            if delta.finish_reason is not FinishReason.LENGTH:
                raise RuntimeError(f"{delta.request_id} ended as {delta.finish_reason}: {delta.detail}")
            del self._writing[delta.request_id]
            finished.append(
                TextResult(
                    request_id=delta.request_id,
                    token_ids=tuple(int(word) for word in writing.text.split()),
                    first_token_ns=writing.first_token_ns,
                    completion_ns=now_ns - writing.born_ns,
                    cycles=cycle - writing.born_cycle + 1,
                )
            )
        return tuple(finished)
