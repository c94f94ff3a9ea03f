"""What is run: robots, text tasks, lengths, steps and arrivals, and the jobs made of them.

A job is one observation with the text requests that arrive with it. The same jobs go to all executors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.arrivals import ARRIVALS, mixed_lengths
from oxygen_ros.models.pi05.config import Pi05Config
from oxygen_ros.models.protocol import ModelInputs

NUM_PICTURES = 4
"""Different observations; they take turns."""


@dataclass(frozen=True)
class RobotShape:
    """What a robot gives: cameras it has, prompt tokens, the padded buffer of the reference, horizon."""

    name: str
    num_cameras: int
    prompt_tokens: int
    max_token_len: int
    horizon: int


LIBERO = RobotShape("LIBERO", 2, 20, 64, 10)
DROID = RobotShape("DROID", 2, 60, 64, 10)
ALOHA = RobotShape("ALOHA", 3, 80, 100, 50)


@dataclass(frozen=True)
class TextShape:
    """A text task: its name and the length of its suffix prompt."""

    name: str
    prompt_tokens: int = 0


PLAIN_TEXT = (TextShape("subtask"),)
THREE_TEXTS = (TextShape("subtask"), TextShape("speech", 6), TextShape("memory", 4))


@dataclass(frozen=True)
class Workload:
    """One row of the table of workloads.

    Attributes:
        max_tokens: N, tokens of one text; the longer length where lengths are mixed.
        short_tokens: the shorter length, None where all texts are equally long.
        steps_per_cycle: k, decode steps of one cycle.
        arrivals: name of an arrival pattern; each arrival asks for every task once.
    """

    id: str
    title: str
    robot: RobotShape = LIBERO
    texts: tuple[TextShape, ...] = PLAIN_TEXT
    max_tokens: int = 30
    steps_per_cycle: int = 5
    arrivals: str = "uniform"
    short_tokens: int | None = None
    denoise_steps: int = 10
    num_experts: int = 1

    @property
    def cycles_until_steady(self) -> int:
        """Cycles after which as many texts end as begin."""
        return -(-self.max_tokens // self.steps_per_cycle) + 1

    @property
    def steady_rows(self) -> int:
        """Texts that run together in steady state when one arrival comes with each observation."""
        return len(self.texts) * -(-self.max_tokens // self.steps_per_cycle)


WORKLOADS = {
    w.id: w
    for w in (
        Workload("W1", "LIBERO, N=30, k=5: the headline"),
        Workload("W2", "DROID, 60 prompt tokens, N=30, k=5", DROID),
        Workload("W3", "ALOHA, 3 cameras, horizon 50, N=30, k=5", ALOHA),
        Workload("W4", "LIBERO, N=60, k=5", max_tokens=60),
        Workload("W5", "LIBERO, N=30, k=1", steps_per_cycle=1),
        Workload("W6", "LIBERO, three text tasks on each observation, N=30, k=5", texts=THREE_TEXTS),
        Workload("W7", "LIBERO, Poisson arrivals, 5 or 30 tokens, k=5", arrivals="poisson", short_tokens=5),
        Workload("W7b", "LIBERO, bursts of 4 every 8 cycles, N=30, k=5", arrivals="bursty"),
        Workload("W8", "LIBERO, no text", arrivals="none"),
        Workload("E2", "LIBERO, two action experts, N=30, k=5", num_experts=2),
        Workload("E4", "LIBERO, four action experts, N=30, k=5", num_experts=4),
    )
}


def steps_sweep(base: Workload, steps: tuple[int, ...]) -> list[Workload]:
    """The paper's axis k: the same workload with other decode steps per cycle."""
    return [
        replace(base, id=f"{base.id}k{k}", title=f"{base.title} at k={k}", steps_per_cycle=k) for k in steps
    ]


@dataclass(frozen=True)
class TextJob:
    """A wish for one text about the observation it comes with."""

    request_id: str
    task: str
    prompt_ids: tuple[int, ...]
    max_tokens: int


@dataclass(frozen=True)
class Job:
    """One observation and the texts that are asked for with it."""

    cycle: int
    inputs: ModelInputs
    texts: tuple[TextJob, ...]


def make_jobs(workload: Workload, config: Pi05Config, num_cycles: int, seed: int = 0) -> list[Job]:
    """Jobs of ``workload``: random pictures and prompts, the same for the same seed."""
    rng = np.random.default_rng(seed)
    pictures = [_random_inputs(workload.robot, config, rng) for _ in range(NUM_PICTURES)]
    prompts = {
        text.name: tuple(int(i) for i in rng.integers(3, config.vocab_size, text.prompt_tokens))
        for text in workload.texts
    }
    counts = ARRIVALS[workload.arrivals](num_cycles)
    lengths = _lengths(workload, sum(counts) * len(workload.texts))
    return [
        Job(
            cycle,
            replace(pictures[cycle % NUM_PICTURES], observation_id=cycle + 1),
            tuple(
                TextJob(f"{text.name}-{cycle}-{index}", text.name, prompts[text.name], next(lengths))
                for index in range(counts[cycle])
                for text in workload.texts
            ),
        )
        for cycle in range(num_cycles)
    ]


def _random_inputs(robot: RobotShape, config: Pi05Config, rng: np.random.Generator) -> ModelInputs:
    side = config.vision.image_size
    return ModelInputs(
        observation_id=0,
        images=rng.uniform(-1, 1, (robot.num_cameras, 3, side, side)).astype(np.float32),
        token_ids=rng.integers(3, config.vocab_size, robot.prompt_tokens),
    )


def _lengths(workload: Workload, num_texts: int) -> Iterator[int]:
    if workload.short_tokens is None:
        return iter([workload.max_tokens] * num_texts)
    return iter(mixed_lengths(num_texts, workload.short_tokens, workload.max_tokens))
