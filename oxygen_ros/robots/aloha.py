"""ALOHA as openpi's checkpoints know it: joint signs, and gripper values that are angles.

State and command count grippers differently there, so each has a map of its own.
Source: openpi's ALOHA policy transforms (the option ``adapt_to_pi``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oxygen_ros.robots.maps import Vector

FLIPPED = (1, 2, 8, 9)
NUM_JOINTS = 14
GRIPPERS = (6, 13)

# Linkage of the gripper [m]: horn and arm, and where the finger is when closed and open.
_HORN_M, _ARM_M = 0.022, 0.036
_CLOSED_M, _OPEN_M = 0.01844, 0.05800
# Angles [rad] that the model counts its state from and to.
_STATE_ZERO_RAD, _STATE_ONE_RAD = 0.5476, 1.6296
# Angles [rad] of the leader's gripper, closed and open: what commands are counted between.
_COMMAND_ZERO_RAD, _COMMAND_ONE_RAD = -0.6213, 1.4910


@dataclass(frozen=True)
class StateGripper:
    """Finger position, 0 closed .. 1 open, to the model's angle. Invertible for positions 0 .. 1."""

    index: int

    def to_model(self, values: Vector) -> Vector:
        """Model numbers of robot numbers."""
        finger = _CLOSED_M + values[..., self.index] * (_OPEN_M - _CLOSED_M)
        sine = (_HORN_M**2 + finger**2 - _ARM_M**2) / (2 * _HORN_M * finger)
        angle = np.arcsin(np.clip(sine, -1.0, 1.0))
        out = values.copy()
        out[..., self.index] = (angle - _STATE_ZERO_RAD) / (_STATE_ONE_RAD - _STATE_ZERO_RAD)
        return out

    def to_robot(self, values: Vector) -> Vector:
        """Robot numbers of model numbers."""
        angle = values[..., self.index] * (_STATE_ONE_RAD - _STATE_ZERO_RAD) + _STATE_ZERO_RAD
        sine = np.sin(angle)
        finger = _HORN_M * sine + np.sqrt(_ARM_M**2 - _HORN_M**2 * (1.0 - sine**2))
        out = values.copy()
        out[..., self.index] = (finger - _CLOSED_M) / (_OPEN_M - _CLOSED_M)
        return out


@dataclass(frozen=True)
class CommandGripper:
    """Command, 0 closed .. 1 open, to the model's angle."""

    index: int

    def to_model(self, values: Vector) -> Vector:
        """Model numbers of robot numbers."""
        out = values.copy()
        angle = values[..., self.index] * (_COMMAND_ONE_RAD - _COMMAND_ZERO_RAD) + _COMMAND_ZERO_RAD
        out[..., self.index] = angle - _STATE_ZERO_RAD
        return out

    def to_robot(self, values: Vector) -> Vector:
        """Robot numbers of model numbers."""
        out = values.copy()
        angle = values[..., self.index] + _STATE_ZERO_RAD
        out[..., self.index] = (angle - _COMMAND_ZERO_RAD) / (_COMMAND_ONE_RAD - _COMMAND_ZERO_RAD)
        return out
