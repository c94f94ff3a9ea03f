"""Small worlds for tests: a fake model of any size, a source of observations, sinks that remember."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from oxygen_ros.clock import SimClock
from oxygen_ros.engine.budget import CycleBudget
from oxygen_ros.engine.engine import Engine
from oxygen_ros.engine.settings import EngineSettings
from oxygen_ros.engine.tasks import TextTasks
from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.models.protocol import ExpertSpec, ModelInputs, ModelSpec, Tokenizer
from oxygen_ros.runners.fake import FakeCall, FakeCosts, FakeRunner, ScriptedText
from oxygen_ros.runners.fake_processor import PassThroughProcessor
from oxygen_ros.runtime.control_cycle import ControlCycle, CycleSettings, Numbering
from oxygen_ros.runtime.ports import NotReady
from oxygen_ros.text.byte_tokenizer import ByteTokenizer
from oxygen_ros.types import (
    ActionChunk,
    CycleReport,
    FinishReason,
    Observation,
    SamplingParams,
    TextDelta,
    TextKind,
    TextRequest,
)

MS = 1_000_000
FOREVER_NS = 1 << 60


def spec(**changes: object) -> ModelSpec:
    tokenizer = ByteTokenizer()
    facts: dict[str, object] = {
        "family": "fake",
        "experts": (ExpertSpec("default", horizon=10, action_dim=4),),
        "max_prefix_tokens": 96,
        "vocab_size": tokenizer.vocab_size,
        "stop_token_ids": tokenizer.end_ids,
    }
    return ModelSpec(**{**facts, **changes})  # type: ignore[arg-type]


def layout(num_prefixes: int = 4, num_rows: int = 4, row_capacity: int = 96) -> KVLayout:
    return KVLayout(2, 1, 8, "float32", num_prefixes, 96, num_rows, row_capacity)


def observation(number: int, instruction: str = "pick up the cup", **changes: object) -> Observation:
    rng = np.random.default_rng(number)
    facts: dict[str, object] = {
        "observation_id": number,
        "stamp_ns": number * 100 * MS,
        "images": {"base": rng.integers(0, 255, (24, 32, 3), dtype=np.uint8)},
        "state": np.full(4, 0.01 * number, np.float32),
        "instruction": instruction,
    }
    return Observation(**{**facts, **changes})  # type: ignore[arg-type]


def inputs(number: int) -> ModelInputs:
    return processor().prepare(observation(number))


def processor() -> PassThroughProcessor:
    return PassThroughProcessor(ByteTokenizer(), ("base",), {"default": ("j1", "j2", "j3", "j4")}, 4)


def request(
    request_id: str, prompt: str = "Q", max_tokens: int = 32, *, task: str = "ask", **changes: object
) -> TextRequest:
    sampling = changes.pop("sampling", SamplingParams(max_tokens=max_tokens))
    return TextRequest(request_id, task, TextKind.ASK, prompt, sampling, **changes)  # type: ignore[arg-type]


def budget(time_ns: int = FOREVER_NS, now_ns: int = 0, reserve_ns: int = 0, cycle_id: int = 1) -> CycleBudget:
    return CycleBudget(cycle_id, now_ns, now_ns + time_ns, reserve_ns)


class EngineBench:
    """An engine on a fake runner and a simulated clock, and all deltas by request."""

    def __init__(
        self,
        script: Mapping[str, ScriptedText] | None = None,
        *,
        settings: EngineSettings | None = None,
        costs: FakeCosts | None = None,
        model: ModelSpec | None = None,
        memory: KVLayout | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        self.clock = SimClock()
        self.calls: list[FakeCall] = []
        self.tokenizer = tokenizer or ByteTokenizer()
        self.runner = FakeRunner(
            model or spec(), memory or layout(), self.clock, self.tokenizer, costs, script, calls=self.calls
        )
        self.engine = Engine(self.runner, self.tokenizer, self.clock, settings)
        self.engine.warm_up()
        self.calls.clear()
        self.deltas: dict[str, list[TextDelta]] = {}
        self.num_frames = 0

    def frame(self, time_ns: int = FOREVER_NS, reserve_ns: int = 0) -> list[TextDelta]:
        """One more observation: prefill, act, decode. The deltas of it."""
        self.num_frames += 1
        self.engine.prefill(inputs(self.num_frames), self.num_frames * 100 * MS)
        for expert in self.runner.spec.experts:
            self.engine.act(expert.name, seed=self.num_frames)
        return self.decode(time_ns, reserve_ns)

    def decode(self, time_ns: int = FOREVER_NS, reserve_ns: int = 0) -> list[TextDelta]:
        self.outcome = self.engine.decode(budget(time_ns, self.clock.now_ns(), reserve_ns))
        return self.collect()

    def collect(self) -> list[TextDelta]:
        self.engine.check_integrity()
        deltas = self.engine.take_deltas()
        for delta in deltas:
            self.deltas.setdefault(delta.request_id, []).append(delta)
        return deltas

    def text(self, request_id: str) -> str:
        return "".join(delta.text for delta in self.deltas[request_id])

    def reason(self, request_id: str) -> FinishReason | None:
        return self.deltas[request_id][-1].finish_reason

    def detail(self, request_id: str) -> str:
        return self.deltas[request_id][-1].detail

    def verbs(self) -> list[str]:
        return [call.verb for call in self.calls]


@dataclass
class Source:
    """Gives one prepared observation (or reason) after another, then the last one under new ids."""

    items: list[Observation | NotReady] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    make: Callable[[int], Observation | NotReady] = observation
    taken: int = 0

    def take(self) -> Observation | NotReady:
        self.taken += 1
        return self.items.pop(0) if self.items else self.make(self.taken)

    def refusals(self) -> dict[str, int]:
        return dict(self.refused)


@dataclass
class Sinks:
    """Remembers everything in the order in which it came."""

    events: list[ActionChunk | TextDelta | CycleReport] = field(default_factory=list)
    on_action: Callable[[ActionChunk], None] = lambda chunk: None

    def publish_action(self, chunk: ActionChunk) -> None:
        self.events.append(chunk)
        self.on_action(chunk)

    def publish_text(self, delta: TextDelta) -> None:
        self.events.append(delta)

    def publish_report(self, report: CycleReport) -> None:
        self.events.append(report)

    @property
    def chunks(self) -> list[ActionChunk]:
        return [event for event in self.events if isinstance(event, ActionChunk)]

    @property
    def deltas(self) -> list[TextDelta]:
        return [event for event in self.events if isinstance(event, TextDelta)]

    @property
    def reports(self) -> list[CycleReport]:
        return [event for event in self.events if isinstance(event, CycleReport)]


COSTS = FakeCosts(prefill_ns=40 * MS, act_ns=30 * MS, decode_ns=10 * MS)
SETTINGS = CycleSettings(period_ns=200 * MS, reserve_ns=10 * MS, execute_horizon=5, dt_ns=40 * MS)


class CycleBench(EngineBench):
    """A whole control cycle on a fake runner and a simulated clock."""

    def __init__(
        self,
        script: Mapping[str, ScriptedText] | None = None,
        *,
        source: Source | None = None,
        cycle_settings: CycleSettings = SETTINGS,
        tasks: TextTasks | None = None,
        numbering: Numbering | None = None,
        costs: FakeCosts = COSTS,
        **changes: object,
    ) -> None:
        super().__init__(script, costs=costs, **changes)  # type: ignore[arg-type]
        self.source = source or Source()
        self.sinks = Sinks()
        self.cycle = ControlCycle(
            engine=self.engine,
            processor=processor(),
            source=self.source,
            actions=self.sinks,
            texts=self.sinks,
            reports=self.sinks,
            clock=self.clock,
            settings=cycle_settings,
            tasks=tasks,
            numbering=numbering,
        )

    def run(self, num_cycles: int = 1) -> CycleReport:
        """So many cycles, each at its due time. The last report."""
        period_ns = self.cycle.settings.period_ns
        for _ in range(num_cycles):
            due_ns = -(-self.clock.now_ns() // period_ns) * period_ns
            self.clock.sleep_until_ns(due_ns)
            report = self.cycle.run(due_ns)
            self.engine.check_integrity()
        return report
