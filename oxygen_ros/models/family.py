"""What a model family gives to runners: functions over tensors on the device.

The functions have fixed shapes for fixed counts, write into the KV memory they are given, and read no
tensor value on the host, so that the same code runs eagerly, is captured, compiled or exported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.kv.memory import KVMemory, PrefixKV
from oxygen_ros.models.protocol import ModelSpec
from oxygen_ros.models.text_batch import TextBatch


@dataclass(frozen=True)
class PrefixInputs:
    """``ModelInputs`` on the device: images [cameras, 3, S, S], token_ids [T], state [D] or None."""

    images: Tensor
    token_ids: Tensor
    state: Tensor | None = None


@dataclass(frozen=True)
class PrefixState:
    """What one prefill made, beside the KV it wrote.

    Attributes:
        num_tokens: valid tokens in the slot.
        next_position: rotary position of the first token that follows.
        last_hidden: last text row after the final norm, [W]; the first token of a text comes from it.
        action_context: what the family's action experts read beside the slot; nobody else looks inside.
    """

    num_tokens: int
    next_position: int
    last_hidden: Tensor
    action_context: Any = None


@dataclass(frozen=True)
class TensorGuidance:
    """``Guidance`` on the device: previous [horizon, action_dim], weights [horizon, 1]."""

    previous: Tensor
    weights: Tensor
    max_gain: float


class VLAModel(Protocol):
    """One loaded model. All methods run without gradients on one device.

    Attributes:
        denoise_step: pure function that ``sample_actions`` calls once per step; a runner may put another in
            its place.
    """

    denoise_step: Callable[..., Tensor]

    @property
    def spec(self) -> ModelSpec:
        """Facts for engine and runner."""
        ...

    @property
    def device(self) -> torch.device:
        """Where weights lie and functions run."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of activations and KV."""
        ...

    @property
    def heads_per_kv(self) -> int:
        """Query heads of the backbone that share one KV head."""
        ...

    @property
    def hidden_width(self) -> int:
        """Width of the backbone's hidden rows."""
        ...

    @property
    def image_size(self) -> int:
        """Side of the square images it takes."""
        ...

    @property
    def max_images(self) -> int:
        """Most images of one observation."""
        ...

    @property
    def max_prompt_tokens(self) -> int:
        """Most prompt tokens of one observation."""
        ...

    @property
    def state_dim(self) -> int:
        """Width of the state that it takes as numbers; 0 where the state is part of the prompt."""
        ...

    @property
    def kernels(self) -> str:
        """Which kernels the linear layers use, for people."""
        ...

    def num_prefix_tokens(self, num_images: int, num_prompt_tokens: int) -> int:
        """Tokens of a prefix with so many images and prompt tokens."""
        ...

    def kv_layout(self, num_prefixes: int, num_rows: int, row_capacity: int) -> KVLayout:
        """Layout whose slots hold the longest prefix and what action sampling needs behind it."""
        ...

    def prefill(self, inputs: PrefixInputs, kv: PrefixKV) -> PrefixState:
        """Write the KV of ``inputs`` into ``kv`` from token 0 on."""
        ...

    def sample_actions(
        self,
        expert: str,
        state: PrefixState,
        kv: PrefixKV,
        noise: Tensor,
        guidance: TensorGuidance | None = None,
    ) -> Tensor:
        """Actions float32 [horizon, action_dim] from ``noise`` of that shape; the prefix is not changed."""
        ...

    def text_step(self, token_ids: Tensor, batch: TextBatch, memory: KVMemory) -> Tensor:
        """Append the batch's tokens [N] to their rows; hidden rows [num_segments, W] of the last ones."""
        ...

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token, [num_rows, vocab_size]."""
        ...
