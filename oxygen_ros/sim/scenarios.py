"""Starts of all kinds for training data: ordinary ones, and the middles of good and failed episodes.

The expert is a pure law, so each of these states has its right answer; together they cover what a learner
that is not yet good will get into: missed grasps, a fist closed on nothing, a wrong cube, a cube dropped
beside the bowl.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from oxygen_ros.sim import expert
from oxygen_ros.sim.scene import CUBE_HALF
from oxygen_ros.sim.truth import Task, Vector
from oxygen_ros.sim.world import Layout, random_layout

Rng = np.random.Generator


def _anywhere(rng: Rng, low_z: float = 0.03) -> Vector:
    low, high = expert.WORKSPACE_LOW.copy(), expert.WORKSPACE_HIGH.copy()
    low[2], high[2] = low_z, 0.24
    return rng.uniform(low, high)


def _above(rng: Rng, planar: Vector, spread: float, low_z: float, high_z: float) -> Vector:
    return np.array([*(planar + rng.uniform(-spread, spread, 2)), rng.uniform(low_z, high_z)])


def _start(rng: Rng, layout: Layout, task: Task) -> Layout:
    return layout


def _free_hand(rng: Rng, layout: Layout, task: Task) -> Layout:
    opening = (
        expert.FINGER_OPEN if rng.random() < 0.8 else rng.uniform(expert.FINGER_CLOSED, expert.FINGER_OPEN)
    )
    return replace(layout, hand=_anywhere(rng, 0.06), opening=opening)


def _near_cube(rng: Rng, layout: Layout, task: Task) -> Layout:
    cube = layout.cubes[task.colour]
    return replace(layout, hand=_above(rng, cube[:2], rng.choice([0.015, 0.04, 0.07]), 0.028, 0.12))


def _missed_grasp(rng: Rng, layout: Layout, task: Task) -> Layout:
    cube = layout.cubes[task.colour if rng.random() < 0.7 else rng.integers(3)]
    hand = _above(rng, cube[:2], 0.07, 0.025, 0.20)
    return replace(layout, hand=hand, opening=rng.uniform(expert.FINGER_CLOSED, 0.020))


def _holding(rng: Rng, layout: Layout, task: Task) -> Layout:
    return replace(layout, hand=_anywhere(rng), opening=expert.FINGER_HELD, held=task.colour)


def _just_grasped(rng: Rng, layout: Layout, task: Task) -> Layout:
    hand = _above(rng, layout.cubes[task.colour][:2], 0.03, 0.026, 0.08)
    return replace(layout, hand=hand, opening=rng.uniform(0.025, 0.030), held=task.colour)


def _bringing(rng: Rng, layout: Layout, task: Task) -> Layout:
    hand = _above(rng, layout.containers[task.target], rng.choice([0.02, 0.06, 0.12]), 0.036, 0.17)
    return replace(layout, hand=hand, opening=expert.FINGER_HELD, held=task.colour)


def _wrong_cube(rng: Rng, layout: Layout, task: Task) -> Layout:
    other = (task.colour + 1 + int(rng.integers(2))) % 3
    near = _above(rng, layout.cubes[other][:2], 0.03, 0.028, 0.12)
    hand = near if rng.random() < 0.6 else _anywhere(rng)
    return replace(layout, hand=hand, opening=expert.FINGER_HELD, held=other)


def _dropped(rng: Rng, layout: Layout, task: Task) -> Layout:
    """The asked cube lies in or beside a container, the hand above has let it go."""
    is_asked = rng.random() < 0.75
    centre = layout.containers[task.target if is_asked else 1 - task.target]
    reach = rng.uniform(0.0, 0.05) if rng.random() < 0.5 else rng.uniform(0.065, 0.12)
    angle = rng.uniform(-np.pi, np.pi)
    planar = centre + reach * np.array([np.cos(angle), np.sin(angle)])
    planar = np.clip(planar, expert.WORKSPACE_LOW[:2], expert.WORKSPACE_HIGH[:2])
    cubes = layout.cubes.copy()
    cubes[task.colour] = [*planar, CUBE_HALF]
    hand = _above(rng, planar, 0.02, 0.035, 0.18) if rng.random() < 0.7 else _anywhere(rng, 0.06)
    return replace(layout, hand=hand, cubes=cubes, opening=rng.uniform(0.028, expert.FINGER_OPEN))


SCENARIOS: tuple[tuple[float, Callable[[Rng, Layout, Task], Layout]], ...] = (
    (0.10, _start),
    (0.13, _free_hand),
    (0.20, _near_cube),
    (0.09, _missed_grasp),
    (0.11, _holding),
    (0.07, _just_grasped),
    (0.13, _bringing),
    (0.05, _wrong_cube),
    (0.12, _dropped),
)


def random_scenario(rng: Rng, task: Task) -> Layout:
    """A start of one of the kinds. In one of eight another cube already lies in a container."""
    layout = random_layout(rng)
    if rng.random() < 0.125:
        cubes = layout.cubes.copy()
        other = (task.colour + 1 + int(rng.integers(2))) % 3
        cubes[other, :2] = layout.containers[int(rng.integers(2))] + rng.uniform(-0.03, 0.03, 2)
        layout = replace(layout, cubes=cubes)
    weights = np.array([weight for weight, _ in SCENARIOS])
    return SCENARIOS[int(rng.choice(len(SCENARIOS), p=weights / weights.sum()))][1](rng, layout, task)
