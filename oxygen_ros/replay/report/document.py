"""report.json: everything that a deterministic run gives twice. Times of the machine are in machine.json."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oxygen_ros import __version__
from oxygen_ros.config.schema import flatten
from oxygen_ros.replay.bag.bag import Bag
from oxygen_ros.replay.report.measures import measures_of
from oxygen_ros.replay.session import Session
from oxygen_ros.replay.topics import Feeds

SCHEMA = 1


def bag_part(bag: Bag, feeds: Feeds | None) -> dict[str, Any]:
    """What was in the bag, what of it was used, what is wrong with it."""
    used = feeds.by_topic if feeds is not None else {}
    topics = {}
    for name, topic in sorted(bag.topics.items()):
        survey = bag.surveys[name]
        topics[name] = {
            "type": topic.type,
            "messages": survey.num_messages,
            "feeds": [f"{f.kind.value} {f.key}".strip() for f in used.get(name, ())],
            "latched": topic.is_latched,
            "header_offset_ns": survey.header_offset_ns,
            "out_of_order": survey.num_disordered,
            "header_goes_back": survey.num_header_back,
        }
    unknown = {name: t.type for name, t in sorted(bag.topics.items()) if not bag.types.learn(t)}
    return {
        "name": bag.name,
        "messages": bag.num_messages,
        "faults": list(bag.faults),
        "notes": [*bag.notes, *(feeds.notes if feeds is not None else ())],
        "topics": topics,
        "unused_messages": sum(feeds.unused.values()) if feeds is not None else 0,
        "unknown_types": {
            name: {"type": kind, "messages": bag.surveys[name].num_messages} for name, kind in unknown.items()
        },
    }


def report_of(session: Session, is_whole: bool, parity: Mapping[str, Any] | None) -> dict[str, Any]:
    """The report without its verdict."""
    config, job, figures = session.config, session.job, session.figures
    start_ns, end_ns = session.span_ns
    duration_s = (end_ns - start_ns) / 1e9
    player = session.player.status()
    bag = bag_part(session.bag, session.feeds)
    bag["notes"] += session.notes
    return {
        "schema": SCHEMA,
        "oxygen_ros": __version__,
        "complete": is_whole,
        "bag": bag,
        "setup": {
            "preset": config.preset or session.recorded_preset,
            "checkpoint": config.model.checkpoint,
            "family": session.brain.engine.spec.family,
            "runner": config.runner.kind,
            "stand_in": session.brain.model.is_stand_in,
            "seed": config.model.seed,
            "clock": job.clock,
            "costs": session.pace.words,
            "time": job.time,
            "reproduces_recording": session.pace.is_reproduction,
            "start_ns": start_ns,
            "end_ns": end_ns,
            "duration_s": duration_s,
            "action_dt_s": config.cycle.action_dt_ns / 1e9,
            "execute_horizon": config.cycle.execute_horizon,
            "experts": dict(sorted(figures.chunks_by_joint.items())),
            "compared_with": figures.errors.source,
            "parameters": {n: list(v) if isinstance(v, tuple) else v for n, v in flatten(config).items()},
        },
        "measures": measures_of(figures, player, session.player_refusals.counts(), session.covered_ns / 1e9),
        "error_by_step": [
            [None if value != value else round(float(value), 9) for value in row]
            for row in figures.errors.by_step
        ],
        "reasons": dict(figures.cycles.reasons.most_common()),
        "texts": [dataclasses.asdict(life) for life in figures.texts.ended],
        "fingerprints": {
            "inputs": figures.cycles.inputs.hexdigest(),
            "actions": figures.actions.hexdigest(),
            "texts": figures.texts.digest.hexdigest(),
        },
        "reproduction": dict(parity) if parity is not None else None,
        "log": [{"time_s": (at_ns - start_ns) / 1e9, "text": text} for at_ns, text in figures.log],
        "log_lines": figures.num_log,
    }


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file whose bytes depend on ``value`` alone."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
