"""Where the joints must be for the hand to be where it should: damped least squares on a private copy.

The hand always points down, fingers along the world's y axis. Never touches the simulated state.
"""

from __future__ import annotations

import mujoco
import numpy as np

from oxygen_ros.sim.scene import ARM_JOINTS
from oxygen_ros.sim.truth import Vector

HOME_JOINTS = np.array([0.0, 0.6, 0.0, 1.2, 0.0, 0.0, 0.0])
_DOWN = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
_DAMPING = 1e-3 * np.eye(6)


class ArmSolver:
    """Inverse kinematics of the right arm; starts from its last solution.

    The one freedom that is left goes towards the home posture, so the elbow's place follows from the hand's.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model = model
        self._data = mujoco.MjData(model)
        self._site = model.site("grasp").id
        joints = [model.joint(name) for name in ARM_JOINTS]
        self._qpos = np.array([joint.qposadr[0] for joint in joints])
        self._dofs = np.array([joint.dofadr[0] for joint in joints])
        self._ranges = np.array([joint.range for joint in joints])
        self._jacobian = np.zeros((2, 3, model.nv))

    def restart(self) -> None:
        """Forget the last solution."""
        self._data.qpos[self._qpos] = HOME_JOINTS

    def solve(self, target: Vector, iterations: int) -> Vector:
        """Joints [7] that bring the grasp point to ``target`` [3], as near as ``iterations`` allow."""
        for _ in range(iterations):
            mujoco.mj_kinematics(self._model, self._data)
            mujoco.mj_comPos(self._model, self._data)
            error = np.concatenate([target - self._data.site_xpos[self._site], self._turn()])
            self._step(error)
        return np.array(self._data.qpos[self._qpos])

    def _turn(self) -> Vector:
        """Small rotation that takes the hand's axes to pointing down."""
        axes = self._data.site_xmat[self._site].reshape(3, 3)
        turn: Vector = 0.5 * np.cross(axes, _DOWN, axisa=0, axisb=0).sum(axis=0)
        return turn

    def _step(self, error: Vector) -> None:
        mujoco.mj_jacSite(self._model, self._data, self._jacobian[0], self._jacobian[1], self._site)
        jacobian = self._jacobian[:, :, self._dofs].reshape(6, -1)
        joints = self._data.qpos[self._qpos]
        homewards = 0.2 * (HOME_JOINTS - joints)
        wanted = error - jacobian @ homewards
        delta = homewards + jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + _DAMPING, wanted)
        moved = joints + np.clip(delta, -0.3, 0.3)
        self._data.qpos[self._qpos] = np.clip(moved, self._ranges[:, 0], self._ranges[:, 1])
