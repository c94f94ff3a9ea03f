"""Tiny random pi0.5 models for tests, their inputs, and a naive twin of the language backbone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from oxygen_ros.models.pi05.config import AttentionMode, ExpertConfig, GemmaSize, Pi05Config, VisionSize
from oxygen_ros.models.pi05.model import Pi05Model
from oxygen_ros.models.pi05.names import LANGUAGE, LM_HEAD
from oxygen_ros.models.pi05.random_weights import random_state
from oxygen_ros.models.pi05.vision import encode_images
from oxygen_ros.models.pi05.weights import build_weights
from oxygen_ros.models.protocol import ModelInputs
from oxygen_ros.models.tensor_source import DictSource

CPU = torch.device("cpu")
VLM = GemmaSize(width=32, depth=2, mlp_dim=48, num_heads=4, num_kv_heads=1, head_dim=8)
EXPERT = ExpertConfig("default", GemmaSize(16, 2, 32, 4, 1, 8), horizon=5, action_dim=6)


def config(**changes: Any) -> Pi05Config:
    """Two layers, four image tokens per camera, 64 tokens."""
    facts: dict[str, Any] = {
        "vlm": VLM,
        "vision": VisionSize(24, 1, 2, 32, 28, 14),
        "experts": (EXPERT,),
        "vocab_size": 64,
        "max_token_len": 24,
        "num_denoise_steps": 4,
    }
    return Pi05Config(**{**facts, **changes})


def with_kv_heads(num_kv_heads: int, **changes: Any) -> Pi05Config:
    expert = replace(EXPERT, size=replace(EXPERT.size, num_kv_heads=num_kv_heads))
    return config(vlm=replace(VLM, num_kv_heads=num_kv_heads), experts=(expert,), **changes)


def model(settings: Pi05Config | None = None, seed: int = 0, **tensors: Tensor) -> Pi05Model:
    """Random model; ``tensors`` replace single weights by name."""
    settings = settings or config()
    return Pi05Model.from_source(settings, DictSource(random_state(settings, seed) | tensors), CPU)


def inputs(number: int = 1, num_tokens: int = 7, num_images: int = 2, **changes: Any) -> ModelInputs:
    """Inputs of the default sizes that depend on ``number``."""
    rng = np.random.default_rng(number)
    images = rng.uniform(-1, 1, (num_images, 3, 28, 28)).astype(np.float32)
    facts: dict[str, Any] = {
        "observation_id": number,
        "images": images,
        "token_ids": rng.integers(3, 64, num_tokens),
    }
    return ModelInputs(**{**facts, **changes})


class NaiveBackbone:
    """The language backbone written out: no cache, no fusion, every head's keys repeated, one full mask."""

    def __init__(self, settings: Pi05Config, seed: int = 0) -> None:
        self.config = settings
        self.state = random_state(settings, seed)
        self.vision = build_weights(settings, DictSource(self.state), CPU).vision

    def hidden(self, observation: ModelInputs, suffix: list[int]) -> Tensor:
        """Hidden rows after the final norm of prefix and ``suffix``, which is causal."""
        images = encode_images(self.vision, self.config.vision, torch.from_numpy(observation.images))
        ids = torch.tensor([*observation.token_ids.tolist(), *suffix])
        text = self.state[LM_HEAD][ids] * self.config.vlm.width**0.5
        mask = self._mask(len(images), len(observation.token_ids), len(suffix))
        x = torch.cat([images, text])
        for layer in range(self.config.vlm.depth):
            x = self._layer(x, f"{LANGUAGE}layers.{layer}.", mask)
        return self._norm(x, f"{LANGUAGE}norm.weight")

    def greedy(self, observation: ModelInputs, suffix: list[int], count: int) -> list[int]:
        """Greedy tokens after ``suffix``, each by a full pass over everything."""
        written: list[int] = []
        for _ in range(count):
            logits = self.hidden(observation, suffix + written)[-1] @ self.state[LM_HEAD].T
            written.append(int(logits.argmax()))
        return written

    def _mask(self, num_images: int, num_prompt: int, num_suffix: int) -> Tensor:
        step = 1 if self.config.attention is AttentionMode.CAUSAL_TEXT else 0
        order = torch.tensor([0] * num_images + [step] * num_prompt + [1] * num_suffix).cumsum(0)
        return order[None, :] <= order[:, None]

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], 1.0 + self.state[name], self.config.rms_norm_eps)

    def _layer(self, x: Tensor, base: str, mask: Tensor) -> Tensor:
        size, tensors = self.config.vlm, self.state
        h = self._norm(x, f"{base}input_layernorm.weight")
        q, k, v = (
            (h @ tensors[f"{base}self_attn.{part}_proj.weight"].T).view(len(x), -1, size.head_dim)
            for part in "qkv"
        )
        repeats = size.num_heads // size.num_kv_heads
        k = self._rotate(k).repeat_interleave(repeats, dim=1)
        scores = torch.einsum("qhd,khd->hqk", self._rotate(q), k) / size.head_dim**0.5
        weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
        out = torch.einsum("hqk,khd->qhd", weights, v.repeat_interleave(repeats, dim=1)).flatten(1)
        x = x + out @ tensors[f"{base}self_attn.o_proj.weight"].T
        h = self._norm(x, f"{base}post_attention_layernorm.weight")
        gate, up = (h @ tensors[f"{base}mlp.{part}_proj.weight"].T for part in ("gate", "up"))
        return x + (F.gelu(gate, approximate="tanh") * up) @ tensors[f"{base}mlp.down_proj.weight"].T

    def _rotate(self, x: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        frequencies = self.config.rope_theta ** (-torch.arange(half) / half)
        angles = (torch.arange(len(x))[:, None] * frequencies)[:, None]
        pairs = torch.complex(x[..., :half].contiguous(), x[..., half:].contiguous())
        turned = pairs * torch.polar(torch.ones_like(angles), angles)
        return torch.cat([turned.real, turned.imag], dim=-1)
