"""Relative actions: a chunk of offsets from the state it was predicted from, some dimensions absolute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.pi05.statistics import Vector


@dataclass(frozen=True)
class RelativeActions:
    """Which dimensions of an action are offsets from the state. ``mask`` is bool [action_dim]."""

    mask: NDArray[np.bool_]

    def to_absolute(self, actions: Vector, state: Vector) -> Vector:
        """Absolute actions of [horizon, action_dim] offsets, all from one ``state`` [>= action_dim]."""
        return actions + np.where(self.mask, state[: self.mask.size], 0).astype(actions.dtype)

    def to_relative(self, actions: Vector, state: Vector) -> Vector:
        """Inverse of ``to_absolute``."""
        return actions - np.where(self.mask, state[: self.mask.size], 0).astype(actions.dtype)


def relative_by_names(
    names: Sequence[str] | None, excluded: Sequence[str], action_dim: int, state_dim: int
) -> RelativeActions:
    """Relative dimensions as LeRobot picks them.

    A dimension is absolute if its name contains an excluded token, case ignored. Without names every
    dimension is relative; so is one past the last name.

    Raises:
        CheckpointError: if a relative dimension has no state to be relative to.
    """
    mask = np.ones(action_dim, np.bool_)
    for index, name in enumerate((names or ())[:action_dim]):
        mask[index] = not any(token.lower() in name.lower() for token in excluded)
    return _checked(mask, state_dim)


def relative_by_counts(counts: Sequence[int], action_dim: int, state_dim: int) -> RelativeActions:
    """Relative dimensions in openpi's way: n > 0 means n relative ones, n < 0 means -n absolute ones.

    Dimensions past the last count are absolute.

    Raises:
        CheckpointError: as ``relative_by_names``.
    """
    flags = [count > 0 for count in counts for _ in range(abs(count))]
    mask = np.zeros(action_dim, np.bool_)
    mask[: len(flags)] = flags[:action_dim]
    return _checked(mask, state_dim)


def _checked(mask: NDArray[np.bool_], state_dim: int) -> RelativeActions:
    if mask[state_dim:].any():
        raise CheckpointError(
            "relative_without_state",
            f"action dimension {state_dim + int(np.argmax(mask[state_dim:]))} is relative, "
            f"but the state has {state_dim} dimensions",
            "state and action of a relative policy must list the same joints first",
        )
    return RelativeActions(mask)
