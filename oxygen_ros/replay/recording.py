"""What our node writes into a bag about itself, and what a replay reads of it.

Messages of std_msgs/String with JSON on ``~/recording``: the configuration at the start, then one line for
each control cycle, halt and cancel, at the time at which it happened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oxygen_ros.config import OxygenConfig
from oxygen_ros.config.schema import flatten
from oxygen_ros.replay.bag.bag import Bag
from oxygen_ros.replay.topics import RECORDING, REPORT, STRING, TopicFinder

FORMAT = 1
BEGIN, CYCLE, HALT, RESET, CANCEL = "begin", "cycle", "halt", "reset", "cancel"


@dataclass(frozen=True)
class RecordedCycle:
    """When a cycle was due and took its inputs, and their fingerprint (empty: it had none)."""

    cycle_id: int
    due_ns: int
    begin_ns: int
    observation_id: int = 0
    inputs: str = ""


@dataclass(frozen=True)
class CycleCosts:
    """What the phases of one recorded cycle took, in nanoseconds."""

    observe_ns: int = 0
    prefill_ns: int = 0
    act_ns: int = 0
    decode_ns: int = 0
    decode_steps: int = 0


@dataclass(frozen=True)
class Recording:
    """A run of our node as its bag tells it; empty for bags of others.

    Attributes:
        config: parameters by name.
        cycles: in order; empty if the bag has none.
        costs: by cycle, from its reports.
    """

    config: Mapping[str, Any] = field(default_factory=dict)
    cycles: tuple[RecordedCycle, ...] = ()
    costs: Mapping[int, CycleCosts] = field(default_factory=dict)


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
    """What the bag tells about the run it was recorded in."""
    finder = TopicFinder(bag, namespace)
    topic = finder.find(RECORDING)
    config: dict[str, Any] = {}
    cycles: list[RecordedCycle] = []
    if topic is not None and bag.topics[topic].type == STRING:
        for record in bag.records((topic,)):
            line = parse_line(bag.types.read(STRING, record.data).data)
            if line.get("kind") == BEGIN and line.get("format") == FORMAT:
                config = dict(line.get("config", {}))
            elif line.get("kind") == CYCLE:
                cycles.append(
                    RecordedCycle(
                        int(line["cycle"]),
                        int(line["due_ns"]),
                        record.time_ns,
                        int(line["observation"]),
                        str(line["inputs"]),
                    )
                )
    return Recording(config, tuple(cycles), _read_costs(bag, finder))


def _read_costs(bag: Bag, finder: TopicFinder) -> dict[int, CycleCosts]:
    topic = finder.find("~/cycle_report")
    if topic is None or bag.topics[topic].type != REPORT:
        return {}
    costs = {}
    for record in bag.records((topic,)):
        report = bag.types.read(REPORT, record.data)
        costs[int(report.cycle_id)] = CycleCosts(
            observe_ns=round(report.observe_ms * 1e6),
            prefill_ns=round(report.prefill_ms * 1e6),
            act_ns=round(report.act_ms * 1e6),
            decode_ns=round(report.decode_ms * 1e6),
            decode_steps=int(report.decode_steps),
        )
    return costs


def _line(kind: str, **details: Any) -> str:
    return json.dumps({"kind": kind, **details}, sort_keys=True)
