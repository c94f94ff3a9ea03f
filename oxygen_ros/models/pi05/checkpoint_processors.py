"""LeRobot's processor pipelines as a checkpoint stores them: what each step says, checked step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.json_file import JsonObject, read_json
from oxygen_ros.models.pi05.statistics import FeatureStatistics, NormMode
from oxygen_ros.models.tensor_files import read_header

PREPROCESSOR = "policy_preprocessor.json"
POSTPROCESSOR = "policy_postprocessor.json"
NORMALIZER = "normalizer_processor"
UNNORMALIZER = "unnormalizer_processor"
RELATIVE = "relative_actions_processor"
ABSOLUTE = "absolute_actions_processor"
RENAME = "rename_observations_processor"
TOKENIZER = "tokenizer_processor"
PROMPT = {"pi05": "pi05_prepare_state_tokenizer_processor_step", "pi0": "pi0_new_line_processor"}
KNOWN = {
    NORMALIZER, UNNORMALIZER, RELATIVE, ABSOLUTE, RENAME, TOKENIZER, "to_batch_processor", "device_processor",
    *PROMPT.values(),
}  # fmt: skip
STATE, ACTION = "observation.state", "action"


@dataclass(frozen=True)
class Pipeline:
    """Steps of one pipeline by registry name, in order, and where it lies."""

    path: Path
    steps: Mapping[str, JsonObject]

    def config(self, name: str) -> JsonObject:
        """Settings of one step.

        Raises:
            CheckpointError: if there is no such step.
        """
        return self.step(name).child("config")

    def step(self, name: str) -> JsonObject:
        """One step.

        Raises:
            CheckpointError: if there is none.
        """
        if name not in self.steps:
            raise CheckpointError(
                "processor_step",
                f"{self.path} has no step {name!r}; there is {', '.join(self.steps)}",
                "the pipelines of the checkpoint are incomplete: copy them from where it was trained",
            )
        return self.steps[name]


def read_pipeline(path: Path) -> Pipeline:
    """Steps of a processor JSON.

    Raises:
        CheckpointError: if the file is missing, malformed or has a step that is not known here.
    """
    if not path.is_file():
        raise CheckpointError(
            "processor_missing",
            f"{path} is missing: nothing says how inputs were normalised",
            "copy it from where the checkpoint was trained; files of 2025 are migrated with LeRobot's "
            "migrate_policy_normalization",
        )
    listed = read_json(path).children("steps")
    steps = {step.text("registry_name"): step for step in listed}
    if len(steps) != len(listed):
        raise CheckpointError(
            "processor_step",
            f"{path} has a step more than once: {', '.join(step.text('registry_name') for step in listed)}",
            "the pipeline was changed; take the checkpoint's own",
        )
    unknown = [name for name in steps if name not in KNOWN]
    if unknown:
        raise CheckpointError(
            "processor_step",
            f"{path} has steps that are not known here: {', '.join(unknown)}",
            "the checkpoint needs processing that this version does not do",
        )
    return Pipeline(path, steps)


def norm_mode(step: JsonObject, kind: str) -> NormMode:
    """Mode of a feature type (STATE, ACTION or VISUAL) in a normaliser step.

    Raises:
        CheckpointError: if the step does not say it, or says something unknown.
    """
    modes = step.child("config").child("norm_map")
    if kind not in modes:
        raise CheckpointError(
            "norm_mode",
            f"{modes.where} has no mode for {kind}: its values would pass through as they are",
            'write the mode that the checkpoint was trained with, for example "QUANTILES"',
        )
    try:
        return NormMode(modes.text(kind))
    except ValueError:
        raise modes.wrong(kind, f"one of {', '.join(mode.value for mode in NormMode)}") from None


def feature_shape(step: JsonObject, feature: str) -> tuple[int, ...]:
    """Shape of a feature that a normaliser step knows."""
    return step.child("config").child("features").child(feature).integers("shape")


def step_statistics(folder: Path, step: JsonObject, feature: str) -> FeatureStatistics:
    """Statistics of ``feature`` from the state file that ``step`` names, whatever the file is called.

    Raises:
        CheckpointError: if the file or the feature is missing.
    """
    if "state_file" not in step:
        raise CheckpointError(
            "statistics_missing",
            f"{step.where} names no state_file: there are no statistics for {feature!r}",
            "copy the whole checkpoint from where it was trained",
        )
    path = folder / step.text("state_file")
    if path.parent != folder or not path.is_file():
        raise CheckpointError(
            "statistics_missing",
            f"no statistics for {feature!r}: looked for {path}",
            "copy the file from where the checkpoint was trained; its name is in the processor JSON",
        )
    header = read_header(path)
    stored = {name: tensor for name, tensor in header.items() if name.rpartition(".")[0] == feature}
    if not stored:
        there = sorted({name.rpartition(".")[0] for name in header})
        raise CheckpointError(
            "statistics_feature",
            f"{path} has no statistics for {feature!r}; there are some for {', '.join(there) or 'nothing'}",
            "the statistics belong to another checkpoint",
        )
    values = {}
    with path.open("rb") as stream:
        for name, tensor in stored.items():
            if tensor.dtype not in ("F32", "F64"):
                continue
            stream.seek(tensor.offset)
            raw = np.frombuffer(stream.read(tensor.num_bytes), "<f4" if tensor.dtype == "F32" else "<f8")
            values[name.rpartition(".")[2]] = raw.reshape(tensor.shape)
    return FeatureStatistics(feature, str(path), values)
