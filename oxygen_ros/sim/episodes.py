"""One episode after another in one world: whose turn it is, when it is over, when the next one begins.

Knows no topics and no clock: whoever calls ``tick`` makes time pass. One thread.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.sim.expert import ACTION_DIM
from oxygen_ros.sim.rules import FIRST_SEED, MAX_TICKS, is_over
from oxygen_ros.sim.truth import ALL_TASKS, Task
from oxygen_ros.sim.world import Tabletop, random_layout

__all__ = ["FIRST_SEED", "MAX_TICKS", "Episodes", "Outcome", "is_over", "task_of"]

LINGER_TICKS = 30
"""Ticks between the end of an episode and the next one: time to say that it is done."""
REST_TICKS = 18
"""Ticks at the start of a later episode in which commands, made for the last one, are not followed."""


def task_of(seed: int) -> Task:
    """The task of an episode that is free to choose."""
    return ALL_TASKS[seed % len(ALL_TASKS)]


@dataclass(frozen=True)
class Outcome:
    """What came of one episode. ``num_actions`` counts executed actions."""

    episode: int
    seed: int
    task: Task
    is_success: bool
    num_actions: int


class Episodes:
    """Steps a world, and resets it when an episode has ended.

    Attributes:
        episode: running number from 1.
        seed: of its layout.
        task: what is asked for.
        last: outcome of the episode that ended last.
    """

    def __init__(self, world: Tabletop, first_seed: int = FIRST_SEED, task: Task | None = None) -> None:
        """Begin the first episode.

        Args:
            world: to be stepped.
            first_seed: later episodes take the seeds that follow.
            task: of all episodes; None for one after another.
        """
        self.world = world
        self._only = task
        self.episode, self.seed, self.task = 0, first_seed - 1, ALL_TASKS[0]
        self.last: Outcome | None = None
        self._linger_left: int | None = None
        self._begin()
        self._rest_left = 0

    def tick(self, action: NDArray[np.floating] | None) -> None:
        """One control tick with ``action`` [7], or with none: the hand stays where it is."""
        if self._linger_left == 0:
            self._begin()
        if self._rest_left:
            self._rest_left -= 1
            action = None
        self.world.step(self._still() if action is None else action)
        if self._linger_left is not None:
            self._linger_left -= 1
            return
        self._num_actions += action is not None
        truth = self.world.truth()
        if is_over(truth, self.task) or self._num_actions >= MAX_TICKS:
            is_success = truth.is_done(self.task)
            self.last = Outcome(self.episode, self.seed, self.task, is_success, self._num_actions)
            self._linger_left = LINGER_TICKS

    def _begin(self) -> None:
        self.episode += 1
        self.seed += 1
        self.task = self._only or task_of(self.seed)
        self.world.reset(random_layout(np.random.default_rng(self.seed)))
        self._num_actions = 0
        self._linger_left = None
        self._rest_left = REST_TICKS

    def _still(self) -> NDArray[np.float32]:
        action = np.zeros(ACTION_DIM, np.float32)
        action[6] = 1.0 if self.world.truth().is_closing else -1.0
        return action
