"""What our node writes into a bag about itself, and what a replay reads of it.

Messages of std_msgs/String with JSON on ``~/recording``: the configuration at the start, then one line for
each control cycle, halt and cancel, at the time at which it happened.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oxygen_ros.config import OxygenConfig
from oxygen_ros.config.schema import flatten
from oxygen_ros.errors import ContractError
from oxygen_ros.replay.bag.bag import Bag
from oxygen_ros.replay.topics import QUESTION, RECORDING, REPORT, STRING, TopicFinder
from oxygen_ros.runtime.text_intake import Question

FORMAT = 1
BEGIN, CYCLE, DECODED, HALT, RESET = "begin", "cycle", "decoded", "halt", "reset"
ASKED, HEARD, CANCEL = WISHES = "asked", "heard", "cancel"
"""Each names the intake of the engine that it came before; the question follows ASKED on its own topic."""


@dataclass(frozen=True)
class RecordedCycle:
    """When a cycle was due and took its inputs, their fingerprint (empty: it had none), actions played."""

    cycle_id: int
    due_ns: int
    begin_ns: int
    observation_id: int = 0
    inputs: str = ""
    actions_played: int = 0


@dataclass(frozen=True)
class CycleCosts:
    """What the phases of one recorded cycle took, in nanoseconds."""

    observe_ns: int = 0
    prefill_ns: int = 0
    act_ns: int = 0
    decode_ns: int = 0
    decode_steps: int = 0


@dataclass(frozen=True)
class Wish:
    """A question, words against speech, or a cancel, before which intake of the engine it came."""

    intake: int
    question: Question | None = None
    words: str | None = None
    cancelled: tuple[str, str] | None = None


@dataclass(frozen=True)
class Recording:
    """A run of our node as its bag tells it; empty for bags of others.

    Attributes:
        config: parameters by name.
        cycles: in order; empty if the bag has none.
        costs: by cycle, from its reports.
        wishes: what people wanted, in order.
        steps: by cycle, whether each next decode step might begin, 1 for yes.
        delays: by cycle, in actions, the delay of each guided chunk.
    """

    config: Mapping[str, Any] = field(default_factory=dict)
    cycles: tuple[RecordedCycle, ...] = ()
    costs: Mapping[int, CycleCosts] = field(default_factory=dict)
    wishes: tuple[Wish, ...] = ()
    steps: Mapping[int, str] = field(default_factory=dict)
    delays: Mapping[int, Sequence[int]] = field(default_factory=dict)

    @property
    def played(self) -> dict[int, int]:
        """The player's count at each cycle."""
        return {cycle.cycle_id: cycle.actions_played for cycle in self.cycles}


def begin_line(config: OxygenConfig) -> str:
    """The first line of a recording."""
    return _line(
        BEGIN,
        format=FORMAT,
        preset=config.preset,
        checkpoint=config.model.checkpoint,
        seed=config.model.seed,
        config={name: list(v) if isinstance(v, tuple) else v for name, v in flatten(config).items()},
    )


def cycle_line(cycle: RecordedCycle) -> str:
    """The line of one cycle; ``begin_ns`` is the time of the message itself."""
    return _line(
        CYCLE,
        cycle=cycle.cycle_id,
        due_ns=cycle.due_ns,
        observation=cycle.observation_id,
        inputs=cycle.inputs,
        played=cycle.actions_played,
    )


def event_line(kind: str, **details: Any) -> str:
    """The line of something else that happened."""
    return _line(kind, **details)


def parse_line(text: str) -> dict[str, Any]:
    """What a line says; empty if it says nothing that is known here."""
    try:
        line = json.loads(text)
    except ValueError:
        return {}
    return line if isinstance(line, dict) and isinstance(line.get("kind"), str) else {}


def read_recording(bag: Bag, namespace: str = "") -> Recording:
    """What the bag tells about the run it was recorded in.

    A run whose lines cannot all be understood is not repeated: its bag is as any other one, and says so.
    """
    finder = TopicFinder(bag, namespace)
    topic = finder.find(RECORDING)
    costs = _read_costs(bag, finder)
    if topic is None or bag.topics[topic].type != STRING:
        return Recording(costs=costs)
    lines = [(at_ns, parse_line(message.data)) for at_ns, message in _read_all(bag, topic, STRING)]
    begins = [line for _, line in lines if line.get("kind") == BEGIN]
    formats = {line.get("format") for line in begins}
    if formats != {FORMAT}:
        found = ", ".join(sorted(map(str, formats))) or "none"
        bag.notes.append(f"{topic} is of format {found}, known is {FORMAT}: the recorded run is not repeated")
        return Recording(costs=costs)
    try:
        ends = [line for _, line in lines if line.get("kind") == DECODED]
        return Recording(
            config=dict(begins[0].get("config", {})),
            cycles=tuple(_cycle(at_ns, line) for at_ns, line in lines if line.get("kind") == CYCLE),
            costs=costs,
            wishes=_read_wishes(bag, finder, [line for _, line in lines]),
            steps={int(line["cycle"]): str(line["steps"]) for line in ends},
            delays={int(line["cycle"]): tuple(map(int, line.get("delays", ()))) for line in ends},
        )
    except (KeyError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        bag.notes.append(f"{topic} has a line that is not understood ({what}): the run is not repeated")
        return Recording(costs=costs)


def _read_all(bag: Bag, topic: str, message_type: str) -> Iterator[tuple[int, Any]]:
    """Time and message of all that can be read."""
    for record in bag.records((topic,)):
        with contextlib.suppress(ContractError):
            yield record.time_ns, bag.types.read(message_type, record.data)


def _cycle(at_ns: int, line: Mapping[str, Any]) -> RecordedCycle:
    return RecordedCycle(
        cycle_id=int(line["cycle"]),
        due_ns=int(line["due_ns"]),
        begin_ns=at_ns,
        observation_id=int(line["observation"]),
        inputs=str(line["inputs"]),
        actions_played=int(line["played"]),
    )


def _read_wishes(bag: Bag, finder: TopicFinder, lines: Sequence[Mapping[str, Any]]) -> tuple[Wish, ...]:
    topic = finder.find("~/ask")
    asked = _read_all(bag, topic, QUESTION) if topic is not None else iter(())
    questions = (Question.of(message) for _, message in asked)
    wishes = []
    for line in lines:
        intake = int(line.get("intake", 0))
        if line.get("kind") == ASKED and (question := next(questions, None)) is not None:
            wishes.append(Wish(intake, question=question))
        elif line.get("kind") == HEARD:
            wishes.append(Wish(intake, words=str(line["words"])))
        elif line.get("kind") == CANCEL:
            wishes.append(Wish(intake, cancelled=(str(line["request_id"]), str(line["task"]))))
    return tuple(wishes)


def _read_costs(bag: Bag, finder: TopicFinder) -> dict[int, CycleCosts]:
    topic = finder.find("~/cycle_report")
    if topic is None or bag.topics[topic].type != REPORT:
        return {}
    costs = {}
    for _, report in _read_all(bag, topic, REPORT):
        costs[int(report.cycle_id)] = CycleCosts(
            observe_ns=_ns(report.observe_ms),
            prefill_ns=_ns(report.prefill_ms),
            act_ns=_ns(report.act_ms),
            decode_ns=_ns(report.decode_ms),
            decode_steps=int(report.decode_steps),
        )
    return costs


def _ns(milliseconds: float) -> int:
    """0 for what is no time."""
    return max(0, round(milliseconds * 1e6)) if math.isfinite(milliseconds) else 0


def _line(kind: str, **details: Any) -> str:
    return json.dumps({"kind": kind, **details}, sort_keys=True)
