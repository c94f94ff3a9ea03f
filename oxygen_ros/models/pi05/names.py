"""Names and shapes of the tensors of a pi0.5 checkpoint, in openpi's PyTorch naming.

Checkpoints of LeRobot carry ``model.`` in front of every name. Experts beyond the first repeat the
names of the first under ``experts.<name>.``: ``experts.head.gemma_expert.model.layers.0...``,
``experts.head.action_in_proj.weight`` and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.pi05.config import ActionHead, ExpertConfig, GemmaSize, Pi05Config, VisionSize

Shape = tuple[int, ...]

PALIGEMMA = "paligemma_with_expert.paligemma."
VISION = PALIGEMMA + "model.vision_tower.vision_model."
PROJECTOR = PALIGEMMA + "model.multi_modal_projector.linear"
LANGUAGE = PALIGEMMA + "model.language_model."
EMBEDDING = LANGUAGE + "embed_tokens.weight"
LM_HEAD = PALIGEMMA + "lm_head.weight"
UNUSED = frozenset({"paligemma_with_expert.gemma_expert.lm_head.weight"})
"""Stored by training frameworks and read by nothing."""
MAX_LISTED = 10


def expert_prefixes(config: Pi05Config, expert: ExpertConfig) -> tuple[str, str]:
    """Name prefix of the expert's Gemma stack and of its projections."""
    if expert is config.experts[0]:
        return "paligemma_with_expert.gemma_expert.model.", ""
    return f"experts.{expert.name}.gemma_expert.model.", f"experts.{expert.name}."


def tensor_shapes(config: Pi05Config) -> dict[str, Shape]:
    """Every tensor that the model reads, with embedding and head as two names."""
    shapes: dict[str, Shape] = dict(_vision_shapes(config.vision))
    shapes.update(_linear(PROJECTOR, config.vlm.width, config.vision.width))
    shapes[EMBEDDING] = shapes[LM_HEAD] = (config.vocab_size, config.vlm.width)
    shapes.update(_stack_shapes(LANGUAGE, config.vlm))
    norms = [f"layers.{layer}.{norm}" for layer in range(config.vlm.depth) for norm in NORMS]
    shapes.update({f"{LANGUAGE}{norm}.weight": (config.vlm.width,) for norm in [*norms, "norm"]})
    for expert in config.experts:
        shapes.update(_expert_shapes(config, expert))
    return shapes


NORMS = ("input_layernorm", "post_attention_layernorm")


def _linear(name: str, out_features: int, in_features: int) -> dict[str, Shape]:
    return {f"{name}.weight": (out_features, in_features), f"{name}.bias": (out_features,)}


def _vision_shapes(size: VisionSize) -> Iterator[tuple[str, Shape]]:
    patch, width = size.patch_size, size.width
    yield f"{VISION}embeddings.patch_embedding.weight", (width, 3, patch, patch)
    yield f"{VISION}embeddings.patch_embedding.bias", (width,)
    yield f"{VISION}embeddings.position_embedding.weight", (size.num_tokens, width)
    for layer in range(size.depth):
        base = f"{VISION}encoder.layers.{layer}."
        for norm in ("layer_norm1", "layer_norm2"):
            yield from {f"{base}{norm}.weight": (width,), f"{base}{norm}.bias": (width,)}.items()
        for projection in ("q_proj", "k_proj", "v_proj", "out_proj"):
            yield from _linear(f"{base}self_attn.{projection}", width, width).items()
        yield from _linear(f"{base}mlp.fc1", size.mlp_dim, width).items()
        yield from _linear(f"{base}mlp.fc2", width, size.mlp_dim).items()
    yield f"{VISION}post_layernorm.weight", (width,)
    yield f"{VISION}post_layernorm.bias", (width,)


def _stack_shapes(prefix: str, size: GemmaSize) -> Iterator[tuple[str, Shape]]:
    q_rows, kv_rows = size.num_heads * size.head_dim, size.num_kv_heads * size.head_dim
    for layer in range(size.depth):
        base = f"{prefix}layers.{layer}."
        yield f"{base}self_attn.q_proj.weight", (q_rows, size.width)
        yield f"{base}self_attn.k_proj.weight", (kv_rows, size.width)
        yield f"{base}self_attn.v_proj.weight", (kv_rows, size.width)
        yield f"{base}self_attn.o_proj.weight", (size.width, q_rows)
        yield f"{base}mlp.gate_proj.weight", (size.mlp_dim, size.width)
        yield f"{base}mlp.up_proj.weight", (size.mlp_dim, size.width)
        yield f"{base}mlp.down_proj.weight", (size.width, size.mlp_dim)


def _expert_shapes(config: Pi05Config, expert: ExpertConfig) -> Iterator[tuple[str, Shape]]:
    stack, projections = expert_prefixes(config, expert)
    width = expert.size.width
    yield from _stack_shapes(stack, expert.size)
    norms = [f"layers.{layer}.{norm}" for layer in range(expert.size.depth) for norm in NORMS]
    yield from _linear(f"{projections}action_in_proj", width, expert.action_dim).items()
    yield from _linear(f"{projections}action_out_proj", expert.action_dim, width).items()
    if expert.head is ActionHead.PI0:
        yield from ((f"{stack}{norm}.weight", (width,)) for norm in [*norms, "norm"])
        yield from _linear(f"{projections}state_proj", width, expert.state_dim).items()
        yield from _linear(f"{projections}action_time_mlp_in", width, 2 * width).items()
        yield from _linear(f"{projections}action_time_mlp_out", width, width).items()
        return
    for norm in [*norms, "norm"]:
        yield from _linear(f"{stack}{norm}.dense", 3 * width, width).items()
    yield from _linear(f"{projections}time_mlp_in", width, width).items()
    yield from _linear(f"{projections}time_mlp_out", width, width).items()


def check_names(config: Pi05Config, stored: Mapping[str, Shape]) -> None:
    """Refuse a checkpoint that does not hold exactly the tensors of ``config``.

    Args:
        stored: shape by name, without the ``model.`` prefix.

    Raises:
        CheckpointError: naming up to ten tensors that are missing, unexpected or misshapen.
    """
    wanted = tensor_shapes(config)
    missing = [name for name in wanted if name not in stored]
    if {EMBEDDING, LM_HEAD} & stored.keys():  # tied: one of the two is enough
        missing = [name for name in missing if name not in (EMBEDDING, LM_HEAD)]
    unexpected = [name for name in stored if name not in wanted and name not in UNUSED]
    misshapen = [
        f"{name} is {list(stored[name])}, wanted {list(shape)}"
        for name, shape in wanted.items()
        if name in stored and tuple(stored[name]) != shape
    ]
    faults = {"missing": missing, "unexpected": unexpected, "of another shape": misshapen}
    if any(faults.values()):
        raise CheckpointError(
            "tensor_names",
            "; ".join(_listed(kind, names) for kind, names in faults.items() if names),
            _suggestion(missing, unexpected, misshapen),
        )


def _suggestion(missing: list[str], unexpected: list[str], misshapen: list[str]) -> str:
    """What faults of these kinds are likely to come from."""
    if misshapen:
        return "config.json and weights are of different models: take both from the same directory"
    if missing and unexpected:
        near = get_close_matches(missing[0], unexpected, n=1, cutoff=0.8)
        if near:
            return f"tensors seem renamed, as {missing[0]} to {near[0]}: save with the original names"
    if missing:
        return "the save or the copy was incomplete: compare with the number of tensors where it was trained"
    return "the weights have parts that pi0.5 does not have: save the policy without them"


def _listed(kind: str, names: list[str]) -> str:
    shown = ", ".join(sorted(names)[:MAX_LISTED])
    return f"{len(names)} tensors {kind}: {shown}{' ...' if len(names) > MAX_LISTED else ''}"
