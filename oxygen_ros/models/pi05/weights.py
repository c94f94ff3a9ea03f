"""Weights of a pi0.5 model as the functions read them: fused, packed, in their dtypes, nothing unused.

Built once from a checkpoint by ``build_weights``; frozen afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from oxygen_ros.models.linear import Linear, make_linear
from oxygen_ros.models.pi05 import names
from oxygen_ros.models.pi05.config import ActionHead, ExpertConfig, Pi05Config
from oxygen_ros.models.tensor_source import TensorSource


@dataclass(frozen=True)
class VisionLayer:
    """One SigLIP layer: norms as (weight, bias), q, k and v fused."""

    norm1: tuple[Tensor, Tensor]
    qkv: Linear
    out: Linear
    norm2: tuple[Tensor, Tensor]
    fc1: Linear
    fc2: Linear


@dataclass(frozen=True)
class VisionWeights:
    """SigLIP tower and projector. ``patch`` takes flattened patches; ``positions`` is [tokens, W]."""

    patch: Linear
    positions: Tensor
    layers: tuple[VisionLayer, ...]
    norm: tuple[Tensor, Tensor]
    projector: Linear


@dataclass(frozen=True)
class GemmaLayer:
    """Projections of one Gemma layer.

    Attributes:
        qkv: one fused projection; in the backbone's last layer (q, kv), since queries of most rows are
            needed nowhere there.
        norms: 1 + weight of both norms, float32; empty for an expert, whose norms are modulated.
    """

    qkv: tuple[Linear, ...]
    o: Linear
    gate_up: Linear
    down: Linear
    norms: tuple[Tensor, ...]


@dataclass(frozen=True)
class BackboneWeights:
    """The language backbone. ``norm`` is 1 + weight of the final norm, float32."""

    embedding: Tensor
    layers: tuple[GemmaLayer, ...]
    norm: Tensor
    lm_head: Linear


@dataclass(frozen=True)
class ConditioningWeights:
    """What turns a time into norm modulations. Needed once per time grid, not in a cycle.

    Attributes:
        dense: one layer per norm, in the order of use, each giving [scale, shift, gate].
    """

    time_in: Linear
    time_out: Linear
    dense: tuple[Linear, ...]


@dataclass(frozen=True)
class Pi0Weights:
    """What a pi0 head has in place of ``ConditioningWeights``.

    Attributes:
        state_in: makes the state token.
        mix_action, mix_time: the two halves of one layer over [action token, time], bias with the time.
        mix_out: closes the mixing.
        norms: 1 + weight of every norm in the order of use, float32.
    """

    state_in: Linear
    mix_action: Linear
    mix_time: Linear
    mix_out: Linear
    norms: tuple[Tensor, ...]


@dataclass(frozen=True)
class ExpertWeights:
    """What one denoise step of an action expert reads. ``pi0`` is None for pi0.5."""

    layers: tuple[GemmaLayer, ...]
    action_in: Linear
    action_out: Linear
    pi0: Pi0Weights | None = None


@dataclass(frozen=True)
class Pi05Weights:
    """All weights of one model; experts by name."""

    vision: VisionWeights
    backbone: BackboneWeights
    experts: dict[str, ExpertWeights]
    conditioning: dict[str, ConditioningWeights]


def build_weights(config: Pi05Config, source: TensorSource, device: torch.device) -> Pi05Weights:
    """Weights of ``source`` on ``device``.

    Raises:
        CheckpointError: if the source does not hold exactly the tensors of ``config``.
    """
    names.check_names(config, source.shapes())
    return _Builder(config, source, device).build()


class _Builder:
    """Reads, fuses and casts; every tensor of the source is read once."""

    def __init__(self, config: Pi05Config, source: TensorSource, device: torch.device) -> None:
        self._config = config
        self._source = source
        self._device = device
        self._stored = source.shapes()

    def build(self) -> Pi05Weights:
        config = self._config
        return Pi05Weights(
            vision=self._vision(),
            backbone=self._backbone(),
            experts={expert.name: self._expert(expert) for expert in config.experts},
            conditioning={
                expert.name: self._conditioning(expert)
                for expert in config.experts
                if expert.head is ActionHead.PI05
            },
        )

    def _tensor(self, name: str, dtype: torch.dtype) -> Tensor:
        return self._source.load(name).to(self._device, dtype)

    def _linear(self, dtype: torch.dtype, *bases: str, has_bias: bool = False) -> Linear:
        """One layer from one or more stored ones, whose outputs it gives side by side."""
        weights = [self._tensor(f"{base}.weight", dtype) for base in bases]
        biases = [self._tensor(f"{base}.bias", dtype) for base in bases] if has_bias else []
        weight = torch.cat(weights) if len(weights) > 1 else weights[0].contiguous()
        return make_linear(weight, torch.cat(biases) if biases else None)

    def _vision(self) -> VisionWeights:
        dtype = self._config.dtypes.vision
        base = f"{names.VISION}embeddings."
        patch = self._tensor(f"{base}patch_embedding.weight", torch.float32)
        patch_bias = self._tensor(f"{base}patch_embedding.bias", torch.float32)
        return VisionWeights(
            patch=make_linear(patch.flatten(1).contiguous(), patch_bias),
            positions=self._tensor(f"{base}position_embedding.weight", torch.float32),
            layers=tuple(self._vision_layer(layer) for layer in range(self._config.vision.depth)),
            norm=self._layer_norm(f"{names.VISION}post_layernorm"),
            projector=self._linear(dtype, names.PROJECTOR, has_bias=True),
        )

    def _layer_norm(self, base: str) -> tuple[Tensor, Tensor]:
        dtype = self._config.dtypes.vision
        return self._tensor(f"{base}.weight", dtype), self._tensor(f"{base}.bias", dtype)

    def _vision_layer(self, layer: int) -> VisionLayer:
        dtype = self._config.dtypes.vision
        base = f"{names.VISION}encoder.layers.{layer}."
        attention = f"{base}self_attn."
        qkv = [f"{attention}{part}_proj" for part in "qkv"]
        return VisionLayer(
            norm1=self._layer_norm(f"{base}layer_norm1"),
            qkv=self._linear(dtype, *qkv, has_bias=True),
            out=self._linear(dtype, f"{attention}out_proj", has_bias=True),
            norm2=self._layer_norm(f"{base}layer_norm2"),
            fc1=self._linear(dtype, f"{base}mlp.fc1", has_bias=True),
            fc2=self._linear(dtype, f"{base}mlp.fc2", has_bias=True),
        )

    def _gemma_layer(self, base: str, norms: tuple[Tensor, ...] = (), is_last: bool = False) -> GemmaLayer:
        dtype = self._config.dtypes.model
        q, k, v = (f"{base}self_attn.{part}_proj" for part in "qkv")
        return GemmaLayer(
            qkv=tuple(self._linear(dtype, *group) for group in ([[q], [k, v]] if is_last else [[q, k, v]])),
            o=self._linear(dtype, f"{base}self_attn.o_proj"),
            gate_up=self._linear(dtype, f"{base}mlp.gate_proj", f"{base}mlp.up_proj"),
            down=self._linear(dtype, f"{base}mlp.down_proj"),
            norms=norms,
        )

    def _backbone_layer(self, layer: int) -> GemmaLayer:
        base = f"{names.LANGUAGE}layers.{layer}."
        norms = tuple(self._one_plus(f"{base}{norm}.weight") for norm in names.NORMS)
        return self._gemma_layer(base, norms, is_last=layer == self._config.vlm.depth - 1)

    def _one_plus(self, name: str) -> Tensor:
        return self._tensor(name, torch.float32) + 1.0

    def _backbone(self) -> BackboneWeights:
        dtype = self._config.dtypes.model
        embedding_name = names.EMBEDDING if names.EMBEDDING in self._stored else names.LM_HEAD
        embedding = self._tensor(embedding_name, dtype)
        is_tied = names.EMBEDDING not in self._stored or names.LM_HEAD not in self._stored
        # First, while little is held: packing the largest layer takes several times its size for a moment.
        head = make_linear(embedding if is_tied else self._tensor(names.LM_HEAD, dtype))
        return BackboneWeights(
            embedding=embedding,
            layers=tuple(self._backbone_layer(layer) for layer in range(self._config.vlm.depth)),
            norm=self._one_plus(f"{names.LANGUAGE}norm.weight"),
            lm_head=head,
        )

    def _expert(self, expert: ExpertConfig) -> ExpertWeights:
        stack, projections = names.expert_prefixes(self._config, expert)
        dtype = self._config.dtypes.action
        return ExpertWeights(
            layers=tuple(self._gemma_layer(f"{stack}layers.{layer}.") for layer in range(expert.size.depth)),
            action_in=self._linear(dtype, f"{projections}action_in_proj", has_bias=True),
            action_out=self._linear(dtype, f"{projections}action_out_proj", has_bias=True),
            pi0=self._pi0(expert) if expert.head is ActionHead.PI0 else None,
        )

    def _pi0(self, expert: ExpertConfig) -> Pi0Weights:
        stack, projections = names.expert_prefixes(self._config, expert)
        dtype, width = self._config.dtypes.action, expert.size.width
        mixing = self._tensor(f"{projections}action_time_mlp_in.weight", dtype)
        bias = self._tensor(f"{projections}action_time_mlp_in.bias", dtype)
        return Pi0Weights(
            state_in=self._linear(dtype, f"{projections}state_proj", has_bias=True),
            mix_action=make_linear(mixing[:, :width].contiguous()),
            mix_time=make_linear(mixing[:, width:].contiguous(), bias),
            mix_out=self._linear(dtype, f"{projections}action_time_mlp_out", has_bias=True),
            norms=tuple(self._one_plus(f"{stack}{norm}.weight") for norm in _expert_norms(expert)),
        )

    def _conditioning(self, expert: ExpertConfig) -> ConditioningWeights:
        stack, projections = names.expert_prefixes(self._config, expert)
        dtype, norms = self._config.dtypes.action, _expert_norms(expert)
        return ConditioningWeights(
            time_in=self._linear(dtype, f"{projections}time_mlp_in", has_bias=True),
            time_out=self._linear(dtype, f"{projections}time_mlp_out", has_bias=True),
            dense=tuple(self._linear(torch.float32, f"{stack}{norm}.dense", has_bias=True) for norm in norms),
        )


def _expert_norms(expert: ExpertConfig) -> list[str]:
    layers = [f"layers.{layer}.{norm}" for layer in range(expert.size.depth) for norm in names.NORMS]
    return [*layers, "norm"]


def linears(weights: Any) -> Iterator[Linear]:
    """All linear layers inside a tree of dataclasses, tuples and dicts."""
    if hasattr(weights, "kernel"):
        yield weights
    elif is_dataclass(weights):
        for entry in fields(weights):
            yield from linears(getattr(weights, entry.name))
    elif isinstance(weights, dict):
        yield from linears(tuple(weights.values()))
    elif isinstance(weights, tuple):
        for item in weights:
            yield from linears(item)
