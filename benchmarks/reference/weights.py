"""Weights as the public code keeps them: one tensor per stored name, nothing fused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from oxygen_ros.models.pi05.config import ExpertConfig, Pi05Config
from oxygen_ros.models.pi05.names import EMBEDDING, LANGUAGE, PROJECTOR, VISION, expert_prefixes

Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class VisionLayer:
    """One SigLIP layer; every entry is (weight, bias)."""

    norm1: Pair
    q: Pair
    k: Pair
    v: Pair
    out: Pair
    norm2: Pair
    fc1: Pair
    fc2: Pair


@dataclass(frozen=True)
class GemmaLayer:
    """One Gemma layer. Norms are weights for the backbone, and (weight, bias) of ``dense`` for an expert."""

    q: Tensor
    k: Tensor
    v: Tensor
    o: Tensor
    gate: Tensor
    up: Tensor
    down: Tensor
    norm1: Pair
    norm2: Pair


@dataclass(frozen=True)
class Vision:
    """SigLIP tower and projector."""

    patch: Pair
    positions: Tensor
    layers: tuple[VisionLayer, ...]
    norm: Pair
    projector: Pair


@dataclass(frozen=True)
class Expert:
    """One action expert."""

    layers: tuple[GemmaLayer, ...]
    norm: Pair
    action_in: Pair
    action_out: Pair
    time_in: Pair
    time_out: Pair


@dataclass(frozen=True)
class Weights:
    """All weights."""

    vision: Vision
    embedding: Tensor
    layers: tuple[GemmaLayer, ...]
    norm: Tensor
    experts: dict[str, Expert]


class WeightLoader:
    """Reads a state dict into the dtypes that openpi uses."""

    def __init__(self, config: Pi05Config, tensors: Mapping[str, Tensor]) -> None:
        self._config = config
        self._tensors = tensors

    def load(self) -> Weights:
        """All weights; float32 tensors are shared with the state dict, not copied."""
        config, model = self._config, self._config.dtypes.model
        return Weights(
            vision=self._vision(),
            embedding=self._tensors[EMBEDDING].to(model),
            layers=self._layers(LANGUAGE, config.vlm.depth, is_expert=False),
            norm=self._tensors[f"{LANGUAGE}norm.weight"].float(),
            experts={expert.name: self._expert(expert) for expert in config.experts},
        )

    def _pair(self, name: str, dtype: torch.dtype) -> Pair:
        return self._tensors[f"{name}.weight"].to(dtype), self._tensors[f"{name}.bias"].to(dtype)

    def _vision(self) -> Vision:
        dtype = self._config.dtypes.vision
        layers = []
        for index in range(self._config.vision.depth):
            base = f"{VISION}encoder.layers.{index}."
            names = ("layer_norm1", *(f"self_attn.{p}_proj" for p in ("q", "k", "v", "out")))
            parts = (*names, "layer_norm2", "mlp.fc1", "mlp.fc2")
            layers.append(VisionLayer(*(self._pair(f"{base}{part}", dtype) for part in parts)))
        return Vision(
            patch=self._pair(f"{VISION}embeddings.patch_embedding", torch.float32),
            positions=self._tensors[f"{VISION}embeddings.position_embedding.weight"].float(),
            layers=tuple(layers),
            norm=self._pair(f"{VISION}post_layernorm", dtype),
            projector=self._pair(PROJECTOR, dtype),
        )

    def _layers(self, prefix: str, depth: int, is_expert: bool) -> tuple[GemmaLayer, ...]:
        dtype = self._config.dtypes.model
        parts = [f"self_attn.{p}_proj" for p in "qkvo"] + [f"mlp.{p}_proj" for p in ("gate", "up", "down")]
        layers = []
        for index in range(depth):
            base = f"{prefix}layers.{index}."
            matrices = (self._tensors[f"{base}{part}.weight"].to(dtype) for part in parts)
            names = (f"{base}input_layernorm", f"{base}post_attention_layernorm")
            norms = (self._norm(name, is_expert) for name in names)
            q, k, v, o, gate, up, down = matrices
            norm1, norm2 = norms
            layers.append(GemmaLayer(q, k, v, o, gate, up, down, norm1, norm2))
        return tuple(layers)

    def _norm(self, name: str, is_expert: bool) -> Pair:
        if is_expert:
            return self._pair(f"{name}.dense", torch.float32)
        weight = self._tensors[f"{name}.weight"].float()
        return weight, weight

    def _expert(self, expert: ExpertConfig) -> Expert:
        stack, heads = expert_prefixes(self._config, expert)
        dtype = self._config.dtypes.action
        return Expert(
            layers=self._layers(stack, expert.size.depth, is_expert=True),
            norm=self._norm(f"{stack}norm", is_expert=True),
            action_in=self._pair(f"{heads}action_in_proj", dtype),
            action_out=self._pair(f"{heads}action_out_proj", dtype),
            time_in=self._pair(f"{heads}time_mlp_in", dtype),
            time_out=self._pair(f"{heads}time_mlp_out", dtype),
        )
