"""Prefill, denoising and text steps as the public path does them; one observation, a batch of texts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.reference import layers as ops
from benchmarks.reference.weights import Expert, Weights
from oxygen_ros.models.pi05.config import ExpertConfig, Pi05Config


@dataclass(frozen=True)
class PaddedInputs:
    """One observation in fixed shapes: pictures by slot, and which of them and of the tokens are there."""

    images: tuple[Tensor, ...]
    has_image: tuple[bool, ...]
    token_ids: Tensor
    token_mask: Tensor


@dataclass(frozen=True)
class Prefix:
    """What a prefill leaves: keys and values by layer [1, K, P, D], validity [1, P], last text row."""

    keys: list[Tensor]
    values: list[Tensor]
    is_valid: Tensor
    last_hidden: Tensor


@dataclass
class TextState:
    """Texts that advance together; between cycles there is one state per text.

    Attributes:
        keys, values: by layer, [B, K, P + N, D].
        is_visible: [B, P + N], prefix and written tokens.
        position: rotary position of the next token, [B].
        slot: where its keys go, [B].
        log_probs: of the next token, [B, vocab].
        tokens: written so far, [B, N]; ``count`` of them by row.
    """

    keys: list[Tensor]
    values: list[Tensor]
    is_visible: Tensor
    position: Tensor
    slot: Tensor
    log_probs: Tensor
    tokens: Tensor
    count: Tensor


class ReferencePolicy:
    """The model behind ``isolated``, ``shared`` and ``reference``."""

    def __init__(self, config: Pi05Config, weights: Weights, device: torch.device) -> None:
        self.config = config
        self.device = device
        self._weights = weights

    def prefill(self, inputs: PaddedInputs) -> Prefix:
        """Forward over all camera slots and the whole prompt buffer, one camera after another."""
        config, weights = self.config, self._weights
        images = [ops.encode_image(weights.vision, config.vision, image[None]) for image in inputs.images]
        text = F.embedding(inputs.token_ids[None], weights.embedding) * math.sqrt(config.vlm.width)
        x = torch.cat([*(image.to(text.dtype) for image in images), text], dim=1)
        per_image = config.vision.num_tokens
        flags = [flag for flag in inputs.has_image for _ in range(per_image)] + inputs.token_mask.tolist()
        is_valid = torch.tensor([flags], device=self.device)
        steps = [0] * (per_image * len(images)) + [1] * len(inputs.token_ids)
        order = torch.cumsum(torch.tensor([steps], device=self.device), dim=1)
        visible = (order[:, None, :] <= order[:, :, None]) & is_valid[:, None, :] & is_valid[:, :, None]
        mask = ops.additive(visible)
        positions = torch.cumsum(is_valid, dim=1) - 1
        cos, sin = ops.rotation(positions, config.vlm.head_dim, config.rope_theta, x.dtype)
        keys, values = [], []
        for layer in weights.layers:
            q, k, v = ops.project(layer, config.vlm, ops.rms_norm(x, layer.norm1[0]), cos, sin)
            keys.append(k)
            values.append(v)
            x = x + F.linear(ops.eager_attention(q, k, v, mask), layer.o)
            x = x + ops.gated_mlp(layer, ops.rms_norm(x, layer.norm2[0]))
        x = ops.rms_norm(x, weights.norm)
        last = per_image * len(images) + int(inputs.token_mask.sum()) - 1
        return Prefix(keys, values, is_valid, x[:, last])

    def sample_actions(self, prefix: Prefix, expert_name: str, noise: Tensor) -> Tensor:
        """Actions [horizon, action_dim]; time, conditioning, masks and joined keys are made in each step."""
        step = torch.tensor(-1.0 / self.config.num_denoise_steps, device=self.device)
        x_t, time = noise[None], torch.tensor(1.0, device=self.device)
        while time >= -step / 2:
            x_t = x_t + step * self._velocity(prefix, expert_name, x_t, time)
            time = time + step
        return x_t[0]

    def _velocity(self, prefix: Prefix, expert_name: str, x_t: Tensor, time: Tensor) -> Tensor:
        expert, weights = self.config.expert(expert_name), self._weights.experts[expert_name]
        dtypes = self.config.dtypes
        x = F.linear(x_t.to(dtypes.action), *weights.action_in).to(dtypes.model)
        cond = self._condition(expert, weights, time)
        mask, positions = self._suffix_mask(prefix, expert.horizon)
        cos, sin = ops.rotation(positions, expert.size.head_dim, self.config.expert_rope_theta, x.dtype)
        for index, layer in enumerate(weights.layers):
            normed, gate = ops.adaptive_norm(x, layer.norm1, cond)
            q, k, v = ops.project(layer, expert.size, normed, cos, sin)
            k = torch.cat([prefix.keys[index], k], dim=2)
            v = torch.cat([prefix.values[index], v], dim=2)
            x = x + gate * F.linear(ops.eager_attention(q, k, v, mask), layer.o)
            normed, gate = ops.adaptive_norm(x, layer.norm2, cond)
            x = x + gate * ops.gated_mlp(layer, normed)
        x, _ = ops.adaptive_norm(x, weights.norm, cond)
        return F.linear(x.to(dtypes.action), *weights.action_out).float()

    def _condition(self, expert: ExpertConfig, weights: Expert, time: Tensor) -> Tensor:
        low, high = self.config.min_period, self.config.max_period
        fraction = torch.linspace(0.0, 1.0, expert.size.width // 2, dtype=torch.float64, device=self.device)
        angles = time.double() * 2 * math.pi / (low * (high / low) ** fraction)
        embedding = torch.cat([angles.sin(), angles.cos()])[None].to(self.config.dtypes.action)
        hidden = F.silu(F.linear(embedding, *weights.time_in))
        return F.silu(F.linear(hidden, *weights.time_out)).float()

    def _suffix_mask(self, prefix: Prefix, horizon: int) -> tuple[Tensor, Tensor]:
        order = torch.cumsum(torch.tensor([[1] + [0] * (horizon - 1)], device=self.device), dim=1)
        among = order[:, None, :] <= order[:, :, None]
        to_prefix = prefix.is_valid[:, None, :].expand(1, horizon, -1)
        start = prefix.is_valid.sum(dim=1, keepdim=True)
        return ops.additive(torch.cat([to_prefix, among], dim=2)), start + torch.arange(
            horizon, device=self.device
        )

    def begin_text(self, prefix: Prefix, max_tokens: int) -> TextState:
        """A text with a cache of its own: the padded prefix is copied into it, with room for its tokens."""
        num_prefix = prefix.is_valid.shape[1]
        room = (0, 0, 0, max_tokens)
        is_visible = F.pad(prefix.is_valid, (0, max_tokens))
        return TextState(
            keys=[F.pad(k, room) for k in prefix.keys],
            values=[F.pad(v, room) for v in prefix.values],
            is_visible=is_visible,
            position=prefix.is_valid.sum(dim=1),
            slot=torch.full((1,), num_prefix, device=self.device),
            log_probs=self._log_probs(prefix.last_hidden),
            tokens=torch.zeros(1, max_tokens, dtype=torch.int64, device=self.device),
            count=torch.zeros(1, dtype=torch.int64, device=self.device),
        )

    def text_step(self, state: TextState) -> None:
        """Choose each row's likeliest token, store it, and run one forward for the next."""
        config, weights = self.config, self._weights
        rows = torch.arange(state.slot.shape[0], device=self.device)
        token = state.log_probs.argmax(dim=-1)
        state.tokens[rows, state.count] = token
        state.is_visible[rows, state.slot] = True
        mask = ops.additive(state.is_visible[:, None, :])
        x = F.embedding(token[:, None], weights.embedding) * math.sqrt(config.vlm.width)
        cos, sin = ops.rotation(state.position[:, None], config.vlm.head_dim, config.rope_theta, x.dtype)
        for index, layer in enumerate(weights.layers):
            q, k, v = ops.project(layer, config.vlm, ops.rms_norm(x, layer.norm1[0]), cos, sin)
            state.keys[index][rows, :, state.slot] = k[:, :, 0]
            state.values[index][rows, :, state.slot] = v[:, :, 0]
            attended = ops.eager_attention(q, state.keys[index], state.values[index], mask)
            x = x + F.linear(attended, layer.o)
            x = x + ops.gated_mlp(layer, ops.rms_norm(x, layer.norm2[0]))
        state.log_probs = self._log_probs(ops.rms_norm(x, weights.norm)[:, 0])
        state.position, state.slot, state.count = state.position + 1, state.slot + 1, state.count + 1

    def _log_probs(self, hidden: Tensor) -> Tensor:
        return torch.log_softmax(F.linear(hidden, self._weights.embedding).float(), dim=-1)


def stack(states: list[TextState]) -> TextState:
    """One state of many, by copying all caches together."""
    first = states[0]

    def joined(name: str) -> Tensor:
        return torch.cat([getattr(state, name) for state in states])

    return TextState(
        keys=[torch.cat([s.keys[layer] for s in states]) for layer in range(len(first.keys))],
        values=[torch.cat([s.values[layer] for s in states]) for layer in range(len(first.values))],
        **{name: joined(name) for name in ("is_visible", "position", "slot", "log_probs", "tokens", "count")},
    )


def split(state: TextState) -> list[TextState]:
    """States of the rows, each with copies of its own."""
    return [copied(_row(state, row)) for row in range(state.slot.shape[0])]


def _row(state: TextState, row: int) -> TextState:
    at = slice(row, row + 1)
    return TextState(
        [k[at] for k in state.keys],
        [v[at] for v in state.values],
        *(
            getattr(state, name)[at]
            for name in ("is_visible", "position", "slot", "log_probs", "tokens", "count")
        ),
    )


def copied(state: TextState) -> TextState:
    """The same state in memory of its own."""
    return TextState(
        [k.clone() for k in state.keys],
        [v.clone() for v in state.values],
        *(
            getattr(state, name).clone()
            for name in ("is_visible", "position", "slot", "log_probs", "tokens", "count")
        ),
    )
