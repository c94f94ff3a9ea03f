"""Lets the model drive many simulated robots at once, to measure it and to record what it gets into.

The scripted expert takes over only where ``expert_share`` says so; measuring uses 0. For measuring a
checkpoint the way people run it, see ``score.py``, which goes through the product's own inference.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from oxygen_ros.sim import expert, grammar
from oxygen_ros.sim.cameras import Cameras
from oxygen_ros.sim.rules import is_over
from oxygen_ros.sim.scenarios import random_scenario
from oxygen_ros.sim.truth import ALL_TASKS, Task
from oxygen_ros.sim.world import Tabletop, random_layout
from oxygen_ros.training.batches import Prompter
from oxygen_ros.training.frames import HORIZON, FrameRecorder, take_pictures
from oxygen_ros.training.pi05 import Prefix, TinyPi05
from oxygen_ros.training.vision import to_model_images
from oxygen_ros.training.vocabulary import EOS_ID

MAX_TICKS = 300


@dataclass
class Outcome:
    """What came of a batch of episodes.

    Attributes:
        successes, grasps, right_first: episodes that ended well; that took a cube; that took the right one.
        ticks: control ticks of each episode.
        texts, exact, claims, false_claims: counts over memory sentences.
    """

    episodes: int = 0
    successes: int = 0
    grasps: int = 0
    right_first: int = 0
    ticks: list[int] = field(default_factory=list)
    texts: int = 0
    exact: int = 0
    claims: int = 0
    false_claims: int = 0

    def line(self) -> str:
        """One line for the log."""
        return (
            f"success {self.successes}/{self.episodes}, grasped {self.grasps}, "
            f"right first {self.right_first}, "
            f"mean ticks {np.mean(self.ticks):.0f}, memory exact {self.exact}/{self.texts}, "
            f"false claims {self.false_claims}/{self.claims}"
        )


@dataclass
class _Episode:
    world: Tabletop
    task: Task
    first_held: int | None = None
    is_over: bool = False


class Rollouts:
    """A fixed number of worlds that one model drives in a batch."""

    def __init__(self, model: TinyPi05, num_worlds: int, seed: int) -> None:
        self._model = model
        self._prompter = Prompter()
        self._rng = np.random.default_rng(seed)
        self._noise = torch.Generator().manual_seed(seed)
        self._worlds = [Tabletop() for _ in range(num_worlds)]

    def run(
        self,
        *,
        expert_share: float = 0.0,
        scenario_share: float = 0.0,
        recorder: FrameRecorder | None = None,
        with_memory: bool = False,
        max_ticks: int = MAX_TICKS,
        execute: int | None = None,
    ) -> Outcome:
        """One episode in every world.

        Args:
            expert_share: share of chunks that the expert executes in place of the model.
            scenario_share: share of episodes that start in the middle of things.
            recorder: gets every observation with the expert's label.
            with_memory: also write the memory sentence at every third chunk and judge it.
            execute: actions executed of each chunk; None draws 4 to 10 anew each time.
        """
        outcome = Outcome()
        episodes = [self._begin(world, scenario_share) for world in self._worlds]
        with Cameras(self._worlds[0], max_width=64, max_height=64) as cameras:
            tick, chunk = 0, 0
            while tick < max_ticks and any(not e.is_over for e in episodes):
                live = [e for e in episodes if not e.is_over]
                pictures = [take_pictures(cameras, e.world) for e in live]
                prefix, actions = self._infer(live, pictures)
                if recorder is not None:
                    for episode, picture in zip(live, pictures, strict=True):
                        recorder.add(episode.world, episode.task, picture)
                if with_memory and chunk % 3 == 0:
                    self._judge_memory(live, prefix, outcome)
                count = execute or int(self._rng.integers(4, HORIZON + 1))
                for episode, chosen in zip(live, actions, strict=True):
                    self._execute(episode, chosen[:count], expert_share)
                tick, chunk = tick + count, chunk + 1
        self._tally(episodes, outcome)
        return outcome

    def _begin(self, world: Tabletop, scenario_share: float) -> _Episode:
        task = ALL_TASKS[self._rng.integers(len(ALL_TASKS))]
        is_scenario = self._rng.random() < scenario_share
        world.reset(random_scenario(self._rng, task) if is_scenario else random_layout(self._rng))
        return _Episode(world, task)

    @torch.no_grad()
    def _infer(
        self, live: list[_Episode], pictures: list[NDArray[np.uint8]]
    ) -> tuple[Prefix, NDArray[np.float32]]:
        images = to_model_images(torch.from_numpy(np.stack(pictures)))
        ids = [self._prompter.prefix(ALL_TASKS.index(e.task), e.world.state()) for e in live]
        prefix = self._model.prefill(images, torch.tensor(ids))
        dims = self._model.dims
        noise = torch.randn(len(live), dims.horizon, dims.action_dim, generator=self._noise)
        return prefix, self._model.sample_actions(prefix, noise).numpy()

    def _execute(self, episode: _Episode, actions: NDArray[np.float32], expert_share: float) -> None:
        is_expert = self._rng.random() < expert_share
        for action in actions:
            truth = episode.world.truth()
            episode.world.step(expert.act(truth, episode.task) if is_expert else action)
        after = episode.world.truth()
        if episode.first_held is None:
            episode.first_held = after.held
        episode.is_over = is_over(after, episode.task)

    def _judge_memory(self, live: list[_Episode], prefix: Prefix, outcome: Outcome) -> None:
        prompt = torch.tensor([self._prompter.encode(grammar.MEMORY_PROMPT)] * len(live))
        written = self._model.greedy_text(prefix, torch.arange(len(live)), prompt, 28, EOS_ID)
        for episode, ids in zip(live, written.tolist(), strict=True):
            text, truth = self._prompter.decode(ids), episode.world.truth()
            claims = grammar.read_claims(text)
            outcome.texts += 1
            outcome.exact += text == grammar.memory_sentence(truth, episode.task)
            outcome.claims += claims.is_claim
            outcome.false_claims += not claims.is_true(truth)

    def _tally(self, episodes: list[_Episode], outcome: Outcome) -> None:
        for episode in episodes:
            outcome.episodes += 1
            outcome.successes += episode.world.truth().is_done(episode.task)
            outcome.grasps += episode.first_held is not None
            outcome.right_first += episode.first_held == episode.task.colour
            outcome.ticks.append(episode.world.ticks)
