"""Closed-loop episodes for scoring: a policy, a seed, a task, three kinds of text.

The scripted expert has no part in this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from oxygen_ros.sim import grammar
from oxygen_ros.sim.cameras import Cameras
from oxygen_ros.sim.rules import MAX_TICKS, is_over
from oxygen_ros.sim.scene import CONTROL_HZ
from oxygen_ros.sim.scorer import ASK, MEMORY, NEXT, Birth, TextTally
from oxygen_ros.sim.truth import ALL_TASKS, Task
from oxygen_ros.sim.world import Tabletop, random_layout
from oxygen_ros.training.frames import take_pictures
from oxygen_ros.training.product import FinishedText
from oxygen_ros.types import FloatArray, Observation, SamplingParams, TextKind, TextRequest

KINDS = (MEMORY, ASK, NEXT)
"""One text is born in each cycle, of these kinds in turn."""
EXECUTE = 8
MAX_TEXT_TOKENS = 32
TICK_NS = 1_000_000_000 // CONTROL_HZ


class Policy(Protocol):
    """What is scored."""

    def cycle(
        self, observation: Observation, seed: int, requests: list[TextRequest]
    ) -> tuple[FloatArray, list[FinishedText]]:
        """Commands [horizon, 7] and the texts that ended."""
        ...

    def forget(self) -> None:
        """Drop all texts."""
        ...


@dataclass
class EpisodeResult:
    """What came of one episode.

    Attributes:
        first_held_is_right: None when nothing was ever held.
        births: what each judged text was about, with the robot's state then, for baselines.
    """

    seed: int
    task: str
    is_success: bool
    ticks: int
    first_held_is_right: bool | None
    tallies: dict[str, TextTally]
    births: list[tuple[Birth, FloatArray]]
    wrong_texts: list[dict[str, str]] = field(default_factory=list)


class Examiner:
    """Runs episodes in one world with one policy."""

    def __init__(self, policy: Policy, world: Tabletop, cameras: Cameras) -> None:
        self._policy = policy
        self._world = world
        self._cameras = cameras
        self._births: dict[str, tuple[Birth, FloatArray]] = {}
        self._observation_id = 0

    def run(self, seed: int) -> EpisodeResult:
        """One episode of task ``seed`` modulo the number of tasks, in the layout drawn from ``seed``."""
        world, task = self._world, ALL_TASKS[seed % len(ALL_TASKS)]
        rng = np.random.default_rng(seed)
        world.reset(random_layout(rng))
        result = EpisodeResult(
            seed, task.instruction, False, 0, None, {kind: TextTally() for kind in KINDS}, []
        )
        cycle = 0
        while world.ticks < MAX_TICKS and not is_over(world.truth(), task):
            observation = self._observe(task.instruction)
            births = [self._bear(f"{seed}-{cycle}", KINDS[cycle % len(KINDS)], rng, task)]
            commands, finished = self._policy.cycle(
                observation, seed * 1000 + cycle, [_request(name, b) for name, b in births]
            )
            for action in commands[:EXECUTE]:
                world.step(action)
            self._judge(finished, result)
            held = world.truth().held
            if held is not None and result.first_held_is_right is None:
                result.first_held_is_right = held == task.colour
            cycle += 1
        result.is_success = world.truth().is_done(task)
        result.ticks = world.ticks
        self._policy.forget()
        self._births.clear()
        return result

    def _observe(self, instruction: str) -> Observation:
        """What the robot sees, cameras upside down as LIBERO's are."""
        self._observation_id += 1
        base, wrist = (np.ascontiguousarray(p[::-1, ::-1]) for p in take_pictures(self._cameras, self._world))
        images = {"base": base, "left_wrist": wrist}
        stamp_ns = self._world.ticks * TICK_NS
        return Observation(self._observation_id, stamp_ns, images, self._world.state(), instruction)

    def _bear(self, number: str, kind: str, rng: np.random.Generator, task: Task) -> tuple[str, Birth]:
        """Name and birth of one text, born now."""
        known = grammar.questions()
        prompts = {MEMORY: grammar.MEMORY_PROMPT, NEXT: grammar.NEXT_PROMPT}
        prompt = prompts.get(kind) or known[int(rng.integers(len(known)))]
        name = f"{kind}-{number}"
        birth = Birth(kind, prompt, self._world.truth(), task, self._world.ticks)
        self._births[name] = (birth, self._world.state())
        return name, birth

    def _judge(self, finished: list[FinishedText], result: EpisodeResult) -> None:
        for text in finished:
            birth, state = self._births.pop(text.request_id)
            result.births.append((birth, state))
            result.tallies[birth.kind].add(text.text, birth, self._world.truth(), self._world.ticks)
            if text.text != birth.true_text():
                result.wrong_texts.append(
                    {"kind": birth.kind, "wrote": text.text, "right": birth.true_text(), "ended": text.reason}
                )


def _request(name: str, birth: Birth) -> TextRequest:
    kinds = {ASK: TextKind.ASK, MEMORY: TextKind.MEMORY, NEXT: TextKind.SUBTASK}
    sampling = SamplingParams(max_tokens=MAX_TEXT_TOKENS)
    return TextRequest(name, birth.kind, kinds[birth.kind], birth.prompt, sampling)


def run_episodes(
    policy: Policy, seeds: range, report: Callable[[EpisodeResult], None]
) -> list[EpisodeResult]:
    """All ``seeds``, one after another; ``report`` hears of each."""
    world, results = Tabletop(), []
    with Cameras(world, max_width=64, max_height=64) as cameras:
        examiner = Examiner(policy, world, cameras)
        for seed in seeds:
            results.append(examiner.run(seed))
            report(results[-1])
    return results
