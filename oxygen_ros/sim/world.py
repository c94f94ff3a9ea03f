"""The running world: reset, step at 30 Hz, and what is so. Pictures are made by ``cameras.py``.

One thread owns a world. Equal seeds and equal actions give equal worlds.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from oxygen_ros.sim import expert
from oxygen_ros.sim.arm import ArmSolver
from oxygen_ros.sim.scene import (
    ARM_JOINTS,
    CONTAINER_NAMES,
    CONTROL_HZ,
    CUBE_HALF,
    CUBE_NAMES,
    GRASP_OFFSET,
    SERVO_KP,
    SERVO_KV,
    SUBSTEPS,
    scene_xml,
)
from oxygen_ros.sim.truth import Truth, Vector

STATE_DIM = 8
JOINT_NAMES = (*ARM_JOINTS, "finger_left", "finger_right")


@dataclass(frozen=True)
class Layout:
    """Where things are when an episode starts.

    Attributes:
        hand: grasp point [3].
        cubes: centres [3, 3]; the entry of a held cube is not used.
        containers: centres in the plane [2, 2].
        opening: finger slide.
        held: index of a cube that starts in the hand, or None.
    """

    hand: Vector
    cubes: Vector
    containers: Vector
    opening: float = expert.FINGER_OPEN
    held: int | None = None


def random_layout(rng: np.random.Generator) -> Layout:
    """The start of an ordinary episode: containers left and right, three cubes between, hand above."""
    sides = rng.permutation([0.23, -0.23])
    containers = np.stack([rng.uniform(0.37, 0.46, 2), sides], axis=1)
    while True:
        planar = rng.uniform([0.33, -0.13], [0.50, 0.13], (3, 2))
        gaps = [np.linalg.norm(planar[a] - planar[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
        if min(gaps) > 0.08:
            break
    cubes = np.concatenate([planar, np.full((3, 1), CUBE_HALF)], axis=1)
    hand = np.array([0.36, 0.0, 0.20]) + rng.uniform(-1, 1, 3) * np.array([0.03, 0.06, 0.0])
    return Layout(hand, cubes, containers)


class Tabletop:
    """The simulated robot and its table."""

    def __init__(self) -> None:
        self.model = mujoco.MjModel.from_xml_string(scene_xml())
        self.data = mujoco.MjData(self.model)
        self._solver = ArmSolver(self.model)
        model = self.model
        self._site = model.site("grasp").id
        self._arm_qpos = np.array([model.joint(name).qposadr[0] for name in ARM_JOINTS])
        self._finger_qpos = np.array([model.joint(n).qposadr[0] for n in ("finger_left", "finger_right")])
        self._cube_qpos = [int(model.joint(name).qposadr[0]) for name in CUBE_NAMES]
        self._cube_dofs = [int(model.joint(name).dofadr[0]) for name in CUBE_NAMES]
        self._cube_bodies = [model.body(name).id for name in CUBE_NAMES]
        self._welds = [model.equality(f"hold_{name}").id for name in CUBE_NAMES]
        self._mocap = [int(model.body(name).mocapid[0]) for name in CONTAINER_NAMES]
        self._command = np.zeros(3)
        self._joints = np.zeros(len(ARM_JOINTS))
        self._held: int | None = None
        self._is_closing = False
        self.ticks = 0

    def reset(self, layout: Layout) -> None:
        """Put everything where ``layout`` says, at rest."""
        mujoco.mj_resetData(self.model, self.data)
        self._command = np.clip(layout.hand, expert.WORKSPACE_LOW, expert.WORKSPACE_HIGH)
        self._solver.restart()
        self._joints = self._solver.solve(self._command, 80)
        self.data.qpos[self._arm_qpos] = self._joints
        self.data.qpos[self._finger_qpos] = layout.opening
        for index, address in enumerate(self._cube_qpos):
            place = self._command if index == layout.held else layout.cubes[index]
            self.data.qpos[address : address + 7] = [*place, 1, 0, 0, 0]
        for index, mocap in enumerate(self._mocap):
            self.data.mocap_pos[mocap] = [*layout.containers[index], 0.0]
        self._held = None
        self._is_closing = layout.opening < expert.FINGER_TOUCH
        self.ticks = 0
        mujoco.mj_forward(self.model, self.data)
        if layout.held is not None:
            self._take(layout.held)
        self._drive(self._joints)
        mujoco.mj_step(self.model, self.data, nstep=SUBSTEPS)
        mujoco.mj_forward(self.model, self.data)

    def step(self, action: NDArray[np.floating]) -> None:
        """One control tick.

        Args:
            action: [7] in [-1, 1], see ``expert.ACTION_DIM``; rotations are not followed.
        """
        before = self.opening
        motion = expert.STEP * np.clip(np.asarray(action[:3], np.float64), -1.0, 1.0)
        self._command = np.clip(self._command + motion, expert.WORKSPACE_LOW, expert.WORKSPACE_HIGH)
        self._is_closing = bool(action[6] > 0)
        if not self._is_closing and self._held is not None:
            self.data.eq_active[self._welds[self._held]] = 0
            self._held = None
        self._drive(self._solver.solve(self._command, 4))
        mujoco.mj_step(self.model, self.data, nstep=SUBSTEPS)
        mujoco.mj_forward(self.model, self.data)
        self.ticks += 1
        if self._is_closing and self._held is None and before > expert.FINGER_TOUCH >= self.opening:
            within = expert.cube_in_reach(self.data.site_xpos[self._site], self._cubes())
            if within is not None:
                self._take(within)

    def _drive(self, joints: Vector) -> None:
        """Command the servos; the term in speed takes away their lag."""
        speed = (joints - self._joints) * CONTROL_HZ
        self._joints = joints
        self.data.ctrl[: len(joints)] = joints + speed * (SERVO_KV + 4.0) / SERVO_KP
        if not self._is_closing:
            slide = expert.FINGER_OPEN
        else:
            slide = expert.FINGER_CLOSED if self._held is None else expert.FINGER_HELD
        self.data.ctrl[len(joints) :] = slide

    def _take(self, cube: int) -> None:
        """Weld ``cube`` to the hand, drawn to the grasp point; its turn against the hand is kept."""
        hand, body = self.data.body("hand"), self._cube_bodies[cube]
        inverse, relative = np.zeros(4), np.zeros(4)
        mujoco.mju_negQuat(inverse, hand.xquat)
        mujoco.mju_mulQuat(relative, inverse, self.data.xquat[body])
        weld = self._welds[cube]
        self.model.eq_data[weld, :11] = [0, 0, 0, *GRASP_OFFSET, *relative, 1]
        self.data.eq_active[weld] = 1
        self._held = cube

    @property
    def opening(self) -> float:
        """Mean slide of the two fingers in metres."""
        return float(self.data.qpos[self._finger_qpos].mean())

    def _cubes(self) -> Vector:
        return np.array(self.data.xpos[self._cube_bodies])

    def truth(self) -> Truth:
        """What is so now."""
        return Truth(
            hand=np.array(self.data.site_xpos[self._site]),
            command=self._command.copy(),
            opening=self.opening,
            is_closing=self._is_closing,
            cubes=self._cubes(),
            containers=np.array(self.data.mocap_pos[self._mocap][:, :2]),
            held=self._held,
        )

    def state(self) -> NDArray[np.float32]:
        """What the robot measures of itself, float32 [8]: hand x, y, z, axis-angle 3, fingers +- slide."""
        matrix = self.data.site_xmat[self._site]
        quaternion, turn = np.zeros(4), np.zeros(3)
        mujoco.mju_mat2Quat(quaternion, matrix)
        mujoco.mju_quat2Vel(turn, quaternion, 1.0)
        left, right = self.data.qpos[self._finger_qpos]
        return np.array([*self.data.site_xpos[self._site], *turn, left, -right], np.float32)

    def joint_positions(self) -> NDArray[np.float64]:
        """Arm joints in radians, then the finger slides in metres; names in JOINT_NAMES."""
        return np.array(self.data.qpos[np.concatenate([self._arm_qpos, self._finger_qpos])])
