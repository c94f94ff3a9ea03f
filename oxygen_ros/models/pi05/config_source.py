"""Makes a ``Pi05Config`` from a ``config.json`` or from the shapes of the stored tensors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from oxygen_ros.errors import CheckpointError, ConfigError
from oxygen_ros.models.pi05.config import (
    CAMERAS,
    GEMMA_SIZES,
    SIGLIP_SO400M,
    ActionHead,
    AttentionMode,
    ExpertConfig,
    GemmaSize,
    Pi05Config,
    VisionSize,
)
from oxygen_ros.models.pi05.names import EMBEDDING, LANGUAGE, LM_HEAD, VISION, Shape
from oxygen_ros.types import DEFAULT_EXPERT


def config_from_json(data: Mapping[str, Any]) -> Pi05Config:
    """Configuration from the keys of ``config.json``.

    Sizes are given in full (``vlm``, ``expert``, ``vision``) or by openpi's variant names
    (``paligemma_variant``, ``action_expert_variant``). Further experts are listed under
    ``extra_experts``: name, action_horizon, action_dim and what differs from ``expert``.

    Raises:
        ConfigError: if a key is missing or asks for something that is not pi0.5.
    """
    try:
        return _parse(data)
    except KeyError as missing:
        raise ConfigError("config_key", f"config.json lacks {missing}") from None
    except (TypeError, ValueError) as fault:
        raise ConfigError("config_value", f"config.json: {fault}") from None


def _parse(data: Mapping[str, Any]) -> Pi05Config:
    if not data.get("pi05", True):
        raise ConfigError("not_pi05", "config.json says pi05 is false")
    activations = {data[key] for key in ("mlp_act", "expert_mlp_act") if key in data}
    if activations - {"gelu_pytorch_tanh"} or data.get("attention_bias", False):
        raise ConfigError("not_gemma", f"unknown MLP activation {activations} or attention bias")
    vlm = _gemma(data, "vlm", "paligemma_variant")
    first = ExpertConfig(
        DEFAULT_EXPERT,
        _gemma(data, "expert", "action_expert_variant"),
        int(data["action_horizon"]),
        int(data["action_dim"]),
    )
    extra = tuple(_extra_expert(entry, first) for entry in data.get("extra_experts", ()))
    return Pi05Config(
        vlm=vlm,
        vision=_vision(data["vision"]) if "vision" in data else SIGLIP_SO400M,
        experts=(first, *extra),
        vocab_size=int(data.get("vocab_size", 257152)),
        max_token_len=int(data.get("max_token_len", 200)),
        cameras=tuple(data.get("cameras", CAMERAS)),
        attention=_attention(data.get("prefix_text_attention", "bidirectional")),
        rms_norm_eps=float(data.get("rms_norm_eps", 1e-6)),
        expert_rms_norm_eps=float(data.get("expert_rms_norm_eps", 1e-6)),
        rope_theta=float(data.get("rope_theta", 10000.0)),
        expert_rope_theta=float(data.get("expert_rope_theta", 10000.0)),
        min_period=float(data.get("time_min_period", 4e-3)),
        max_period=float(data.get("time_max_period", 4.0)),
        num_denoise_steps=int(data.get("num_denoise_steps", 10)),
    )


def _gemma(data: Mapping[str, Any], key: str, variant_key: str) -> GemmaSize:
    if key in data:
        return GemmaSize(**{name: int(data[key][name]) for name in GemmaSize.__dataclass_fields__})
    variant = data[variant_key]
    if variant not in GEMMA_SIZES:
        raise ConfigError("variant", f"{variant_key} is {variant!r}", f"one of {sorted(GEMMA_SIZES)}")
    return GEMMA_SIZES[variant]


def _vision(data: Mapping[str, Any]) -> VisionSize:
    return VisionSize(
        width=int(data["hidden_size"]),
        depth=int(data["num_hidden_layers"]),
        num_heads=int(data["num_attention_heads"]),
        mlp_dim=int(data["intermediate_size"]),
        image_size=int(data["image_size"]),
        patch_size=int(data["patch_size"]),
        eps=float(data.get("layer_norm_eps", 1e-6)),
    )


def _attention(name: str) -> AttentionMode:
    return AttentionMode.CAUSAL_TEXT if name == "causal" else AttentionMode(name)


def _extra_expert(entry: Mapping[str, Any], first: ExpertConfig) -> ExpertConfig:
    sizes = {key: int(entry[key]) for key in GemmaSize.__dataclass_fields__ if key in entry}
    return ExpertConfig(
        str(entry["name"]),
        replace(first.size, **sizes),
        int(entry["action_horizon"]),
        int(entry["action_dim"]),
    )


def config_from_shapes(
    shapes: Mapping[str, Shape],
    *,
    horizon: int,
    max_token_len: int,
    num_kv_heads: int = 1,
    num_vision_heads: int = SIGLIP_SO400M.num_heads,
) -> Pi05Config:
    """Configuration from stored shapes by name (without ``model.``), for files that state no sizes.

    Head counts do not show in shapes and are arguments.

    Raises:
        CheckpointError: if a tensor that the sizes are read from is missing.
    """
    expert_prefix = "paligemma_with_expert.gemma_expert.model."
    try:
        embedding = shapes[EMBEDDING] if EMBEDDING in shapes else shapes[LM_HEAD]
        patch = shapes[f"{VISION}embeddings.patch_embedding.weight"]
        num_patches = shapes[f"{VISION}embeddings.position_embedding.weight"][0]
        vision = VisionSize(
            width=patch[0],
            depth=_count_layers(shapes, f"{VISION}encoder."),
            num_heads=num_vision_heads,
            mlp_dim=shapes[f"{VISION}encoder.layers.0.mlp.fc1.weight"][0],
            image_size=round(num_patches**0.5) * patch[2],
            patch_size=patch[2],
        )
        is_pi0 = "time_mlp_in.weight" not in shapes and "state_proj.weight" in shapes
        expert = ExpertConfig(
            DEFAULT_EXPERT,
            _gemma_from_shapes(shapes, expert_prefix, num_kv_heads),
            horizon,
            shapes["action_in_proj.weight"][1],
            head=ActionHead.PI0 if is_pi0 else ActionHead.PI05,
            state_dim=shapes["state_proj.weight"][1] if is_pi0 else 0,
        )
        vlm = _gemma_from_shapes(shapes, LANGUAGE, num_kv_heads)
    except KeyError as missing:
        raise CheckpointError("tensor_names", f"no tensor {missing}: not a pi0.5 checkpoint") from None
    return Pi05Config(vlm, vision, (expert,), embedding[0], max_token_len)


def _gemma_from_shapes(shapes: Mapping[str, Shape], prefix: str, num_kv_heads: int) -> GemmaSize:
    q_rows, width = shapes[f"{prefix}layers.0.self_attn.q_proj.weight"]
    head_dim = shapes[f"{prefix}layers.0.self_attn.k_proj.weight"][0] // num_kv_heads
    mlp_dim = shapes[f"{prefix}layers.0.mlp.gate_proj.weight"][0]
    depth = _count_layers(shapes, prefix)
    return GemmaSize(width, depth, mlp_dim, q_rows // head_dim, num_kv_heads, head_dim)


def _count_layers(shapes: Mapping[str, Shape], prefix: str) -> int:
    pattern = re.compile(re.escape(prefix) + r"layers\.(\d+)\.")
    found = [match for match in map(pattern.match, shapes) if match]
    return max((int(match[1]) for match in found), default=-1) + 1
