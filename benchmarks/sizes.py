"""Models that are measured: sizes of pi0.5 from a few thousand parameters to the full model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from oxygen_ros.models.pi05.config import (
    GEMMA_SIZES,
    SIGLIP_SO400M,
    AttentionMode,
    DtypePolicy,
    ExpertConfig,
    GemmaSize,
    Pi05Config,
    VisionSize,
)
from oxygen_ros.types import DEFAULT_EXPERT

ACTION_DIM = 32
MAX_HORIZON = 50
EXTRA_EXPERT_NAMES = ("head", "base", "left_arm")


@dataclass(frozen=True)
class ModelSize:
    """One size of the model; the workload decides horizon, prompt buffer and number of experts."""

    name: str
    vlm: GemmaSize
    expert: GemmaSize
    vision: VisionSize
    vocab_size: int


MODEL_SIZES = {
    size.name: size
    for size in (
        ModelSize(
            "tiny",
            GemmaSize(64, 3, 160, 8, 1, 16),
            GemmaSize(32, 3, 96, 8, 1, 16),
            VisionSize(48, 2, 4, 112, 56, 14),
            512,
        ),
        ModelSize(
            "cpu",
            GemmaSize(768, 8, 3072, 8, 1, 96),
            GemmaSize(384, 8, 1536, 8, 1, 96),
            VisionSize(384, 4, 6, 1536, 112, 14),
            16000,
        ),
        ModelSize("pi05", GEMMA_SIZES["gemma_2b"], GEMMA_SIZES["gemma_300m"], SIGLIP_SO400M, 257152),
    )
}


def model_config(
    size: ModelSize,
    dtype: torch.dtype,
    *,
    horizon: int,
    max_token_len: int,
    num_denoise_steps: int,
    num_experts: int = 1,
) -> Pi05Config:
    """Configuration of ``size``. Text is causal, as in OxyGen's fork; no token ends a text."""
    first = ExpertConfig(DEFAULT_EXPERT, size.expert, horizon, ACTION_DIM)
    extra = [replace(first, name=name) for name in EXTRA_EXPERT_NAMES[: num_experts - 1]]
    return Pi05Config(
        vlm=size.vlm,
        vision=size.vision,
        experts=(first, *extra),
        vocab_size=size.vocab_size,
        max_token_len=max_token_len,
        attention=AttentionMode.CAUSAL_TEXT,
        num_denoise_steps=num_denoise_steps,
        stop_token_ids=frozenset(),
        dtypes=DtypePolicy.openpi(dtype),
    )


@dataclass(frozen=True)
class ParameterCounts:
    """Parameters by part; the expert's count includes its norm modulations, given once more beside it."""

    vision: int
    backbone: int
    embedding: int
    expert: int
    modulations: int

    @property
    def total(self) -> int:
        """All parameters; embedding and head are one tensor."""
        return self.vision + self.backbone + self.embedding + self.expert


def count_parameters(shapes: dict[str, tuple[int, ...]]) -> ParameterCounts:
    """Counts from tensor shapes by openpi's names, with embedding and head tied."""

    def total(*parts: str) -> int:
        return sum(
            int(torch.Size(shape).numel())
            for name, shape in shapes.items()
            if any(part in name for part in parts)
        )

    embedding = max(total("embed_tokens"), total("lm_head"))
    backbone = total("language_model.") - total("embed_tokens")
    vision = total("vision_tower", "multi_modal_projector")
    return ParameterCounts(
        vision=vision,
        backbone=backbone,
        embedding=embedding,
        expert=total("") - total("embed_tokens") - total("lm_head") - backbone - vision,
        modulations=total(".dense."),
    )
