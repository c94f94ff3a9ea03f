"""Fields of LeRobot's ``config.json``: which shape the model, which do not matter, which must be at rest.

A field that this version does not know is tolerated while it says nothing; one that asks for something
is refused by name.
"""

from __future__ import annotations

from typing import Any

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.json_file import JsonObject

USED = frozenset(
    (
        "type", "input_features", "output_features", "paligemma_variant", "action_expert_variant", "dtype",
        "chunk_size", "n_action_steps", "max_state_dim", "max_action_dim", "num_inference_steps",
        "min_period", "max_period", "image_resolution", "empty_cameras", "tokenizer_max_length",
        "normalization_mapping", "use_relative_actions", "relative_exclude_joints", "action_feature_names",
        "n_obs_steps", "use_peft",
    )
)  # fmt: skip
TRAINING = frozenset(
    (
        "device", "use_amp", "push_to_hub", "repo_id", "private", "tags", "license", "pretrained_path",
        "pretrained_revision", "gradient_checkpointing", "compile_model", "compile_mode",
        "freeze_vision_encoder", "train_expert_only", "rtc_config",
    )
)  # fmt: skip
TRAINING_PREFIXES = ("optimizer_", "scheduler_", "time_sampling_")
MEMORY_SWITCHES = ("use_visual_memory", "use_proprioceptive_memory")
# They say how a memory works, and nothing while there is none.
MEMORY_DETAILS = frozenset(("memory_frames", "memory_stride", "memory_temporal_attention_every"))
OLD_PI0 = frozenset(
    ("proj_width", "resize_imgs_with_padding", "adapt_to_pi_aloha", "attention_implementation")
)


def check_fields(config: JsonObject) -> None:
    """Refuse fields of ``config`` that ask for what is not done here.

    Raises:
        CheckpointError: naming the fields.
    """
    memory = [name for name in MEMORY_SWITCHES if name in config and config.flag(name)]
    if memory:
        raise CheckpointError(
            "checkpoint_memory",
            f"{config.where}: {', '.join(memory)} is true: a checkpoint with frame memory (MEM)",
            "such checkpoints need earlier frames as input, which is not supported; use one without memory",
        )
    if OLD_PI0 & config.data.keys():
        raise CheckpointError(
            "checkpoint_old_pi0",
            f"{config.where} has {', '.join(sorted(OLD_PI0 & config.data.keys()))}: a pi0 checkpoint from "
            "before LeRobot 0.4, with its statistics inside the weights",
            "convert it with LeRobot's migrate_policy_normalization first",
        )
    if "n_obs_steps" in config and config.integer("n_obs_steps", 1) != 1:
        raise config.wrong("n_obs_steps", "1: one observation per prediction")
    if "use_peft" in config and config.flag("use_peft"):
        raise CheckpointError(
            "checkpoint_adapter",
            f"{config.where}: use_peft is true: the weights may be a PEFT adapter",
            "merge the adapter into its base model first",
        )
    active = [name for name, value in config.data.items() if not _is_known(name) and not _is_at_rest(value)]
    if active:
        raise CheckpointError(
            "unknown_field",
            f"{config.where} has active fields that are not known here: "
            + ", ".join(f"{name} = {config.data[name]!r}" for name in sorted(active)[:10]),
            "the checkpoint may need what is not done here; if a field is for training only, remove it",
        )


def _is_known(name: str) -> bool:
    return name in USED or name in TRAINING or name in MEMORY_DETAILS or name.startswith(TRAINING_PREFIXES)


def _is_at_rest(value: Any) -> bool:
    return value in (None, False, 0, "", [], {})
