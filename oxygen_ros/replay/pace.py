"""How time passes in a replay, what model calls cost in it, and the parameters that it runs with."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oxygen_ros.config import FakeConfig, OxygenConfig
from oxygen_ros.errors import ContractError
from oxygen_ros.replay.costs import Costs, RecordedCosts, SetCosts
from oxygen_ros.replay.job import Job
from oxygen_ros.replay.recording import Recording

FILES = ("preset", "device", "params_file")


@dataclass(frozen=True)
class Pace:
    """How time passes in one replay, and what it costs.

    Attributes:
        words: for the report.
        costs: of model calls in simulated time; None: those of the runner itself, or real ones.
        is_reproduction: cycles run when the recorded ones did, with as many decode steps.
    """

    words: str
    costs: Costs | None
    is_reproduction: bool


def without_costs(fake: FakeConfig) -> FakeConfig:
    """The stand-in with calls that take no time."""
    return dataclasses.replace(
        fake,
        prefill_ms=0.0,
        act_ms=0.0,
        decode_step_ms=0.0,
        decode_row_ms=0.0,
        first_act_ms=0.0,
        jitter_ms=0.0,
    )


def choose_pace(job: Job, config: OxygenConfig, recording: Recording) -> Pace:
    """How time passes, from what is asked for and what the bag has.

    Raises:
        ContractError: ``bag.costs``, if recorded costs are asked for and there are none.
        ConfigError: code ``costs``.
    """
    if job.clock == "realtime":
        return Pace("measured on this machine", None, False)
    is_whole = bool(recording.cycles) and not job.start_s and job.time == "log"
    if job.costs == "recorded" and not recording.costs:
        raise ContractError("bag.costs", "the bag has no cycle reports to take costs from", "--costs config")
    if job.costs == "recorded" or (job.costs == "auto" and recording.costs and is_whole):
        costs = RecordedCosts(recording.costs, len(config.model.experts))
        return Pace("as recorded", costs, is_whole)
    if job.costs not in ("auto", "config"):
        return Pace(f"from {Path(job.costs).name}", SetCosts.of_file(Path(job.costs)), False)
    is_stand_in = config.runner.kind == "fake"
    return Pace("runner.fake.*", None if is_stand_in else SetCosts.of_config(config.runner.fake), False)


def settings_of(job: Job, recording: Recording) -> Mapping[str, Any]:
    """Parameters of a replay: what was recorded, unless another robot is named; over it what is asked for."""
    values: dict[str, Any] = {} if job.preset or job.params_file else dict(recording.config)
    if job.device:  # what is recorded goes over files, so it would go over the new profile
        values = {name: v for name, v in values.items() if not name.startswith(("runner.", "kv."))}
    values = {name: v for name, v in values.items() if name not in FILES and v not in ("", [])}
    values |= {name: given for name in FILES if (given := getattr(job, name))}
    if job.checkpoint:
        values["model.checkpoint"] = job.checkpoint
    values.update(job.settings)
    return values
