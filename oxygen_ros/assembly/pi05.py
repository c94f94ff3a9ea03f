"""A pi0.5 or pi0 checkpoint, opened, fitted to the robot and loaded. Imports torch."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path

import torch

from oxygen_ros.assembly.model import Model, check_memory
from oxygen_ros.clock import Clock
from oxygen_ros.config import OxygenConfig
from oxygen_ros.errors import ConfigError
from oxygen_ros.models.pi05.checkpoint import Checkpoint, Origin
from oxygen_ros.models.pi05.checkpoint_open import OpenOptions, open_checkpoint
from oxygen_ros.models.pi05.loading import load_model
from oxygen_ros.models.pi05.processor import Pi05Processor
from oxygen_ros.models.pi05.prompt import BelowRange
from oxygen_ros.models.tokenizers import LocalTokenizer, is_gemma, open_tokenizer
from oxygen_ros.robots.transform import make_transform
from oxygen_ros.runners.compiled import CompiledRunner
from oxygen_ros.runners.device import pick_device, pick_dtype
from oxygen_ros.runners.eager import EagerRunner

PALIGEMMA_VOCABULARY = 257152
"""Entries of a model that was trained on PaliGemma's tokenizer."""


@dataclasses.dataclass(frozen=True)
class OpenedPi05:
    """A checkpoint that fits its robot and its tokenizer, with no weight loaded.

    Attributes:
        warnings: what is odd but not wrong, one sentence each.
    """

    checkpoint: Checkpoint
    tokenizer: LocalTokenizer
    processor: Pi05Processor
    warnings: tuple[str, ...]


def open_pi05(config: OxygenConfig) -> OpenedPi05:
    """Open what ``config.model`` names for ``config.robot``, and load nothing.

    Raises:
        ConfigError: if checkpoint and robot do not fit together.
        CheckpointError: if the checkpoint or the tokenizer cannot be used.
    """
    opened = _open(config)
    tokenizer = _tokenizer(config, opened)
    checkpoint = dataclasses.replace(
        opened,
        config=dataclasses.replace(
            opened.config,
            num_denoise_steps=config.model.num_denoise_steps,
            stop_token_ids=opened.config.stop_token_ids | tokenizer.end_ids,
        ),
    )
    _check_experts(config, checkpoint)
    adapts = config.robot.adapt_to_pi and checkpoint.origin is Origin.OPENPI
    numbers = make_transform(config.robot, adapt_to_pi=adapts)
    below_range = BelowRange(config.model.state_below_range)
    processor = Pi05Processor(checkpoint, tokenizer, config.robot, numbers, below_range)
    return OpenedPi05(checkpoint, tokenizer, processor, _warnings(config, checkpoint, tokenizer, processor))


def build_pi05(config: OxygenConfig, clock: Clock) -> Model:
    """Everything is checked before the first weight is read, so that a refusal comes at once.

    Raises:
        ConfigError: if checkpoint, robot and device do not fit together.
        CheckpointError: if the checkpoint cannot be used.
    """
    device, dtype = pick_device(config.runner.device), pick_dtype(config.runner.dtype)
    torch.set_num_threads(config.runner.num_threads)
    opened = open_pi05(config)
    checkpoint, vocabulary = opened.checkpoint, opened.tokenizer.file
    model = load_model(checkpoint, dtype, device)
    layout = model.kv_layout(config.kv.num_prefixes, config.kv.num_rows, config.kv.row_capacity)
    check_memory(layout, config)
    is_compiled, allow_eager = config.runner.kind == "compiled", config.runner.allow_eager
    runner = (partial(CompiledRunner, allow_eager=allow_eager) if is_compiled else EagerRunner)(
        model,
        layout,
        row_buckets=config.runner.row_buckets,
        warm_up_runs=config.runner.warm_up_runs,
        clock=clock,
    )
    known_as = vocabulary.known_as or "not one we know"
    return Model(
        runner=runner,
        processor=opened.processor,
        tokenizer=opened.tokenizer,
        is_stand_in=False,
        has_relative_actions=opened.processor.relative is not None,
        notes=(
            f"checkpoint {checkpoint.path}: {checkpoint.family}, {checkpoint.num_parameters} parameters",
            f"dialect {checkpoint.dialect.name}: {checkpoint.dialect_reason}",
            *checkpoint.decisions,
            f"cameras: {opened.processor.camera_map()}",
            f"tokenizer {vocabulary.path}: {known_as}, sha256 {vocabulary.sha256}",
        ),
        warnings=opened.warnings,
        counts=lambda: opened.processor.counts,
    )


def _warnings(
    config: OxygenConfig, checkpoint: Checkpoint, tokenizer: LocalTokenizer, processor: Pi05Processor
) -> tuple[str, ...]:
    found = [*checkpoint.warnings, *processor.warnings()]
    robot = config.robot
    if robot.transform == "aloha" and robot.adapt_to_pi and checkpoint.origin is Origin.LEROBOT:
        found.append("robot.adapt_to_pi is not applied: LeRobot's checkpoints are trained without its maps")
    if robot.relative_actions and checkpoint.origin is Origin.LEROBOT and checkpoint.relative is None:
        found.append(
            "robot.relative_actions is not applied: the checkpoint says that its actions are absolute"
        )
    if tokenizer.file.known_as is None:
        found.append(
            f"the tokenizer {tokenizer.file.path} is none that is known (sha256 {tokenizer.file.sha256})"
        )
    return tuple(found)


def _open(config: OxygenConfig) -> Checkpoint:
    model = config.model
    if not model.checkpoint:
        raise ConfigError(
            "no_checkpoint",
            "model.checkpoint is empty; wanted the folder of a checkpoint",
            "checkpoint:=/path/to/checkpoint, or runner.kind: fake",
        )
    options = OpenOptions(
        dialect=model.dialect,
        asset_id=model.asset_id,
        horizon=model.horizon,
        max_prompt_tokens=model.max_prompt_tokens,
        attention=model.attention_mode,
        openpi_prompt=model.openpi_prompt,
    )
    return open_checkpoint(Path(model.checkpoint).expanduser(), options)


def _tokenizer(config: OxygenConfig, checkpoint: Checkpoint) -> LocalTokenizer:
    given = config.model.tokenizer
    path = Path(given).expanduser() if given else checkpoint.tokenizer_path
    if path is None:
        raise ConfigError(
            "no_tokenizer",
            f"{checkpoint.path} has no tokenizer, and model.tokenizer is empty; nothing is ever downloaded",
            f"put {checkpoint.tokenizer_name or 'the tokenizer'}'s file there, or name it by model.tokenizer",
        )
    tokenizer = open_tokenizer(path)
    if checkpoint.config.vocab_size == PALIGEMMA_VOCABULARY and not is_gemma(tokenizer):
        raise ConfigError(
            "tokenizer",
            f"{tokenizer.file.path} is not Gemma's vocabulary: a known text has other ids there",
            "use PaliGemma's own tokenizer; Gemma 3 and others have other ids",
        )
    return tokenizer


def _check_experts(config: OxygenConfig, checkpoint: Checkpoint) -> None:
    wanted, there = config.model.experts, tuple(expert.name for expert in checkpoint.config.experts)
    if wanted != there:
        raise ConfigError(
            "experts",
            f"model.experts is [{', '.join(wanted)}]; the checkpoint has [{', '.join(there)}]",
            f"model.experts: [{', '.join(there)}]",
        )
