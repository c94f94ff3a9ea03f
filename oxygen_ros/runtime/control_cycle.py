"""One control cycle: newest observation, one prefill, act, publish, then text in what time is left, report.

Knows no ROS, no torch, no concrete runner; time comes from the injected clock. One thread runs it, the
control thread; ``Engine.submit`` and ``Engine.cancel`` stay open to all threads meanwhile.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from oxygen_ros.clock import Clock
from oxygen_ros.engine.budget import CycleBudget
from oxygen_ros.engine.engine import Engine
from oxygen_ros.engine.tasks import TextTasks
from oxygen_ros.errors import ConfigError, ContractError, RunnerError
from oxygen_ros.models.protocol import Processor
from oxygen_ros.runtime.cycle_notes import CycleNotes
from oxygen_ros.runtime.ports import (
    ActionGuide,
    ActionSink,
    NotReady,
    ObservationSource,
    ReportSink,
    TextSink,
)
from oxygen_ros.types import ActionChunk, CycleReport, CycleStatus, FloatArray, Observation


@dataclass(frozen=True)
class CycleSettings:
    """Choices that hold while the cycle lives.

    Attributes:
        period_ns: action-execution window, the time one cycle may take.
        reserve_ns: part of it that is never given to text.
        execute_horizon: rows of a chunk that are run before the next one arrives.
        dt_ns: time between two rows of a chunk.
        seed: of the action noise, which depends on it, the observation id and the expert alone.
        decode_while_holding: running texts go on in cycles that have no observation.
    """

    period_ns: int
    reserve_ns: int
    execute_horizon: int
    dt_ns: int
    seed: int = 0
    decode_while_holding: bool = True


@dataclass
class Numbering:
    """Running numbers that never repeat while the node lives: it keeps one for all its cycles."""

    cycle_id: int = 0
    chunk_id: int = 0


class ControlCycle:
    """``run`` gives a report whatever happens: what failed is in it, and the robot was told to hold."""

    def __init__(
        self,
        *,
        engine: Engine,
        processor: Processor,
        source: ObservationSource,
        actions: ActionSink,
        texts: TextSink,
        reports: ReportSink,
        clock: Clock,
        settings: CycleSettings,
        tasks: TextTasks | None = None,
        numbering: Numbering | None = None,
        guide: ActionGuide | None = None,
    ) -> None:
        """Put the parts together.

        Raises:
            ConfigError: if more rows are to be run than an expert gives.
        """
        for expert in engine.spec.experts:
            if not 1 <= settings.execute_horizon <= expert.horizon:
                raise ConfigError(
                    "execute_horizon",
                    f"{settings.execute_horizon} rows to run, expert '{expert.name}' gives {expert.horizon}",
                    f"1 to {expert.horizon}; half of it or less keeps the seams smooth",
                )
        self._engine = engine
        self._processor = processor
        self._source = source
        self._actions = actions
        self._texts = texts
        self._reports = reports
        self._clock = clock
        self.settings = settings
        self._tasks = tasks or TextTasks()
        self._numbers = numbering or Numbering()
        self._guide = guide
        self._num_acted = 0
        self._num_late = 0
        self._refused: Counter[str] = Counter()

    def run(self, due_ns: int | None = None) -> CycleReport:
        """Run one cycle. Blocks until its text and its report have been published.

        Args:
            due_ns: steady time at which the cycle was due; now if None. Its deadline is one period later, so
                a cycle that starts late has less time for text.
        """
        self._numbers.cycle_id += 1
        start_ns = self._clock.now_ns() if due_ns is None else due_ns
        budget = CycleBudget(
            self._numbers.cycle_id, start_ns, start_ns + self.settings.period_ns, self.settings.reserve_ns
        )
        notes = CycleNotes(self._clock, budget)
        try:
            self._run(budget, notes)
        # The one boundary: whatever failed, the robot is told to hold and the node stays alive.
        except Exception as error:
            self._fail(error, notes)
        self._num_late += notes.slack_ns() < 0
        refusals = Counter(self._source.refusals()) + Counter(self._engine.refusals()) + self._refused
        report = notes.report(self._engine, self._num_late, refusals)
        self._reports.publish_report(report)
        return report

    def halt(self, detail: str) -> None:
        """End all texts as cancelled, forget the prefix and withdraw all chunks: the robot holds.

        For deactivation, reset and a clock that jumped. Blocks; control thread, or while it stands still.
        ``run`` may be called again afterwards.
        """
        self._num_acted = self._num_late = 0
        self._withdraw_chunks(None)
        self._engine.reset(detail)
        self._publish_texts()

    def _run(self, budget: CycleBudget, notes: CycleNotes) -> None:
        not_ready = self._observe(notes)
        if not_ready:
            notes.status, notes.reason = not_ready.status, not_ready.reason
            self._engine.release_prefix()  # no text begins on what the robot saw some time ago
            if not self.settings.decode_while_holding:
                budget = replace(budget, deadline_ns=budget.start_ns)
        else:
            self._act(notes)
            for request in self._tasks.due(self._num_acted):
                self._engine.submit(request)
        with notes.section("decode"):
            notes.outcome = self._engine.decode(budget)
        notes.num_finished = self._publish_texts()

    def _observe(self, notes: CycleNotes) -> NotReady | None:
        """Take the newest observation and make it the current prefix."""
        with notes.section("observe"):
            taken = self._source.take()
        if isinstance(taken, NotReady):
            return taken
        notes.observation = taken
        try:
            with notes.section("observe"):
                inputs = self._processor.prepare(taken)
            with notes.section("prefill"):
                self._engine.prefill(inputs, taken.stamp_ns)
        except ContractError as error:
            self._refused[error.code] += 1
            return NotReady(CycleStatus.HOLDING, str(error))
        return None

    def _act(self, notes: CycleNotes) -> None:
        """Each expert's chunk goes out right after its own denoising."""
        assert notes.observation is not None
        for index, expert in enumerate(self._engine.spec.experts):
            with notes.section("act"):
                guidance = self._guide.guidance(expert.name, notes.observation) if self._guide else None
                seed = self._noise_seed(notes.observation, index)
                actions = self._engine.act(expert.name, seed, guidance)
            with notes.section("publish"):
                finished = self._processor.finish(expert.name, actions, notes.observation)
                if not np.isfinite(finished).all():
                    raise RunnerError("actions_not_finite", f"'{expert.name}', in the robot's units")
                joints = self._processor.joint_names(expert.name)
                self._publish_chunk(expert.name, joints, finished, notes.observation, notes.elapsed_ns())
                if self._guide:
                    self._guide.made(expert.name, notes.observation, actions)
            notes.action_latency_ns = notes.action_latency_ns or notes.elapsed_ns()
        notes.status = CycleStatus.ACTED
        self._num_acted += 1

    def _publish_chunk(
        self,
        expert: str,
        joints: tuple[str, ...],
        actions: FloatArray,
        seen: Observation | None,
        latency_ns: int,
    ) -> None:
        self._numbers.chunk_id += 1
        self._actions.publish_action(
            ActionChunk(
                observation_id=seen.observation_id if seen else 0,
                stamp_ns=seen.stamp_ns if seen else 0,
                cycle_id=self._numbers.cycle_id,
                chunk_id=self._numbers.chunk_id,
                expert=expert,
                instruction=seen.instruction if seen else "",
                joint_names=joints,
                actions=actions,
                dt_ns=self.settings.dt_ns,
                execute_horizon=self.settings.execute_horizon if len(actions) else 0,
                latency_ns=latency_ns,
                actions_played=seen.actions_played if seen else 0,
            )
        )

    def _withdraw_chunks(self, seen: Observation | None) -> None:
        """A chunk without rows and without an expert: the player drops all it has and holds."""
        if self._guide:
            self._guide.forget()
        self._publish_chunk("", (), np.zeros((0, 0), np.float32), seen, 0)

    def _publish_texts(self) -> int:
        """Send all deltas on their way. How many texts ended with them."""
        deltas = self._engine.take_deltas()
        for delta in deltas:
            self._texts.publish_text(delta)
        return sum(delta.is_final for delta in deltas)

    def _fail(self, error: Exception, notes: CycleNotes) -> None:
        notes.status, notes.reason = CycleStatus.FAILED, f"{type(error).__name__}: {error}"
        self._withdraw_chunks(notes.observation)
        self._engine.fail(notes.reason)
        notes.num_finished = self._publish_texts()

    def _noise_seed(self, observation: Observation, expert_index: int) -> int:
        words = (self.settings.seed, observation.observation_id, expert_index)
        return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> 1)
