"""Paired maps between robot and model numbers. Each map has its inverse; the two give identity.

Arrays are float [..., num_dims]; a map returns a new array and changes only its own dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.floating]


class PairedMap(Protocol):
    """One step between robot and model numbers, invertible."""

    def to_model(self, values: Vector) -> Vector:
        """Model numbers of robot numbers."""
        ...

    def to_robot(self, values: Vector) -> Vector:
        """Robot numbers of model numbers: the inverse of ``to_model``."""
        ...


@dataclass(frozen=True)
class Gripper:
    """One gripper: 0 .. 1 for the model between the two ends of the robot's own range.

    Attributes:
        index: dimension of the gripper.
        at_zero, at_one: robot values where the model's value is 0 and 1.
    """

    index: int
    at_zero: float
    at_one: float

    def to_model(self, values: Vector) -> Vector:
        """Model numbers of robot numbers."""
        out = values.copy()
        out[..., self.index] = (values[..., self.index] - self.at_zero) / (self.at_one - self.at_zero)
        return out

    def to_robot(self, values: Vector) -> Vector:
        """Robot numbers of model numbers."""
        out = values.copy()
        out[..., self.index] = values[..., self.index] * (self.at_one - self.at_zero) + self.at_zero
        return out


@dataclass(frozen=True)
class Signs:
    """Dimensions whose direction is the other way round for the model."""

    flipped: tuple[int, ...]

    def to_model(self, values: Vector) -> Vector:
        """Model numbers of robot numbers."""
        out = values.copy()
        out[..., list(self.flipped)] *= -1
        return out

    def to_robot(self, values: Vector) -> Vector:
        """Robot numbers of model numbers."""
        return self.to_model(values)


def chain_to_model(maps: tuple[PairedMap, ...], values: Vector) -> Vector:
    """All ``maps`` in order."""
    for step in maps:
        values = step.to_model(values)
    return values


def chain_to_robot(maps: tuple[PairedMap, ...], values: Vector) -> Vector:
    """The inverses of all ``maps``, last first."""
    for step in reversed(maps):
        values = step.to_robot(values)
    return values
