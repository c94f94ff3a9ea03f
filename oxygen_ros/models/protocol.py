"""What a model family tells the rest: its spec, and the inputs it takes. No torch here.

The engine, the fake runner and the tests work from the spec alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.types import FloatArray, Observation

TokenArray = NDArray[np.int64]


@dataclass(frozen=True)
class ExpertSpec:
    """One action expert. All experts of a model read the same prefix; each gives its own chunk."""

    name: str
    horizon: int
    action_dim: int


@dataclass(frozen=True)
class ModelSpec:
    """Facts of one model that the engine has to know.

    Attributes:
        experts: at least one; the first is the default.
        max_prefix_tokens: longest prefix the processor can make.
        vocab_size: token ids are 0 .. vocab_size - 1.
        stop_token_ids: union of what model and tokenizer name as end of text.
        supports_text: False for a checkpoint without a language head.
    """

    family: str
    experts: tuple[ExpertSpec, ...]
    max_prefix_tokens: int
    vocab_size: int
    stop_token_ids: frozenset[int]
    supports_text: bool = True


@dataclass(frozen=True)
class ModelInputs:
    """One observation as the model takes it, on the CPU. Valid tokens only: nothing is padded.

    Attributes:
        observation_id: of the observation it was made from.
        images: float32 [num_cameras, 3, S, S] in [-1, 1], the cameras that are there, in slot order.
        token_ids: int64 [num_tokens], the prompt.
        state: float32 [state_dim] in model space, padded; for families with a continuous state token.
    """

    observation_id: int
    images: FloatArray
    token_ids: TokenArray
    state: FloatArray | None = None


@dataclass(frozen=True)
class Guidance:
    """Pulls a chunk, while it is denoised, towards what is still to be played of the chunk before.

    Attributes:
        previous: float32 [horizon, action_dim] in model space; row 0 is the next action to be played.
        weights: float32 [horizon], how much each row is pulled: 1 fully, 0 not at all.
        max_gain: largest gain of the pull, reached where the flow begins.
    """

    previous: FloatArray
    weights: FloatArray
    max_gain: float


class Tokenizer(Protocol):
    """Text to ids and back. Ids of pieces that are no text (control, unused) are known by name."""

    @property
    def vocab_size(self) -> int:
        """Number of ids."""
        ...

    def encode(self, text: str) -> list[int]:
        """Ids of ``text`` without any begin or end token."""
        ...

    def decode(self, token_ids: list[int]) -> str:
        """Text of ``token_ids``; control tokens give nothing; a cut character gives U+FFFD."""
        ...

    def is_special(self, token_id: int) -> bool:
        """True for control, unused, location and segmentation tokens: never shown to people."""
        ...


class Processor(Protocol):
    """Between the robot and the model: pure, on the CPU, one thread."""

    def prepare(self, observation: Observation) -> ModelInputs:
        """Model inputs of one observation.

        Raises:
            ContractError: if a camera is missing, a shape is wrong or the state is not finite.
        """
        ...

    def finish(self, expert: str, actions: FloatArray, observation: Observation) -> FloatArray:
        """Actions of ``expert`` in the robot's units and joint order.

        Args:
            actions: float32 [horizon, action_dim] in model space.
            observation: the one that ``actions`` were made from; relative actions need its state.
        """
        ...

    def joint_names(self, expert: str) -> tuple[str, ...]:
        """Column names of what ``finish`` gives."""
        ...
