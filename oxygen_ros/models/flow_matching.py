"""Euler integration of a flow from noise to actions. Shared by families; knows no model."""

from __future__ import annotations

import enum
from collections.abc import Callable

import numpy as np
from torch import Tensor

Velocity = Callable[[Tensor, int], Tensor]


class TimeGrid(enum.Enum):
    """How the times of the steps from 1 to 0 are made."""

    ACCUMULATED = "accumulated"
    """Sum of float32 steps, as openpi does."""
    EXACT = "exact"
    """1 - i / S, as LeRobot does. Moves actions by about 1e-5."""


def step_times(num_steps: int, grid: TimeGrid) -> np.ndarray:
    """Times at which the velocity is evaluated, float32 [num_steps], from 1 downwards.

    Raises:
        ValueError: if ``num_steps`` is not positive.
    """
    if num_steps < 1:
        raise ValueError(f"at least one denoise step is needed, got {num_steps}")
    if grid is TimeGrid.EXACT:
        return (1.0 - np.arange(num_steps) / num_steps).astype(np.float32)
    times = np.empty(num_steps, dtype=np.float32)
    time, step = np.float32(1.0), np.float32(-1.0 / num_steps)
    for index in range(num_steps):
        times[index] = time
        time = np.float32(time + step)
    return times


def integrate(x_t: Tensor, num_steps: int, velocity: Velocity) -> Tensor:
    """Take ``num_steps`` equal Euler steps from time 1 to 0.

    Args:
        x_t: noise, float32. Steps add up in float32 whatever the dtype of the model.
        velocity: float32 velocity at (x_t, step index).
    """
    step = float(np.float32(-1.0 / num_steps))
    for index in range(num_steps):
        x_t = x_t + velocity(x_t, index) * step
    return x_t


def guidance_gain(time: float, max_gain: float) -> float:
    """How strongly a step at ``time`` is pulled: (t^2 + (1 - t)^2) / (t (1 - t)), at most ``max_gain``."""
    if not 0.0 < time < 1.0:
        return max_gain
    return min(max_gain, (time**2 + (1 - time) ** 2) / (time * (1 - time)))


def guided(
    velocity: Velocity, times: np.ndarray, previous: Tensor, weights: Tensor, max_gain: float
) -> Velocity:
    """``velocity`` with a pull of the actions it leads to towards ``previous``.

    Source: real-time chunking as LeRobot runs it, where the velocity counts as constant, so that no gradient
    is needed (reference in docs/decisions/0003-guided-chunks.md).

    Args:
        velocity: of the flow, at (x_t, step index).
        times: of the steps, from 1 downwards.
        previous: [horizon, action_dim], where the chunk should begin.
        weights: [horizon, 1], how much each row is pulled.
        max_gain: largest gain.
    """

    def pulled(x_t: Tensor, index: int) -> Tensor:
        v_t, time = velocity(x_t, index), float(times[index])
        error = previous - (x_t - time * v_t)
        return v_t - guidance_gain(time, max_gain) * weights * error

    return pulled
