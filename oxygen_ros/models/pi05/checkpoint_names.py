"""From names in a file to openpi's plain names: prefixes off, legacy names mapped, dead weights out.

Names that belong to another layout are refused with what that layout is, and no dump of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.pi05.names import UNUSED
from oxygen_ros.models.tensor_files import StoredTensor

LEROBOT_PREFIX = "model."
EXPERT_STACK = "paligemma_with_expert.gemma_expert.model."
NORM_BUFFERS = ("normalize_inputs.", "normalize_targets.", "unnormalize_outputs.")
MEMORY_TENSOR = "proprio_history_proj"
TRANSFORMERS = (
    "openpi's PyTorch code expects transformers 4.53.2 with its own files over it "
    "(src/openpi/models_pytorch/transformers_replace)"
)
# Start of a name, after the common prefixes, and what kind of file has it.
FOREIGN = (
    ("_orig_mod.", "saved from a compiled model", "save model._orig_mod.state_dict() instead"),
    ("module.", "saved from inside a parallel wrapper", "save model.module.state_dict() instead"),
    ("base_model.model.", "a PEFT model that was not merged", "merge the adapter and save again"),
    ("paligemma_with_expert.paligemma.language_model.model.", "named by an older transformers", TRANSFORMERS),
    ("paligemma_with_expert.paligemma.language_model.", "named by another transformers", TRANSFORMERS),
    ("paligemma_with_expert.paligemma.vision_tower.", "named by another transformers", TRANSFORMERS),
    ("paligemma_with_expert.paligemma.multi_modal_projector.", "named by another transformers", TRANSFORMERS),
    ("paligemma.", "a PaliGemma without action expert", "give a pi0.5 or pi0 checkpoint"),
    ("language_model.", "a language model without action expert", "give a pi0.5 or pi0 checkpoint"),
    ("vision_tower.", "a vision-language model without action expert", "give a pi0.5 or pi0 checkpoint"),
    ("PaliGemma.", "JAX parameters", "convert with openpi's examples/convert_jax_model_to_pytorch.py"),
    ("params.", "JAX parameters", "convert with openpi's examples/convert_jax_model_to_pytorch.py"),
)  # fmt: skip


@dataclass(frozen=True)
class PlainTensors:
    """Tensors by plain name, the family that the names show, and what was left out or renamed."""

    tensors: Mapping[str, StoredTensor]
    family: str
    decisions: tuple[str, ...]


def plain_tensors(stored: Mapping[str, StoredTensor]) -> PlainTensors:
    """Tensors of a checkpoint by openpi's plain names.

    Raises:
        CheckpointError: if the names are those of another layout or another kind of model.
    """
    _refuse_kinds(stored)
    is_lerobot = sum(name.startswith(LEROBOT_PREFIX) for name in stored) > len(stored) / 2
    plain = {name.removeprefix(LEROBOT_PREFIX) if is_lerobot else name: item for name, item in stored.items()}
    _refuse_foreign(plain)
    decisions = [
        f"tensor names carry {LEROBOT_PREFIX!r} in front" if is_lerobot else "tensor names are openpi's"
    ]
    has_adaptive_norms = f"{EXPERT_STACK}norm.dense.weight" in plain
    has_pi0_head = "state_proj.weight" in plain
    family = "pi05" if has_adaptive_norms or "time_mlp_in.weight" in plain or not has_pi0_head else "pi0"
    decisions.append(
        f"family {family}: "
        + (
            "the expert's norms are conditioned on time"
            if family == "pi05"
            else "there is a state projection"
        )
    )
    if family == "pi05":
        _refuse_plain_norms(plain, has_adaptive_norms)
        plain = _map_legacy(plain, decisions, has_adaptive_norms)
    dead = [name for name in plain if name in UNUSED]
    if dead:
        size = sum(plain[name].num_bytes for name in dead)
        decisions.append(f"left out, since nothing reads it: {', '.join(dead)} ({size / 1e6:.0f} MB)")
    return PlainTensors(
        {name: item for name, item in plain.items() if name not in UNUSED}, family, tuple(decisions)
    )


def _is_plain_norm(name: str) -> bool:
    return name.startswith(EXPERT_STACK) and name.endswith(("layernorm.weight", "norm.weight"))


def _refuse_plain_norms(plain: Iterable[str], has_adaptive_norms: bool) -> None:
    found = [name for name in plain if _is_plain_norm(name)]
    if found and not has_adaptive_norms:
        raise CheckpointError(
            "tensor_layout",
            f"a pi0.5 head, but {len(found)} norms of the expert are not conditioned on time: "
            "the file was saved without the changed transformers",
            TRANSFORMERS,
        )


def _map_legacy(
    plain: Mapping[str, StoredTensor], decisions: list[str], has_adaptive_norms: bool
) -> dict[str, StoredTensor]:
    """Names of pi0.5 files that began as pi0: heads renamed, what pi0.5 does not read left out."""
    mapped: dict[str, StoredTensor] = {}
    renamed, ignored = [], []
    for name, tensor in plain.items():
        new = name.replace("action_time_mlp_", "time_mlp_") if name.startswith("action_time_mlp_") else name
        if name.startswith("state_proj.") or (has_adaptive_norms and _is_plain_norm(name)):
            ignored.append(name)
        elif new != name and new not in plain:
            renamed.append(name)
            mapped[new] = tensor
        else:
            mapped[name] = tensor
    if renamed:
        decisions.append(f"older names were mapped: {', '.join(renamed)}")
    if ignored:
        decisions.append(f"left out, since pi0.5 does not read them: {', '.join(ignored[:10])}")
    return mapped


def _refuse_kinds(stored: Mapping[str, StoredTensor]) -> None:
    if any(MEMORY_TENSOR in name for name in stored):
        raise CheckpointError(
            "checkpoint_memory",
            f"the weights hold {MEMORY_TENSOR}: a checkpoint with frame memory (MEM)",
            "such checkpoints need earlier frames as input, which is not supported; use one without memory",
        )
    buffers = [name for name in stored if name.removeprefix(LEROBOT_PREFIX).startswith(NORM_BUFFERS)]
    if buffers:
        raise CheckpointError(
            "checkpoint_old_pi0",
            f"the weights hold normalisation buffers ({buffers[0]}): a file from before LeRobot 0.4",
            "convert it with LeRobot's migrate_policy_normalization first",
        )
    if any("lora_" in name for name in stored):
        raise CheckpointError(
            "checkpoint_adapter",
            "the weights hold LoRA matrices beside the model",
            "merge the adapter (merge_and_unload) and save again",
        )


def _refuse_foreign(names: Iterable[str]) -> None:
    for prefix, kind, suggestion in FOREIGN:
        count = sum(name.startswith(prefix) for name in names)
        if count:
            raise CheckpointError(
                "tensor_layout", f"{count} tensor names start with {prefix!r}: {kind}", suggestion
            )
