"""What is so in the simulated world, as one line of JSON: the message of the truth topic and of run folders.

Knows no topics. The simulator writes it once a control tick; whoever judges texts reads it back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from oxygen_ros.errors import ContractError
from oxygen_ros.sim.truth import COLOURS, TARGETS, Task, Truth


@dataclass(frozen=True)
class TruthMessage:
    """One instant of one episode.

    Attributes:
        stamp_ns: ROS time of the instant; pictures of the same instant carry the same stamp.
        episode: running number from 1.
        seed: the episode's layout was drawn from.
        task: what counts as done.
        instruction: what the robot was told to do, in the words it was told.
        ticks: control ticks since the episode began.
    """

    stamp_ns: int
    episode: int
    seed: int
    task: Task
    instruction: str
    ticks: int
    truth: Truth

    @property
    def is_done(self) -> bool:
        """True when the asked cube lies in the asked container."""
        return self.truth.is_done(self.task)


def to_json(
    truth: Truth,
    *,
    stamp_ns: int,
    episode: int,
    seed: int,
    task: Task,
    ticks: int,
    instruction: str | None = None,
) -> str:
    """One line; without ``instruction`` that of the task. Numbers come back as they were, to the last bit."""
    placed = {
        COLOURS[cube]: TARGETS[container]
        for cube in range(len(COLOURS))
        if (container := truth.container_of(cube)) is not None
    }
    return json.dumps(
        {
            "stamp_ns": stamp_ns,
            "episode": episode,
            "seed": seed,
            "task": [COLOURS[task.colour], TARGETS[task.target]],
            "instruction": task.instruction if instruction is None else instruction,
            "held": None if truth.held is None else COLOURS[truth.held],
            "placed": placed,
            "is_done": truth.is_done(task),
            "ticks": ticks,
            "hand": truth.hand.tolist(),
            "command": truth.command.tolist(),
            "opening": truth.opening,
            "is_closing": truth.is_closing,
            "cubes": truth.cubes.tolist(),
            "containers": truth.containers.tolist(),
        }
    )


def from_json(text: str) -> TruthMessage:
    """Read one line back. What follows from the rest (``placed``, ``is_done``) is worked out anew.

    Raises:
        ContractError: code ``truth``, if ``text`` is no such line.
    """
    try:
        return _read(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        detail = f"{text[:80]!r} is no truth message ({type(error).__name__}: {error})"
        raise ContractError("truth", detail) from error


def _read(fields: dict[str, Any]) -> TruthMessage:
    colour, target = fields["task"]
    held = fields["held"]
    return TruthMessage(
        stamp_ns=int(fields["stamp_ns"]),
        episode=int(fields["episode"]),
        seed=int(fields["seed"]),
        task=Task(COLOURS.index(colour), TARGETS.index(target)),
        instruction=str(fields["instruction"]),
        ticks=int(fields["ticks"]),
        truth=Truth(
            hand=_numbers(fields, "hand", (3,)),
            command=_numbers(fields, "command", (3,)),
            opening=float(fields["opening"]),
            is_closing=bool(fields["is_closing"]),
            cubes=_numbers(fields, "cubes", (len(COLOURS), 3)),
            containers=_numbers(fields, "containers", (len(TARGETS), 2)),
            held=None if held is None else COLOURS.index(held),
        ),
    )


def _numbers(fields: dict[str, Any], name: str, shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[Any]]:
    values = np.array(fields[name], np.float64)
    if values.shape != shape:
        raise ValueError(f"{name} has shape {values.shape}, not {shape}")
    return values
