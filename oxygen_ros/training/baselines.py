"""Trivial ways to write the same texts: what a model has to beat. No pictures, no weights."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.sim import expert, grammar
from oxygen_ros.sim.scenarios import random_scenario
from oxygen_ros.sim.scorer import MEMORY, Birth, TextTally
from oxygen_ros.sim.truth import ALL_TASKS, COLOURS
from oxygen_ros.sim.world import Tabletop, random_layout
from oxygen_ros.training.batches import STATE_Q01, STATE_Q99
from oxygen_ros.types import FloatArray

NEIGHBOURS = 5
_TICKS_BETWEEN = 4

BornTexts = list[tuple[Birth, FloatArray]]


class StateOnly:
    """Memory sentences by the nearest robot states of the same task: what can be said without looking."""

    def __init__(self, num_episodes: int, seed: int) -> None:
        self._states: dict[int, list[NDArray[np.float64]]] = {task: [] for task in range(len(ALL_TASKS))}
        self._sentences: dict[int, list[str]] = {task: [] for task in range(len(ALL_TASKS))}
        rng, world = np.random.default_rng(seed), Tabletop()
        for number in range(num_episodes):
            self._watch(world, rng, number % len(ALL_TASKS), is_whole=number % 2 == 0)

    def _watch(self, world: Tabletop, rng: np.random.Generator, index: int, is_whole: bool) -> None:
        task = ALL_TASKS[index]
        world.reset(random_layout(rng) if is_whole else random_scenario(rng, task))
        for tick in range(140 if is_whole else 24):
            truth = world.truth()
            if tick % _TICKS_BETWEEN == 0:
                self._states[index].append(scaled(world.state()))
                self._sentences[index].append(grammar.memory_sentence(truth, task))
            world.step(expert.act(truth, task))

    def write(self, birth: Birth, state: FloatArray) -> str:
        """The commonest sentence among the nearest states."""
        index = ALL_TASKS.index(birth.task)
        distances = np.linalg.norm(np.array(self._states[index]) - scaled(state), axis=1)
        nearest = np.argsort(distances, kind="stable")[:NEIGHBOURS]
        commonest: str = Counter(self._sentences[index][i] for i in nearest).most_common(1)[0][0]
        return commonest


def scaled(state: FloatArray) -> NDArray[np.float64]:
    """State on the scale of the checkpoint's statistics."""
    low, high = np.array(STATE_Q01), np.array(STATE_Q99)
    relative: NDArray[np.float64] = (state.astype(np.float64) - low) / (high - low)
    return relative


def nothing_yet(birth: Birth) -> str:
    """The sentence that nothing is done, whatever is so."""
    colour, place = COLOURS[birth.task.colour], grammar.place_of(birth.task.target)
    return grammar.nothing_done(f"the {colour} cube", place)


def judge_baselines(births: BornTexts, state_only: StateOnly) -> dict[str, TextTally]:
    """Tallies of both baselines over the memory texts that a model was asked for."""
    tallies = {"state_only": TextTally(), "nothing_yet": TextTally()}
    for birth, state in births:
        if birth.kind == MEMORY:
            tallies["state_only"].add(state_only.write(birth, state), birth, birth.truth, birth.tick)
            tallies["nothing_yet"].add(nothing_yet(birth), birth, birth.truth, birth.tick)
    return tallies
