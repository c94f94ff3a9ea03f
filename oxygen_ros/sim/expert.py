"""The scripted expert: a pure law from what is so to what to do.

It keeps no counter and no memory, so any state a learner gets into can be labelled, and equal states get
equal labels. ``plan`` looks ahead with a point model of hand and fingers; it needs no simulator.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.sim.truth import Task, Truth, Vector

STEP = 0.006
"""Metres per unit of action and control tick: 0.18 m/s at 30 Hz."""
WORKSPACE_LOW = np.array([0.26, -0.31, 0.02])
WORKSPACE_HIGH = np.array([0.56, 0.31, 0.26])
ACTION_DIM = 7
"""dx, dy, dz, three rotations that stay zero, gripper (-1 open, 1 close), as in LIBERO."""

FINGER_OPEN = 0.045
FINGER_HELD = 0.026
FINGER_CLOSED = 0.006
FINGER_TOUCH = 0.031
"""Fingers that pass this slide inwards have a cube between them, or none."""
FINGER_DECAY = 0.62
"""Share of a finger's way that is left after one control tick."""
GRASP_RADIUS = 0.033
GRASP_HEIGHT = 0.035
"""How far off the compliant gripper may be and still draw the cube in."""

GRASP_Z = 0.030
HOVER = 0.10
CARRY_Z = 0.15
RELEASE_Z = 0.040
RETREAT_Z = 0.18
CUBE_REST_Z = 0.024


class Phase(enum.Enum):
    """What the expert is about. Derived from the state, never remembered."""

    REACH = "reach"
    GRASP = "grasp"
    REOPEN = "reopen"
    LIFT = "lift"
    CARRY = "carry"
    LOWER = "lower"
    RELEASE = "release"
    PUT_BACK = "put back"
    DONE = "done"


@dataclass(frozen=True)
class Decision:
    """What to do now: a phase, a point to go to, and the gripper's command."""

    phase: Phase
    goal: Vector
    is_closing: bool
    speed: float = 1.0


def decide(truth: Truth, task: Task) -> Decision:
    """The expert's decision in any state."""
    if truth.held == task.colour:
        return _bring(truth, task)
    if truth.held is not None:
        return _put_back(truth)
    if truth.is_done(task):
        is_open = truth.opening > 0.036
        up = np.array([truth.command[0], truth.command[1], RETREAT_Z if is_open else truth.command[2]])
        return Decision(Phase.DONE, up, is_closing=False)
    return _fetch(truth, truth.cubes[task.colour])


def _fetch(truth: Truth, cube: Vector) -> Decision:
    """Empty hand: come down on the cube like in a funnel, then close."""
    at = truth.command
    distance = float(np.linalg.norm(at[:2] - cube[:2]))
    low = cube[2] + GRASP_Z - CUBE_REST_Z
    is_wide = truth.opening > 0.042
    in_place = distance < (0.014 if is_wide else 0.026) and at[2] < low + 0.012
    if in_place and truth.opening > FINGER_TOUCH - 0.001:
        return Decision(Phase.GRASP, np.array([cube[0], cube[1], low]), is_closing=True)
    height = low + min(HOVER, 3.0 * max(0.0, distance - 0.012))
    if truth.opening < 0.038:
        return Decision(Phase.REOPEN, np.array([at[0], at[1], max(height, 0.09)]), is_closing=False)
    return Decision(Phase.REACH, np.array([cube[0], cube[1], height]), is_closing=False)


def _bring(truth: Truth, task: Task) -> Decision:
    """Asked cube in hand: up, over to the container, down, open."""
    at, target = truth.command, truth.containers[task.target]
    distance = float(np.linalg.norm(at[:2] - target))
    if distance < 0.022 and at[2] < RELEASE_Z + 0.008:
        return Decision(Phase.RELEASE, at.copy(), is_closing=False)
    height = RELEASE_Z + min(CARRY_Z - RELEASE_Z, 3.0 * max(0.0, distance - 0.015))
    goal = np.array([target[0], target[1], height])
    if distance < 0.05:
        return Decision(Phase.LOWER, goal, is_closing=True)
    phase = Phase.LIFT if at[2] < 0.08 else Phase.CARRY
    return Decision(phase, goal, is_closing=True, speed=float(np.clip((at[2] - 0.05) / 0.04, 0.0, 1.0)))


def _put_back(truth: Truth) -> Decision:
    """Wrong cube in hand: straight down and open."""
    at = truth.command
    goal = np.array([at[0], at[1], GRASP_Z])
    return Decision(Phase.PUT_BACK, goal, is_closing=bool(at[2] > GRASP_Z + 0.008))


def act(truth: Truth, task: Task) -> NDArray[np.float32]:
    """The expert's action, float32 [7], each in [-1, 1]."""
    return _action(truth, decide(truth, task))


def _action(truth: Truth, decision: Decision) -> NDArray[np.float32]:
    action = np.zeros(ACTION_DIM, np.float32)
    delta = (decision.goal - truth.command) / STEP
    planar = float(np.linalg.norm(delta[:2]))
    delta[:2] *= decision.speed / max(1.0, planar)
    action[:3] = np.clip(delta, -1.0, 1.0)
    action[6] = 1.0 if decision.is_closing else -1.0
    return action


def plan(truth: Truth, task: Task, horizon: int) -> NDArray[np.float32]:
    """The expert's next ``horizon`` actions by the point model, float32 [horizon, 7]."""
    actions = np.zeros((horizon, ACTION_DIM), np.float32)
    for index in range(horizon):
        actions[index] = act(truth, task)
        truth = imagine(truth, actions[index])
    return actions


def imagine(truth: Truth, action: NDArray[np.float32]) -> Truth:
    """What is so one tick later, if the hand follows at once and cubes fall at once."""
    command = np.clip(truth.command + STEP * action[:3], WORKSPACE_LOW, WORKSPACE_HIGH)
    is_closing = bool(action[6] > 0)
    rest = FINGER_OPEN if not is_closing else FINGER_CLOSED if truth.held is None else FINGER_HELD
    opening = rest + (truth.opening - rest) * FINGER_DECAY
    held, cubes = truth.held, truth.cubes.copy()
    if not is_closing and held is not None:
        cubes[held, 2] = CUBE_REST_Z
        held = None
    elif is_closing and held is None and truth.opening > FINGER_TOUCH >= opening:
        held = cube_in_reach(command, cubes)
    if held is not None:
        cubes[held] = command
    return replace(
        truth, hand=command, command=command, opening=opening, is_closing=is_closing, cubes=cubes, held=held
    )


def cube_in_reach(grasp_point: Vector, cubes: Vector) -> int | None:
    """The nearest cube that closing fingers at ``grasp_point`` would take, or None."""
    planar = np.linalg.norm(cubes[:, :2] - grasp_point[:2], axis=1)
    is_near = (planar < GRASP_RADIUS) & (np.abs(cubes[:, 2] - grasp_point[2]) < GRASP_HEIGHT)
    return int(np.where(is_near, planar, np.inf).argmin()) if is_near.any() else None
