"""One loaded pi0.5 model: weights, tables and the functions that runners call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.kv.memory import KVMemory, PrefixKV
from oxygen_ros.models.family import PrefixInputs, PrefixState, TensorGuidance
from oxygen_ros.models.flow_matching import guided, integrate, step_times
from oxygen_ros.models.pi05 import backbone
from oxygen_ros.models.pi05.config import ExpertConfig, Pi05Config
from oxygen_ros.models.pi05.expert import denoise_step, modulations
from oxygen_ros.models.pi05.pi0 import plain_modulations, time_rows, write_state_token
from oxygen_ros.models.pi05.vision import encode_images
from oxygen_ros.models.pi05.weights import Pi05Weights, build_weights, linears
from oxygen_ros.models.protocol import ExpertSpec, ModelSpec
from oxygen_ros.models.rope import RopeTable, make_rope_table
from oxygen_ros.models.tensor_source import TensorSource
from oxygen_ros.models.text_batch import TextBatch

MAX_ROW_TOKENS = 8192
"""Positions beyond the longest prefix that the rotary table covers: the most that kv.row_capacity may be."""


class Pi05Model:
    """Implements ``models.family.VLAModel``. Modulation tables replace the weights they come from."""

    def __init__(self, config: Pi05Config, weights: Pi05Weights, device: torch.device) -> None:
        self.config = config
        self.device = device
        self.dtype = config.dtypes.model
        self._vision = weights.vision
        self._backbone = weights.backbone
        self._experts = weights.experts
        self._modulations = {
            expert.name: self._modulation_table(expert, weights) for expert in config.experts
        }
        self._time_rows = {expert.name: self._time_table(expert) for expert in config.experts}
        self._rope = self._rope_table(config.rope_theta, MAX_ROW_TOKENS)
        self._expert_rope = self._rope_table(config.expert_rope_theta, config.max_suffix_tokens)
        self.kernels = _kernel_names(weights)
        self.denoise_step: Callable[..., Tensor] = denoise_step

    @staticmethod
    def from_source(config: Pi05Config, source: TensorSource, device: torch.device) -> Pi05Model:
        """Build from stored tensors.

        Raises:
            CheckpointError: if they are not exactly those of ``config``.
        """
        return Pi05Model(config, build_weights(config, source, device), device)

    def _modulation_table(self, expert: ExpertConfig, weights: Pi05Weights) -> Tensor:
        pi0 = weights.experts[expert.name].pi0
        if pi0 is not None:
            return plain_modulations(pi0, self.config.num_denoise_steps)
        conditioning = weights.conditioning[expert.name]
        return modulations(conditioning, self.config, expert.size.width, self._times())

    def _time_table(self, expert: ExpertConfig) -> Sequence[Tensor | None]:
        """Row per denoise step that a pi0 head adds to its action tokens; None for pi0.5."""
        pi0 = self._experts[expert.name].pi0
        if pi0 is None:
            return [None] * self.config.num_denoise_steps
        return time_rows(pi0, self.config, expert.size.width, self._times()).unbind(0)

    def _times(self) -> Tensor:
        times = step_times(self.config.num_denoise_steps, self.config.time_grid)
        return torch.from_numpy(times).to(self.device)

    def _rope_table(self, theta: float, num_beyond_prefix: int) -> RopeTable:
        num_positions = self.config.max_prefix_tokens + num_beyond_prefix
        head_dim, rounding = self.config.vlm.head_dim, self.config.rope_frequency_dtype
        return make_rope_table(num_positions, head_dim, theta, self.dtype, self.device, rounding)

    @property
    def spec(self) -> ModelSpec:
        """Facts for engine and runner."""
        return ModelSpec(
            family="pi0" if self.config.takes_state else "pi05",
            experts=tuple(ExpertSpec(e.name, e.horizon, e.action_dim) for e in self.config.experts),
            max_prefix_tokens=self.config.max_prefix_tokens,
            vocab_size=self.config.vocab_size,
            stop_token_ids=self.config.stop_token_ids,
        )

    @property
    def heads_per_kv(self) -> int:
        """Query heads of the backbone per KV head."""
        return self.config.vlm.num_heads // self.config.vlm.num_kv_heads

    @property
    def hidden_width(self) -> int:
        """Width of the backbone."""
        return self.config.vlm.width

    @property
    def image_size(self) -> int:
        """Side of its square images."""
        return self.config.vision.image_size

    @property
    def max_images(self) -> int:
        """Camera slots."""
        return len(self.config.cameras)

    @property
    def max_prompt_tokens(self) -> int:
        """Longest prompt."""
        return self.config.max_token_len

    @property
    def state_dim(self) -> int:
        """Width of the state of a pi0 head; 0 for pi0.5."""
        return max(expert.state_dim for expert in self.config.experts)

    def num_prefix_tokens(self, num_images: int, num_prompt_tokens: int) -> int:
        """Tokens of a prefix with so many images and prompt tokens."""
        return num_images * self.config.vision.num_tokens + num_prompt_tokens

    def kv_layout(self, num_prefixes: int, num_rows: int, row_capacity: int) -> KVLayout:
        """Layout whose slots hold the longest prefix and the longest action suffix."""
        return self.config.kv_layout(num_prefixes, num_rows, row_capacity)

    def embed_prefix(self, inputs: PrefixInputs) -> Tensor:
        """Prefix tokens [T, W]: images in slot order, then the prompt."""
        text = backbone.embed_tokens(self._backbone, inputs.token_ids)
        if inputs.images.shape[0] == 0:
            return text
        images = encode_images(self._vision, self.config.vision, inputs.images)
        return torch.cat([images.to(text.dtype), text])

    def prefill_rows(self, inputs: PrefixInputs, kv: PrefixKV, is_every_row_wanted: bool) -> Tensor:
        """Write the KV of ``inputs``; hidden rows after the final norm, the last one or all."""
        x = self.embed_prefix(inputs)
        num_image_tokens = self.num_prefix_tokens(inputs.images.shape[0], 0)
        rope = self._rope.rows(0, x.shape[0])
        return backbone.prefill(
            self._backbone, self.config, x, num_image_tokens, rope, kv, is_every_row_wanted
        )

    def prefill(self, inputs: PrefixInputs, kv: PrefixKV) -> PrefixState:
        """Write the KV of ``inputs`` into ``kv`` from token 0 on."""
        hidden = self.prefill_rows(inputs, kv, is_every_row_wanted=False)
        num_tokens = self.num_prefix_tokens(inputs.images.shape[0], inputs.token_ids.shape[0])
        return PrefixState(num_tokens, num_tokens, hidden[0], action_context=inputs.state)

    def velocity(
        self,
        expert: str,
        x_t: Tensor,
        modulation: Tensor,
        kv: PrefixKV,
        num_tokens: int,
        time_row: Tensor | None = None,
    ) -> Tensor:
        """Velocity of ``expert`` at ``x_t`` [H, action_dim] under one step's modulation [norms, 3, W].

        A pi0 expert also needs the step's ``time_row``, and its state token behind the prefix.
        """
        config = self.config.expert(expert)
        start = num_tokens + config.num_state_tokens
        rope = self._expert_rope.rows(start, start + config.horizon)
        weights = self._experts[expert]
        return self.denoise_step(weights, self.config, config, x_t, modulation, rope, kv, start, time_row)

    def step_velocity(self, expert: str, x_t: Tensor, step: int, kv: PrefixKV, num_tokens: int) -> Tensor:
        """Velocity of ``expert`` at ``x_t`` in denoise step ``step`` of the model's own grid."""
        modulation, time_row = self._modulations[expert][step], self._time_rows[expert][step]
        return self.velocity(expert, x_t, modulation, kv, num_tokens, time_row)

    def write_state(self, expert: str, state: Tensor, kv: PrefixKV, num_tokens: int) -> None:
        """Write the state token of a pi0 expert behind the prefix; nothing for pi0.5."""
        weights = self._experts[expert]
        if weights.pi0 is None:
            return
        config, rope = self.config.expert(expert), self._expert_rope.rows(num_tokens, num_tokens + 1)
        modulation = self._modulations[expert][0]
        write_state_token(weights, weights.pi0, self.config, config, state, modulation, rope, kv, num_tokens)

    def sample_actions(
        self,
        expert: str,
        state: PrefixState,
        kv: PrefixKV,
        noise: Tensor,
        guidance: TensorGuidance | None = None,
    ) -> Tensor:
        """Actions float32 [horizon, action_dim] from ``noise``; valid prefix tokens are not changed."""
        self.write_state(expert, state.action_context, kv, state.num_tokens)

        def velocity(x_t: Tensor, step: int) -> Tensor:
            return self.step_velocity(expert, x_t, step, kv, state.num_tokens)

        num_steps = self.config.num_denoise_steps
        if guidance is None:
            return integrate(noise, num_steps, velocity)
        times = step_times(num_steps, self.config.time_grid)
        pulled = guided(velocity, times, guidance.previous, guidance.weights, guidance.max_gain)
        return integrate(noise, num_steps, pulled)

    def text_step(self, token_ids: Tensor, batch: TextBatch, memory: KVMemory) -> Tensor:
        """Append the batch's tokens to their rows; hidden rows [num_segments, W] of the last ones."""
        rope = self._rope.at(batch.positions)
        return backbone.text_step(self._backbone, self.config, token_ids, batch, rope, memory)

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token, [num_rows, vocab_size]."""
        return self._backbone.lm_head(hidden)


def _kernel_names(weights: Pi05Weights) -> str:
    """Linear kernels in use, the most parameters first, for logs and reports."""
    parameters: Counter[str] = Counter()
    for linear in linears(weights):
        parameters[linear.kernel] += linear.num_parameters
    return ", ".join(name for name, _ in parameters.most_common())
