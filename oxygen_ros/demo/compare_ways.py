"""Three ways of running one model for actions and texts: isolated, shared, and oxygen.

All use the product's engine on the same runner and weights. Times are of the steady clock.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from oxygen_ros.clock import Clock
from oxygen_ros.engine.budget import AutoSteps, CycleBudget, FixedSteps
from oxygen_ros.engine.engine import Engine
from oxygen_ros.engine.settings import EngineSettings
from oxygen_ros.errors import RunnerError
from oxygen_ros.models.protocol import Processor, Tokenizer
from oxygen_ros.runners.protocol import ModelRunner
from oxygen_ros.runtime.control_cycle import ControlCycle, CycleSettings
from oxygen_ros.sim.scene import CONTROL_HZ
from oxygen_ros.types import (
    DEFAULT_EXPERT,
    ActionChunk,
    CycleReport,
    CycleStatus,
    FloatArray,
    Observation,
    TextDelta,
    TextRequest,
)

ENDLESS_STEPS = 1_000_000
ENDLESS_NS = 3_600_000_000_000
STEPS_PER_ROUND = 4


@dataclass(frozen=True)
class Written:
    """A text that has ended, the observation it is about, and when its last word was out."""

    request_id: str
    observation_id: int
    text: str
    reason: str
    end_ns: int


@dataclass(frozen=True)
class Parts:
    """What all ways share."""

    runner: ModelRunner
    tokenizer: Tokenizer
    processor: Processor
    clock: Clock


class Way(Protocol):
    """One way. One thread."""

    name: str

    def cycle(
        self,
        due_ns: int,
        observe: Callable[[], Observation],
        give: Callable[[FloatArray], None],
        requests: Sequence[TextRequest],
    ) -> list[Written]:
        """One control cycle that was due at ``due_ns``: observe, act, ``give`` the chunk, write.

        Returns:
            Texts that ended in it.
        """
        ...

    def forget(self) -> None:
        """End all texts, between two episodes."""
        ...


class _Desk:
    """Puts deltas together."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._growing: dict[str, str] = {}
        self._ended: list[Written] = []

    def publish_text(self, delta: TextDelta) -> None:
        """Take one delta."""
        text = self._growing.pop(delta.request_id, "") + delta.text
        if delta.finish_reason is None:
            self._growing[delta.request_id] = text
        else:
            reason = delta.finish_reason.name.lower()
            now_ns = self._clock.now_ns()
            self._ended.append(Written(delta.request_id, delta.observation_id, text, reason, now_ns))

    def take(self) -> list[Written]:
        """Texts that have ended since the last call."""
        ended, self._ended = self._ended, []
        return ended


class SerialWay:
    """Text after text, each to its end, before the next observation is taken.

    Without ``shares_prefix`` every text has a prefill of its own: two programs that know nothing of each
    other. A token is looked at after every step, so no step is run past the end of a text.
    """

    def __init__(self, name: str, parts: Parts, *, shares_prefix: bool) -> None:
        self.name = name
        self._parts = parts
        self._shares_prefix = shares_prefix
        settings = EngineSettings(steps=FixedSteps(ENDLESS_STEPS), steps_per_round=1)
        self._engine = Engine(parts.runner, parts.tokenizer, parts.clock, settings)
        self._desk = _Desk(parts.clock)
        self._cycle = 0
        self._copies = itertools.count(-1, -1)

    def cycle(
        self,
        due_ns: int,
        observe: Callable[[], Observation],
        give: Callable[[FloatArray], None],
        requests: Sequence[TextRequest],
    ) -> list[Written]:
        """See ``Way``."""
        self._cycle += 1
        engine, processor = self._engine, self._parts.processor
        observation = observe()
        inputs = processor.prepare(observation)
        engine.prefill(inputs, observation.stamp_ns)
        actions = engine.act(DEFAULT_EXPERT, noise_seed(observation))
        give(processor.finish(DEFAULT_EXPERT, actions, observation))
        for request in requests:
            if not self._shares_prefix:
                own = dataclasses.replace(inputs, observation_id=next(self._copies))
                engine.prefill(own, observation.stamp_ns)
            self._submit(request)
            now_ns = self._parts.clock.now_ns()
            engine.decode(CycleBudget(self._cycle, now_ns, now_ns + ENDLESS_NS, 0))
            for delta in engine.take_deltas():
                self._desk.publish_text(delta)
        return self._desk.take()

    def forget(self) -> None:
        """See ``Way``."""
        self._engine.reset("episode over")
        self._engine.take_deltas()

    def _submit(self, request: TextRequest) -> None:
        if refusal := self._engine.submit(request):
            raise RunnerError("not_taken", f"{request.request_id}: {refusal}")


class _Ends:
    """Source and sinks of a control cycle."""

    def __init__(self) -> None:
        self.observe: Callable[[], Observation]
        self.give: Callable[[FloatArray], None]

    def take(self) -> Observation:
        """The newest observation."""
        return self.observe()

    def refusals(self) -> dict[str, int]:
        """None."""
        return {}

    def publish_action(self, chunk: ActionChunk) -> None:
        """Hand a chunk on; a withdrawal has no rows."""
        if len(chunk.actions):
            self.give(chunk.actions)

    def publish_report(self, report: CycleReport) -> None:
        """The caller of ``run`` has it."""


def oxygen_engine(parts: Parts) -> Engine:
    """An engine for ``OxygenWay``; warm it up before its first cycle."""
    settings = EngineSettings(steps=AutoSteps(), steps_per_round=STEPS_PER_ROUND)
    return Engine(parts.runner, parts.tokenizer, parts.clock, settings)


class OxygenWay:
    """The product's control cycle: one prefill, actions first, texts of all ages in the time that is left."""

    name = "oxygen"

    def __init__(
        self, parts: Parts, engine: Engine, *, window_ns: int, reserve_ns: int, execute: int
    ) -> None:
        self._engine = engine
        self._desk = _Desk(parts.clock)
        self._ends = _Ends()
        self._cycle = ControlCycle(
            engine=engine,
            processor=parts.processor,
            source=self._ends,
            actions=self._ends,
            texts=self._desk,
            reports=self._ends,
            clock=parts.clock,
            settings=CycleSettings(window_ns, reserve_ns, execute, 1_000_000_000 // CONTROL_HZ),
        )

    def cycle(
        self,
        due_ns: int,
        observe: Callable[[], Observation],
        give: Callable[[FloatArray], None],
        requests: Sequence[TextRequest],
    ) -> list[Written]:
        """See ``Way``."""
        self._ends.observe, self._ends.give = observe, give
        for request in requests:
            if refusal := self._engine.submit(request):
                raise RunnerError("not_taken", f"{request.request_id}: {refusal}")
        report = self._cycle.run(due_ns)
        if report.status is not CycleStatus.ACTED:
            raise RunnerError("cycle", f"{report.status.name}: {report.reason}")
        return self._desk.take()

    def forget(self) -> None:
        """See ``Way``."""
        self._cycle.halt("episode over")
        self._desk.take()


def noise_seed(observation: Observation) -> int:
    """Seed of the action noise of one observation, as the control cycle draws it with seed 0."""
    words = (0, observation.observation_id, 0)
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> 1)
