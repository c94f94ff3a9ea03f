"""When text requests arrive and how long their texts are. Each pattern gives the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

ArrivalCounts = list[int]
"""Requests that arrive in each cycle."""


def uniform(num_cycles: int, every: int = 1, count: int = 1) -> ArrivalCounts:
    """``count`` requests in every ``every``-th cycle, from the first on."""
    return [count if cycle % every == 0 else 0 for cycle in range(num_cycles)]


def poisson(num_cycles: int, rate: float = 1.0, seed: int = 42) -> ArrivalCounts:
    """A Poisson number of requests in each cycle, ``rate`` on average."""
    return [int(n) for n in np.random.default_rng(seed).poisson(rate, num_cycles)]


def bursty(num_cycles: int, every: int = 8, count: int = 4) -> ArrivalCounts:
    """``count`` requests at once in every ``every``-th cycle."""
    return uniform(num_cycles, every, count)


ARRIVALS: dict[str, Callable[[int], ArrivalCounts]] = {
    "none": lambda num_cycles: [0] * num_cycles,
    "uniform": uniform,
    "poisson": poisson,
    "bursty": bursty,
}


def mixed_lengths(
    num_texts: int, short: int, long: int, long_share: float = 0.5, seed: int = 42
) -> list[int]:
    """Token limits, ``long`` with probability ``long_share`` and ``short`` otherwise."""
    is_long = np.random.default_rng(seed).random(num_texts) < long_share
    return [long if flag else short for flag in is_long]
