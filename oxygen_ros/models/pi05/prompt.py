"""The action prompt: task text, state as numbers, the tail that the model waits for; as text and ids.

A prompt that is too long loses the end of its task text, never its state or its tail. Knows no robot:
the state comes in normalised.
"""

from __future__ import annotations

import enum
import string
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.errors import ContractError
from oxygen_ros.models.pi05.dialect import Dialect, TaskText
from oxygen_ros.models.tokenizers import LocalTokenizer

NUM_BINS = 256
_FINAL_MARKS = tuple(string.punctuation)
_LEFT_EDGES = np.linspace(-1.0, 1.0, NUM_BINS + 1)[:-1]


class PromptStyle(enum.Enum):
    """What the action prompt holds."""

    TASK_STATE_ACTION = "task_state_action"
    """pi0.5: ``Task: {text}, State: {numbers};``, a newline and ``Action: ``."""
    TASK_ONLY = "task_only"
    """pi0, and openpi's pi0.5 without discrete state: the text and a newline."""
    TASK_SUBTASK = "task_subtask"
    """OxyGen's pi0.5: ``Task: {text}. Subtask: ``, the text in small letters, without state."""


class BelowRange(enum.Enum):
    """How the prompt writes a state below its normal range, where there is no bin."""

    AS_TRAINED = "as_trained"
    """As ``-1``: what the checkpoint saw in training for the lowest hundredth of the data."""
    CLIP = "clip"
    """As ``0``, the lowest bin."""


class StateNotFiniteError(ContractError, ValueError):
    """A state value that is NaN or infinite: there is no bin for it."""


@dataclass(frozen=True)
class Prompt:
    """One action prompt.

    Attributes:
        token_ids: int64 [num_tokens], begin token included, nothing padded.
        num_clipped: state values outside [-1, 1].
        is_truncated: the task text was shortened to fit.
    """

    text: str
    token_ids: NDArray[np.int64]
    num_clipped: int
    is_truncated: bool


def clean(text: str) -> str:
    """Task text as openpi and LeRobot's pi0.5 write it: stripped, one line, spaces for underscores."""
    return text.strip().replace("_", " ").replace("\n", " ")


def state_bins(state: NDArray[np.floating], below: BelowRange) -> tuple[NDArray[np.int64], int]:
    """Numbers 0 .. 255 of a normalised state over [-1, 1], and how many values lie outside.

    Above the range gives 255; below it gives what ``below`` says.

    Raises:
        StateNotFiniteError: if a value is NaN or infinite.
    """
    if not np.isfinite(state).all():
        bad = ", ".join(str(index) for index in np.flatnonzero(~np.isfinite(state)))
        raise StateNotFiniteError(
            "state_not_finite",
            f"the state has values that are not finite at index {bad}",
            "check the joint source; the prompt has no number for NaN",
        )
    bins = np.digitize(state, _LEFT_EDGES) - 1
    if below is BelowRange.CLIP:
        bins = np.maximum(bins, 0)
    return bins.astype(np.int64), int(np.count_nonzero((state < -1.0) | (state > 1.0)))


def _whole_words(text: str, length: int) -> str:
    """Start of ``text``, at most ``length`` characters; a word that was cut goes unless it is very long."""
    kept = text[:length]
    before, space, cut_word = kept.rpartition(" ")
    is_cut = not text[length : length + 1].isspace()
    return (before if is_cut and space and len(cut_word) <= 20 else kept).rstrip()


class PromptWriter:
    """Writes the action prompt of one checkpoint."""

    def __init__(
        self,
        tokenizer: LocalTokenizer,
        dialect: Dialect,
        style: PromptStyle,
        max_tokens: int,
        below: BelowRange = BelowRange.AS_TRAINED,
    ) -> None:
        self._tokenizer = tokenizer
        self._dialect = dialect
        self._style = style
        self._max_tokens = max_tokens
        self._below = below

    def write(self, task: str, state: NDArray[np.floating]) -> Prompt:
        """Prompt of one observation.

        Args:
            task: the instruction, as people give it.
            state: normalised, [state_dim]; used only where the style has it.

        Raises:
            StateNotFiniteError: if a state value that would be written is not finite.
            ContractError: if the limit is too small for the prompt without any task text.
        """
        if self._style is PromptStyle.TASK_STATE_ACTION:
            padding = max(0, self._dialect.prompt_state_dim - state.size)
            bins, num_clipped = state_bins(state, self._below)
            numbers = " ".join(
                str(number) for number in (*bins, *state_bins(np.zeros(padding), self._below)[0])
            )
            tail = f", State: {numbers};\nAction: "
            return self._fit(clean(task), lambda text: (f"Task: {text}{tail}", ""), num_clipped)
        if self._style is PromptStyle.TASK_SUBTASK:
            small = clean(task).lower()
            bare = small[:-1] if small.endswith(_FINAL_MARKS) else small
            return self._fit(bare, lambda text: (f"Task: {text}. Subtask: ", ""), 0)
        if self._dialect.task_text is TaskText.CLEANED:
            return self._fit(clean(task), lambda text: (text, "\n"), 0)
        ends = task.endswith("\n")
        return self._fit(task[:-1] if ends else task, lambda text: (f"{text}\n", ""), 0)

    def _fit(self, task: str, parts: Callable[[str], tuple[str, str]], num_clipped: int) -> Prompt:
        """Prompt with the longest start of ``task`` that fits; ``parts`` are tokenised one by one."""
        ids = self._encode(parts(task))
        if len(ids) <= self._max_tokens:
            return Prompt("".join(parts(task)), np.array(ids, np.int64), num_clipped, is_truncated=False)
        if len(self._encode(parts(""))) > self._max_tokens:
            raise ContractError(
                "prompt_limit",
                f"the prompt takes {len(self._encode(parts('')))} tokens without any task text, "
                f"and the limit is {self._max_tokens}",
                "raise the token limit, or use the checkpoint's own",
            )
        fits, too_long = 0, len(task)
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            if len(self._encode(parts(task[:middle].rstrip()))) <= self._max_tokens:
                fits = middle
            else:
                too_long = middle
        text = _whole_words(task, fits)
        ids = self._encode(parts(text))
        return Prompt("".join(parts(text)), np.array(ids, np.int64), num_clipped, is_truncated=True)

    def _encode(self, parts: tuple[str, str]) -> list[int]:
        begin = self._tokenizer.begin_id
        ids = [] if begin is None else [begin]
        for part in parts:
            ids += self._tokenizer.encode(part) if part else []
        return ids
