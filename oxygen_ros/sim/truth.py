"""What is so in the simulated world at one instant, and the tasks that can be asked of the robot.

Plain numbers: no simulator handle in here. The expert, the sentences and the scorer work from this alone,
so "placed" has one meaning everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

COLOURS = ("red", "green", "blue")
TARGETS = ("bowl", "plate")
PREPOSITIONS = {"bowl": "in", "plate": "on"}

PLACED_RADIUS = 0.06
"""Metres between the centres of cube and container within which a cube counts as placed."""
PLACED_HEIGHT = 0.09
"""A placed cube's centre is below this height; one that lies on another in the bowl counts."""


@dataclass(frozen=True)
class Task:
    """Put one cube into one container; both by index into COLOURS and TARGETS."""

    colour: int
    target: int

    @property
    def instruction(self) -> str:
        """The sentence the robot is given."""
        target = TARGETS[self.target]
        return f"put the {COLOURS[self.colour]} cube {PREPOSITIONS[target]} the {target}"


ALL_TASKS = tuple(Task(colour, target) for colour in range(len(COLOURS)) for target in range(len(TARGETS)))


def parse_instruction(text: str) -> Task | None:
    """The task that ``text`` asks for, or None when it is not one of the six."""
    cleaned = " ".join(text.lower().strip().rstrip(".!").split())
    return next((task for task in ALL_TASKS if task.instruction == cleaned), None)


@dataclass(frozen=True)
class Truth:
    """One instant. Metres; x forward, y left, z up; the table top is at z = 0.

    Attributes:
        hand: measured grasp point [3].
        command: commanded grasp point [3].
        opening: slide of each finger, 0.045 wide open, 0.006 closed on nothing.
        is_closing: True while the gripper is told to close.
        cubes: centres [3, 3], in the order of COLOURS.
        containers: centres in the plane [2, 2], in the order of TARGETS.
        held: index of the cube in the hand, or None.
    """

    hand: Vector
    command: Vector
    opening: float
    is_closing: bool
    cubes: Vector
    containers: Vector
    held: int | None

    def container_of(self, cube: int) -> int | None:
        """Index of the container that ``cube`` lies in, or None. A held cube lies in none."""
        if cube == self.held or self.cubes[cube, 2] >= PLACED_HEIGHT:
            return None
        distances = np.linalg.norm(self.containers - self.cubes[cube, :2], axis=1)
        nearest = int(distances.argmin())
        return nearest if distances[nearest] < PLACED_RADIUS else None

    def is_done(self, task: Task) -> bool:
        """True when the asked cube lies in the asked container."""
        return self.container_of(task.colour) == task.target
