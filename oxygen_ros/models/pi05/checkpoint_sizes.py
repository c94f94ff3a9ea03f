"""Sizes of a checkpoint's model: from shapes; what they do not show, from where it is stated or known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.pi05.checkpoint_names import PlainTensors
from oxygen_ros.models.pi05.config import GEMMA_SIZES, SIGLIP_SO400M, GemmaSize, Pi05Config
from oxygen_ros.models.pi05.config_source import config_from_json, config_from_shapes
from oxygen_ros.models.pi05.names import VISION

FALLBACK_VISION_HEADS = 4
_PATCH = VISION + "embeddings.patch_embedding.weight"


@dataclass(frozen=True)
class SizeHints:
    """What the files or the user say beside the shapes.

    Attributes:
        num_vision_heads: 0 for not said.
        image_size: side of the model's pictures; 0 for not said.
        document: ``config.json`` of an openpi directory; may state all sizes.
    """

    horizon: int
    max_tokens: int
    num_vision_heads: int = 0
    image_size: int = 0
    document: Mapping[str, Any] = field(default_factory=dict)


def find_sizes(plain: PlainTensors, hints: SizeHints) -> tuple[Pi05Config, tuple[str, ...], tuple[str, ...]]:
    """Configuration of the model, how it was found, and what is unsure about it.

    Raises:
        CheckpointError: if shapes are missing or contradict what is stated.
    """
    shapes = {name: tensor.shape for name, tensor in plain.tensors.items()}
    if all(key in hints.document for key in ("vlm", "expert", "vision")):
        config = replace(config_from_json(hints.document), max_token_len=hints.max_tokens)
        return config, ("sizes: stated in config.json",), ()
    heads, decision, warnings = _vision_heads(shapes.get(_PATCH, (0,))[0], hints)
    config = config_from_shapes(
        shapes, horizon=hints.horizon, max_token_len=hints.max_tokens, num_vision_heads=heads
    )
    _check_vision(config, hints, heads)
    decisions = (
        f"sizes: from the shapes; backbone {_words(config.vlm)}; expert {_words(config.experts[0].size)}; "
        f"vision {config.vision.width} wide, {config.vision.depth} layers, {config.vision.image_size} px; "
        "one KV head, as all Gemma sizes of pi0.5 have",
        decision,
    )
    return config, decisions, warnings


def _vision_heads(width: int, hints: SizeHints) -> tuple[int, str, tuple[str, ...]]:
    """Heads of the vision tower, which no shape shows."""
    if hints.num_vision_heads:
        return hints.num_vision_heads, f"vision heads: {hints.num_vision_heads}, as given", ()
    if width == SIGLIP_SO400M.width:
        heads = SIGLIP_SO400M.num_heads
        return heads, f"vision heads: {heads}, as SigLIP So400m has at this width", ()
    heads = FALLBACK_VISION_HEADS
    return (
        heads,
        f"vision heads: {heads}, assumed",
        (
            f"the vision tower is {width} wide, not SigLIP So400m's {SIGLIP_SO400M.width}, and no file "
            f"states its heads: {heads} are assumed, as tiny test models have",
        ),
    )


def _check_vision(config: Pi05Config, hints: SizeHints, heads: int) -> None:
    if hints.image_size and config.vision.image_size != hints.image_size:
        raise CheckpointError(
            "image_size",
            f"config.json says pictures of {hints.image_size} px; the weights are for "
            f"{config.vision.num_tokens} patches, {config.vision.image_size} px",
            "config and weights belong to different checkpoints",
        )
    if config.vision.width % heads:
        raise CheckpointError(
            "vision_heads",
            f"a vision tower {config.vision.width} wide cannot have {heads} heads",
            "give its heads",
        )


def _words(size: GemmaSize) -> str:
    for name, known in GEMMA_SIZES.items():
        if known == size:
            return name
    return f"{size.width} wide, {size.depth} layers, {size.num_heads} heads of {size.head_dim}"
