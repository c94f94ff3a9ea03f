"""The whole differentiable pi0.5: prefix, texts on the prefix, flow velocities on the prefix."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from oxygen_ros.training.dims import Dims
from oxygen_ros.training.network import AdaRMSNorm, Backbone, Expert, KeysValues, sinusoid
from oxygen_ros.training.vision import Projector, VisionTower, stack_cameras
from oxygen_ros.training.vocabulary import FIRST_NUMBER_ID, NUM_STATE_BINS


@dataclass(frozen=True)
class Prefix:
    """What one pass over the prefix gives.

    Attributes:
        keys_values: per layer, [B, 1, P, D] each.
        image_tokens: the projector's output [B, image tokens, W].
        late: hidden states before the last layer [B, P, W]; what the last layer's keys are made from.
        final: hidden states after the last layer, before the norm [B, P, W].
    """

    keys_values: list[KeysValues]
    image_tokens: Tensor
    late: Tensor
    final: Tensor

    @property
    def length(self) -> int:
        """Number of prefix tokens."""
        return self.late.shape[1]


class _PaliGemmaModel(nn.Module):
    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.vision_tower = VisionTower(dims)
        self.multi_modal_projector = Projector(dims)
        self.language_model = Backbone(dims)


class _PaliGemma(nn.Module):
    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.model = _PaliGemmaModel(dims)


class _GemmaExpert(nn.Module):
    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.model = Expert(dims)


class _PaliGemmaWithExpert(nn.Module):
    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.paligemma = _PaliGemma(dims)
        self.gemma_expert = _GemmaExpert(dims)


class TinyPi05(nn.Module):
    """pi0.5 with openpi's state-dict names; language head and embeddings are one tensor."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.dims = dims
        self.paligemma_with_expert = _PaliGemmaWithExpert(dims)
        self.action_in_proj = nn.Linear(dims.action_dim, dims.expert_width)
        self.action_out_proj = nn.Linear(dims.expert_width, dims.action_dim)
        self.time_mlp_in = nn.Linear(dims.expert_width, dims.expert_width)
        self.time_mlp_out = nn.Linear(dims.expert_width, dims.expert_width)
        self._initialise()

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for module in self.modules():
            if isinstance(module, AdaRMSNorm):
                module.reset()
        nn.init.normal_(self.action_out_proj.weight, std=0.02)
        embed = self.backbone.embed_tokens.weight
        nn.init.normal_(embed, std=0.05)
        with torch.no_grad():
            embed[FIRST_NUMBER_ID : FIRST_NUMBER_ID + NUM_STATE_BINS] = _number_embeddings(embed.shape[1])

    @property
    def backbone(self) -> Backbone:
        """The language model."""
        return self.paligemma_with_expert.paligemma.model.language_model

    @property
    def expert(self) -> Expert:
        """The action expert."""
        return self.paligemma_with_expert.gemma_expert.model

    def encode_images(self, images: Tensor) -> Tensor:
        """Image tokens [B, cameras * T, W] of ``images`` [B, cameras, 3, S, S]."""
        model = self.paligemma_with_expert.paligemma.model
        tokens = model.vision_tower.vision_model(images.flatten(0, 1))
        return stack_cameras(model.multi_modal_projector(tokens), images.shape[1])

    def prefill(self, images: Tensor, token_ids: Tensor) -> Prefix:
        """The prefix of ``images`` [B, cameras, 3, S, S] and prompt ``token_ids`` [B, N]; all see all."""
        image_tokens = self.encode_images(images)
        x = torch.cat([image_tokens, self._embed(token_ids)], dim=1)
        positions = torch.arange(x.shape[1])
        keys_values, late = [], x
        for layer in self.backbone.layers:
            late = x
            x, own = layer(x, positions)
            keys_values.append(own)
        return Prefix(keys_values, image_tokens, late, x)

    def text_hidden(self, prefix: Prefix, rows: Tensor, token_ids: Tensor) -> Tensor:
        """Last hidden states [R, L, W] of texts ``token_ids`` [R, L], each on prefix ``rows`` [R]."""
        length = token_ids.shape[1]
        x = self._embed(token_ids)
        positions = prefix.length + torch.arange(length)
        mask = torch.ones(length, prefix.length + length, dtype=torch.bool).tril(prefix.length)
        for layer, (keys, values) in zip(self.backbone.layers, prefix.keys_values, strict=True):
            x, _ = layer(x, positions, (keys[rows], values[rows]), mask)
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        """Next-token logits [..., vocabulary] of last hidden states [..., W]."""
        return functional.linear(self.backbone.norm(hidden), self.backbone.embed_tokens.weight)

    def velocity(self, prefix: Prefix, noisy: Tensor, time: Tensor) -> Tensor:
        """Flow velocity [B, F, H, A] of ``noisy`` [B, F, H, A] at ``time`` [B, F]."""
        dims = self.dims
        condition = sinusoid(time, dims.expert_width, dims.min_period, dims.max_period)
        condition = functional.silu(self.time_mlp_out(functional.silu(self.time_mlp_in(condition))))
        samples, horizon = noisy.shape[1:3]
        positions = (prefix.length + torch.arange(horizon)).repeat(samples)
        chunk = torch.arange(samples).repeat_interleave(horizon)
        block = chunk[:, None] == chunk
        mask = torch.cat([torch.ones(samples * horizon, prefix.length, dtype=torch.bool), block], dim=1)
        x = self.action_in_proj(noisy)
        for layer, keys_values in zip(self.expert.layers, prefix.keys_values, strict=True):
            x = layer(x, condition, positions, keys_values, mask)
        x, _ = self.expert.norm(x, condition)
        out: Tensor = self.action_out_proj(x)
        return out

    @torch.no_grad()
    def sample_actions(self, prefix: Prefix, noise: Tensor, num_steps: int = 10) -> Tensor:
        """Actions [B, H, A] by Euler steps from ``noise`` [B, H, A] at t = 1."""
        x, time, dt = noise[:, None], torch.ones(noise.shape[0], 1), -1.0 / num_steps
        for _ in range(num_steps):
            x = x + dt * self.velocity(prefix, x, time)
            time = time + dt
        return x[:, 0]

    @torch.no_grad()
    def greedy_text(
        self, prefix: Prefix, rows: Tensor, prompt: Tensor, max_tokens: int, eos_id: int
    ) -> Tensor:
        """Greedy continuation [R, <= max_tokens] of ``prompt`` [R, L]; zeros after the end token."""
        ids, is_open = prompt, torch.ones(len(prompt), dtype=torch.bool)
        for _ in range(max_tokens):
            chosen = self.logits(self.text_hidden(prefix, rows, ids)[:, -1]).argmax(-1) * is_open
            ids = torch.cat([ids, chosen[:, None]], dim=1)
            is_open = is_open & (chosen != eos_id)
            if not is_open.any():
                break
        return ids[:, prompt.shape[1] :]

    def _embed(self, token_ids: Tensor) -> Tensor:
        embedded: Tensor = self.backbone.embed_tokens(token_ids)
        return embedded * math.sqrt(self.dims.width)


def _number_embeddings(width: int) -> Tensor:
    """Smooth codes of the state bins, so that near values start with near embeddings."""
    value = torch.arange(NUM_STATE_BINS, dtype=torch.float32)[:, None] / NUM_STATE_BINS
    frequency = 0.25 * 2.0 ** torch.linspace(0, 6, width // 2)
    angle = 2 * math.pi * value * frequency
    return 0.05 * math.sqrt(2.0) * torch.cat([angle.sin(), angle.cos()], dim=1)
