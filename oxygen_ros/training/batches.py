"""Training batches: prompts, texts and targets from frames. Equal seeds give equal batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oxygen_ros.sim import grammar
from oxygen_ros.sim.expert import Phase, decide
from oxygen_ros.sim.truth import ALL_TASKS, COLOURS, TARGETS, Task, Truth
from oxygen_ros.training.frames import Frames, unpack_truth
from oxygen_ros.training.vision import to_model_images
from oxygen_ros.training.vocabulary import BOS_ID, EOS_ID, NUM_STATE_BINS, PAD_ID, build_tokenizer

STATE_Q01 = (0.25, -0.33, 0.0, -0.5, 1.07, -0.5, 0.0, -0.05)
STATE_Q99 = (0.57, 0.33, 0.28, 0.5, 2.07, 0.5, 0.05, 0.0)
"""Physical ranges of the state, not data quantiles: the hand never turns, and noise is no news."""
PHASES = tuple(Phase)
NUM_PLACE_QUESTIONS = len(COLOURS) + len(TARGETS)
"""They come first among the questions of the grammar."""
IGNORE = -100
_POSITION_CENTRE = np.array([0.42, 0.0, 0.05], np.float32)
_POSITION_SCALE = np.array([0.1, 0.15, 0.1], np.float32)
_RELATIVE_SCALE = 0.1
_STRANGE_QUESTIONS = ("What is that?", "Where is the task?", "What do you need?", "Is the table red?")


def state_bins(state: NDArray[np.float32]) -> list[int]:
    """The 256-bin text numbers of one state [8], as openpi's prompt has them; -1 is below the range."""
    low, high = np.array(STATE_Q01), np.array(STATE_Q99)
    normed = (state - low) / (high - low + 1e-6) * 2 - 1
    edges = np.linspace(-1, 1, NUM_STATE_BINS + 1)[:-1]
    return [int(value) for value in np.digitize(normed, edges) - 1]


class Prompter:
    """Token ids of prompts and texts."""

    def __init__(self) -> None:
        self._tokenizer = build_tokenizer()
        self._instructions = [self.encode(f"Task: {task.instruction}, State:") for task in ALL_TASKS]
        self._numbers = {value: self.encode(f" {value}") for value in range(-1, NUM_STATE_BINS)}
        self._end = self.encode(";\nAction: ")
        self._sentences: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """Ids without begin or end."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of ``token_ids`` up to the end token."""
        kept = list(token_ids)
        kept = kept[: kept.index(EOS_ID)] if EOS_ID in kept else kept
        return str(self._tokenizer.decode(kept))

    def prefix(self, task: int, state: NDArray[np.float32], is_blind: bool = False) -> list[int]:
        """The action prompt. ``is_blind`` puts padding in place of the state's numbers."""
        numbers = [token for value in state_bins(state) for token in self._numbers[value]]
        if is_blind:
            numbers = [PAD_ID] * len(numbers)
        return [BOS_ID, *self._instructions[task], *numbers, *self._end]

    def text(self, prompt: str, answer: str) -> tuple[list[int], list[int]]:
        """Input ids and next-token targets of one text; the prompt's own tokens are no targets."""
        head, body = self._cached(prompt), [*self._cached(answer), EOS_ID]
        ids = head + body
        return ids[:-1], [IGNORE] * (len(head) - 1) + body

    def _cached(self, text: str) -> list[int]:
        if text not in self._sentences:
            self._sentences[text] = self.encode(text)
        return self._sentences[text]


@dataclass(frozen=True)
class Batch:
    """One training batch; B observations, R texts.

    Attributes:
        images: float32 [B, 2, 3, S, S]; prefix_ids: int64 [B, N]; actions: float32 [B, H, A].
        text_rows: int64 [R], observation of each text; text_ids, text_targets: int64 [R, L].
        text_objects: int64 [R], cube or container that a text asks the place of; -1 for other texts.
        cells: int64 [B, 2, 6]; positions, relative: float32 [B, 6, 3].
        phase, held: int64 [B]; errand: float32 [B, 6], asked cube and container seen from the hand.
    """

    images: Tensor
    prefix_ids: Tensor
    actions: Tensor
    text_rows: Tensor
    text_ids: Tensor
    text_targets: Tensor
    text_objects: Tensor
    cells: Tensor
    positions: Tensor
    relative: Tensor
    phase: Tensor
    held: Tensor
    errand: Tensor


@dataclass(frozen=True)
class TextMix:
    """Shares of kinds among training texts; what is left goes to all questions alike.

    Attributes:
        memory, next: the two tasks of the robot's own.
        strange: questions outside the grammar.
        places: where something is, of all things.
        asked_cube: where the cube of the task is.
    """

    memory: float = 0.15
    next: float = 0.15
    strange: float = 0.02
    places: float = 0.40
    asked_cube: float = 0.05


JOINT_MIX = TextMix()


def choose_text(rng: np.random.Generator, truth: Truth, task: Task, mix: TextMix) -> tuple[str, str]:
    """A random text task with its true answer: (suffix prompt, answer)."""
    kind = rng.random()
    if kind < mix.memory:
        return grammar.MEMORY_PROMPT, grammar.memory_sentence(truth, task)
    if kind < mix.memory + mix.next:
        return grammar.NEXT_PROMPT, grammar.next_sentence(truth, task)
    if kind < mix.memory + mix.next + mix.strange:
        return str(rng.choice(_STRANGE_QUESTIONS)), grammar.UNKNOWN_ANSWER
    known = grammar.questions()
    question = known[rng.integers(len(known))]
    if kind > 1.0 - mix.asked_cube - mix.places:
        question = known[rng.integers(NUM_PLACE_QUESTIONS)]
    if kind > 1.0 - mix.asked_cube:
        question = f"Where is the {task.instruction.split()[2]} cube?"
    return question, grammar.answer(question, truth)


class BatchMaker:
    """Draws batches from frames."""

    def __init__(self, action_dim: int, blind_share: float) -> None:
        self.prompter = Prompter()
        self._action_dim = action_dim
        self._blind_share = blind_share

    def make(
        self,
        frames: Frames,
        rows: NDArray[np.int64],
        num_texts: int,
        rng: np.random.Generator,
        mix: TextMix = JOINT_MIX,
    ) -> Batch:
        """A batch of ``rows``, with ``num_texts`` texts that go round them."""
        truths = [unpack_truth(frames.truth[row]) for row in rows]
        tasks = [ALL_TASKS[frames.task[row]] for row in rows]
        prefix_ids = [
            self.prompter.prefix(frames.task[row], frames.state[row], bool(rng.random() < self._blind_share))
            for row in rows
        ]
        text_rows = [i % len(rows) for i in range(num_texts)]
        pairs = [choose_text(rng, truths[i], tasks[i], mix) for i in text_rows]
        ids, targets = _pad([self.prompter.text(*pair) for pair in pairs])
        actions = np.zeros((len(rows), frames.plan.shape[1], self._action_dim), np.float32)
        actions[..., : frames.plan.shape[2]] = frames.plan[rows]
        points = [_points(truth) for truth in truths]
        return Batch(
            images=to_model_images(torch.from_numpy(frames.images[rows])),
            prefix_ids=torch.tensor(prefix_ids),
            actions=torch.from_numpy(actions),
            text_rows=torch.tensor(text_rows, dtype=torch.int64),
            text_ids=ids,
            text_targets=targets,
            text_objects=torch.tensor([_object_of(prompt) for prompt, _ in pairs], dtype=torch.int64),
            cells=torch.from_numpy(frames.cells[rows].astype(np.int64)),
            positions=torch.from_numpy(np.stack([(p - _POSITION_CENTRE) / _POSITION_SCALE for p in points])),
            relative=torch.from_numpy(np.stack([(p - p[5]) / _RELATIVE_SCALE for p in points])),
            phase=torch.tensor(
                [PHASES.index(decide(t, k).phase) for t, k in zip(truths, tasks, strict=True)]
            ),
            held=torch.tensor([3 if truth.held is None else truth.held for truth in truths]),
            errand=torch.from_numpy(
                np.stack(
                    [
                        np.concatenate([p[k.colour] - p[5], p[3 + k.target] - p[5]]) / _RELATIVE_SCALE
                        for p, k in zip(points, tasks, strict=True)
                    ]
                )
            ),
        )


def _object_of(prompt: str) -> int:
    places = grammar.questions()[:NUM_PLACE_QUESTIONS]
    return places.index(prompt) if prompt in places else -1


def _points(truth: Truth) -> NDArray[np.float32]:
    containers = np.concatenate([truth.containers, np.zeros((2, 1))], axis=1)
    return np.concatenate([truth.cubes, containers, truth.command[None]]).astype(np.float32)


def _pad(pairs: Sequence[tuple[list[int], list[int]]]) -> tuple[Tensor, Tensor]:
    length = max((len(ids) for ids, _ in pairs), default=1)
    ids = torch.full((len(pairs), length), PAD_ID)
    targets = torch.full((len(pairs), length), IGNORE)
    for row, (one, wanted) in enumerate(pairs):
        ids[row, : len(one)] = torch.tensor(one)
        targets[row, : len(wanted)] = torch.tensor(wanted)
    return ids, targets
