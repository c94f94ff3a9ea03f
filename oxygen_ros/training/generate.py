"""Makes training frames with the scripted expert. No torch.

Two kinds: whole episodes from ordinary starts, with noise and forced mistakes; and short pieces from the
middles of good and failed episodes. Every frame has the expert's clean label.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.sim import expert
from oxygen_ros.sim.cameras import Cameras
from oxygen_ros.sim.scenarios import random_scenario
from oxygen_ros.sim.truth import ALL_TASKS, Task
from oxygen_ros.sim.world import Tabletop, random_layout
from oxygen_ros.training.frames import FrameRecorder, Frames, take_pictures

PIECE_TICKS = 15
PIECE_STRIDE = 5
EPISODE_TICKS = 260
EPISODE_STRIDE = 6
PIECES_PER_EPISODE = 10


class Disturbance:
    """Noise on what is executed, never on what is recorded as right; sometimes a forced grip or drop."""

    def __init__(self, rng: np.random.Generator, mistakes: float) -> None:
        self._rng = rng
        self._mistakes = mistakes
        self._offset = np.zeros(3)
        self._grip_ticks = 0
        self._grip = 1.0

    def apply(self, action: NDArray[np.float32]) -> NDArray[np.float32]:
        """The action to execute."""
        rng = self._rng
        if rng.random() < 0.12:
            self._offset = rng.normal(0.0, 0.7, 3) if rng.random() < 0.5 else np.zeros(3)
        if self._grip_ticks == 0 and rng.random() < self._mistakes:
            self._grip_ticks, self._grip = int(rng.integers(4, 12)), -action[6]
        executed = action.copy()
        executed[:3] += self._offset
        if self._grip_ticks > 0:
            self._grip_ticks -= 1
            executed[6] = self._grip
        return executed


def record_episode(
    world: Tabletop, cameras: Cameras, recorder: FrameRecorder, rng: np.random.Generator, task: Task
) -> None:
    """One whole episode from an ordinary start, until the task is done and the hand is up."""
    world.reset(random_layout(rng))
    disturbance = Disturbance(rng, mistakes=0.008)
    rest_ticks = 0
    for tick in range(EPISODE_TICKS):
        if tick % EPISODE_STRIDE == 0:
            recorder.add(world, task, take_pictures(cameras, world))
        truth = world.truth()
        world.step(disturbance.apply(expert.act(truth, task)))
        rest_ticks += truth.is_done(task) and truth.hand[2] > 0.15
        if rest_ticks > 12:
            return


def record_piece(
    world: Tabletop, cameras: Cameras, recorder: FrameRecorder, rng: np.random.Generator, task: Task
) -> None:
    """A few ticks from a start of any kind."""
    world.reset(random_scenario(rng, task))
    disturbance = Disturbance(rng, mistakes=0.02)
    for tick in range(PIECE_TICKS + 1):
        if tick % PIECE_STRIDE == 0:
            recorder.add(world, task, take_pictures(cameras, world))
        world.step(disturbance.apply(expert.act(world.truth(), task)))


def generate(seed: int, num_frames: int) -> Frames:
    """At least ``num_frames`` frames; equal seeds give equal frames."""
    rng = np.random.default_rng(seed)
    world, recorder = Tabletop(), FrameRecorder()
    with Cameras(world, max_width=64, max_height=64) as cameras:
        while len(recorder) < num_frames:
            record_episode(world, cameras, recorder, rng, ALL_TASKS[rng.integers(len(ALL_TASKS))])
            for _ in range(PIECES_PER_EPISODE):
                record_piece(world, cameras, recorder, rng, ALL_TASKS[rng.integers(len(ALL_TASKS))])
    return recorder.frames()


def main() -> None:
    """Write one file of frames."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--frames", type=int, default=10_000)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    frames = generate(options.seed, options.frames)
    frames.save(options.out)
    print(f"{len(frames)} frames, seed {options.seed}: {options.out}")


if __name__ == "__main__":
    main()
