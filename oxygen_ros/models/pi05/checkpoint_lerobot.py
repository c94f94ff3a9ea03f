"""What a LeRobot directory says: config, processor pipelines, statistics, cameras, dialect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.json_file import JsonObject, read_json
from oxygen_ros.models.pi05.checkpoint import CameraSlot, Feature, RelativeRule
from oxygen_ros.models.pi05.checkpoint_fields import check_fields
from oxygen_ros.models.pi05.checkpoint_processors import (
    ABSOLUTE,
    ACTION,
    NORMALIZER,
    POSTPROCESSOR,
    PREPROCESSOR,
    PROMPT,
    RELATIVE,
    RENAME,
    STATE,
    TOKENIZER,
    UNNORMALIZER,
    Pipeline,
    feature_shape,
    norm_mode,
    read_pipeline,
    step_statistics,
)
from oxygen_ros.models.pi05.dialect import LEROBOT_0_4, LEROBOT_0_5_PLUS, Dialect
from oxygen_ros.models.pi05.names import LANGUAGE, VISION
from oxygen_ros.models.pi05.statistics import FeatureStatistics, NormMode
from oxygen_ros.models.tensor_files import StoredTensor

FAMILIES = ("pi05", "pi0")
EMPTY_CAMERA = "empty_camera"
DEFAULT_MAX_TOKENS = {"pi05": 200, "pi0": 48}
_DTYPE_WITNESSES = tuple(
    f"{stack}layers.0.self_attn.q_proj.weight" for stack in (f"{VISION}encoder.", LANGUAGE)
)


@dataclass(frozen=True)
class LerobotFacts:
    """What the JSON files and the statistics of a LeRobot directory say."""

    family: str
    horizon: int
    is_bfloat16: bool
    num_denoise_steps: int
    max_tokens: int
    image_size: int
    periods: tuple[float, float]
    padded_action_dim: int
    cameras: tuple[CameraSlot, ...]
    renamed: Mapping[str, str]
    state: Feature
    action: Feature
    relative: RelativeRule | None
    has_relative_step: bool
    tokenizer_name: str
    warnings: tuple[str, ...]


def read_lerobot(folder: Path) -> LerobotFacts:
    """Facts of a LeRobot directory.

    Raises:
        CheckpointError: if a file or a value is missing or cannot be, or asks for what is not done here.
    """
    config = read_json(folder / "config.json")
    family = config.text("type")
    if family not in FAMILIES:
        raise CheckpointError(
            "policy_type",
            f"{config.where}: type is {family!r}, want {' or '.join(FAMILIES)}",
            "choose another model",
        )
    check_fields(config)
    before, after = read_pipeline(folder / PREPROCESSOR), read_pipeline(folder / POSTPROCESSOR)
    _check_order(before, family)
    warnings: list[str] = []
    relative, has_relative_step = _relative(config, before, after, warnings)
    width = config.integers("image_resolution") if "image_resolution" in config else (224, 224)
    if len(width) != 2 or width[0] != width[1]:
        raise config.wrong("image_resolution", "two equal numbers")
    return LerobotFacts(
        family=family,
        horizon=config.integer("chunk_size", 1),
        is_bfloat16="dtype" in config and config.text("dtype") == "bfloat16",
        num_denoise_steps=config.integer("num_inference_steps", 1) if "num_inference_steps" in config else 10,
        max_tokens=_max_tokens(config, before, family, warnings),
        image_size=width[0],
        periods=(config.number("min_period"), config.number("max_period")),
        padded_action_dim=config.integer("max_action_dim", 1),
        cameras=_cameras(config),
        renamed=_renamed(before),
        state=_state(folder, config, before),
        action=_action(folder, config, before, after, warnings),
        relative=relative,
        has_relative_step=has_relative_step,
        tokenizer_name=before.config(TOKENIZER).text("tokenizer_name"),
        warnings=tuple(warnings),
    )


def find_dialect(
    facts: LerobotFacts, config: JsonObject, tensors: Mapping[str, StoredTensor]
) -> tuple[Dialect, str]:
    """Dialect of a LeRobot directory, and by what it shows.

    Raises:
        CheckpointError: if nothing shows it: LeRobot 0.5.0 changed the prompt and wrote the same files.
    """
    if facts.has_relative_step:
        return LEROBOT_0_5_PLUS, "a relative-actions step in the preprocessor: LeRobot 0.5.1 or later"
    if "use_relative_actions" in config:
        return LEROBOT_0_5_PLUS, "use_relative_actions in config.json: LeRobot 0.5.1 or later"
    vision, attention = (tensors[name].dtype if name in tensors else "" for name in _DTYPE_WITNESSES)
    if (vision, attention) == ("BF16", "BF16"):
        return LEROBOT_0_4, "the vision tower is stored in bfloat16, as LeRobot did up to 0.4.4"
    if (vision, attention) == ("F32", "BF16"):
        return (
            LEROBOT_0_5_PLUS,
            "the vision tower is stored in float32 beside bfloat16: LeRobot 0.5.0 or later",
        )
    raise CheckpointError(
        "dialect_ambiguous",
        "nothing in the files shows whether LeRobot 0.4 or 0.5.0 wrote them, and the two prompt differently",
        "set model.dialect to lerobot_0_4 or lerobot_0_5_plus: the version that it was trained with",
    )


def _check_order(before: Pipeline, family: str) -> None:
    """Refuse pipelines whose order is not the one that is done here."""
    names = list(before.steps)
    wanted = (NORMALIZER, PROMPT["pi05"], TOKENIZER) if family == "pi05" else (PROMPT["pi0"], TOKENIZER)
    for name in (*wanted, NORMALIZER):
        before.step(name)
    found = [name for name in names if name in wanted]
    if found != list(wanted):
        raise CheckpointError(
            "processor_order",
            f"{before.path} runs {' -> '.join(found)}, want {' -> '.join(wanted)}",
            "the pipeline was changed; it would give other prompts than the ones that are written here",
        )


def _max_tokens(config: JsonObject, before: Pipeline, family: str, warnings: list[str]) -> int:
    step = before.config(TOKENIZER)
    limit = step.integer("max_length", 8) if "max_length" in step else DEFAULT_MAX_TOKENS[family]
    if "tokenizer_max_length" in config and config.integer("tokenizer_max_length", 8) != limit:
        warnings.append(
            f"tokenizer_max_length is {config.integer('tokenizer_max_length')} in config.json "
            f"and {limit} in the tokenizer step; the step counts"
        )
    if "padding_side" in step and step.text("padding_side") != "right":
        raise step.wrong("padding_side", '"right"')
    return limit


def _cameras(config: JsonObject) -> tuple[CameraSlot, ...]:
    features = config.child("input_features")
    names = [name for name in features.data if features.child(name).text("type") == "VISUAL"]
    slots = tuple(CameraSlot(name, is_empty=EMPTY_CAMERA in name) for name in names)
    if all(slot.is_empty for slot in slots):
        raise CheckpointError(
            "no_camera", f"{features.where} has no camera", "a model without pictures is not supported"
        )
    return slots


def _renamed(before: Pipeline) -> Mapping[str, str]:
    if RENAME not in before.steps or "rename_map" not in before.config(RENAME):
        return {}
    names = before.config(RENAME).child("rename_map")
    return {name: names.text(name) for name in names.data}


def _dims(config: JsonObject, group: str, name: str) -> int:
    feature = config.child(group).child(name)
    shape = feature.integers("shape")
    if len(shape) != 1 or not shape[0]:
        raise feature.wrong("shape", "one number")
    return shape[0]


def _state(folder: Path, config: JsonObject, before: Pipeline) -> Feature:
    step = before.step(NORMALIZER)
    if norm_mode(step, "VISUAL") is not NormMode.IDENTITY:
        raise step.child("config").child("norm_map").wrong("VISUAL", '"IDENTITY": pictures lie in [-1, 1]')
    num_dims = _dims(config, "input_features", STATE)
    return _feature(folder, step, "STATE", STATE, num_dims)


def _action(
    folder: Path, config: JsonObject, before: Pipeline, after: Pipeline, warnings: list[str]
) -> Feature:
    num_dims = _dims(config, "output_features", ACTION)
    feature = _feature(folder, after.step(UNNORMALIZER), "ACTION", ACTION, num_dims)
    if norm_mode(before.step(NORMALIZER), "ACTION") is not feature.mode:
        warnings.append("the two pipelines disagree about the mode of actions; the postprocessor's counts")
    return feature


def _feature(folder: Path, step: JsonObject, kind: str, name: str, num_dims: int) -> Feature:
    mode = norm_mode(step, kind)
    if mode is NormMode.IDENTITY:
        return Feature(FeatureStatistics(name, step.where, {}), mode, num_dims)
    if feature_shape(step, name) != (num_dims,):
        raise CheckpointError(
            "feature_shape",
            f"{step.where}: {name} has shape {list(feature_shape(step, name))}, "
            f"config.json says [{num_dims}]",
            "config and pipelines belong to different checkpoints",
        )
    statistics = step_statistics(folder, step, name)
    statistics.pair(mode, num_dims)
    return Feature(statistics, mode, num_dims)


def _relative(
    config: JsonObject, before: Pipeline, after: Pipeline, warnings: list[str]
) -> tuple[RelativeRule | None, bool]:
    """Rule of relative actions, and whether the step is there at all (LeRobot 0.5.1 or later)."""
    if RELATIVE not in before.steps:
        return None, False
    step = before.config(RELATIVE)
    is_relative = step.flag("enabled")
    if ABSOLUTE not in after.steps or after.config(ABSOLUTE).flag("enabled") != is_relative:
        raise CheckpointError(
            "relative_actions",
            f"{before.path} and {after.path} disagree about relative actions",
            "the two pipelines belong to different checkpoints",
        )
    if "use_relative_actions" in config and config.flag("use_relative_actions") != is_relative:
        warnings.append("config.json and the pipelines disagree about relative actions; the pipelines count")
    if not is_relative:
        return None, True
    has_names = step.data.get("action_names") is not None
    names = step.texts("action_names") if has_names else None
    excluded = step.texts("exclude_joints") if step.data.get("exclude_joints") is not None else ()
    if names is None and excluded:
        warnings.append(
            "relative actions without action names: every dimension is relative, grippers too, "
            f"although {', '.join(excluded)} should be excluded"
        )
    return RelativeRule(names, excluded), True
