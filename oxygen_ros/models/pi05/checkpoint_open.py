"""Opens a checkpoint directory: finds its kind, dialect, sizes and statistics, or refuses by name.

Reads JSON files and headers only; no weight is loaded, so a refusal leaves nothing behind.

Size: a checkpoint is put together from its files in one place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from oxygen_ros.errors import CheckpointError, ConfigError
from oxygen_ros.models.flow_matching import TimeGrid
from oxygen_ros.models.json_file import JsonObject, read_json
from oxygen_ros.models.pi05.checkpoint import CameraSlot, Checkpoint, Origin
from oxygen_ros.models.pi05.checkpoint_dtypes import check_dtypes
from oxygen_ros.models.pi05.checkpoint_kind import find_origin
from oxygen_ros.models.pi05.checkpoint_lerobot import find_dialect, read_lerobot
from oxygen_ros.models.pi05.checkpoint_names import PlainTensors, plain_tensors
from oxygen_ros.models.pi05.checkpoint_openpi import read_features
from oxygen_ros.models.pi05.checkpoint_sizes import SizeHints, find_sizes
from oxygen_ros.models.pi05.config import AttentionMode
from oxygen_ros.models.pi05.dialect import AUTO, OPENPI, Dialect, dialect_by_name
from oxygen_ros.models.pi05.names import check_names
from oxygen_ros.models.pi05.prompt import PromptStyle
from oxygen_ros.models.pi05.statistics import NormMode
from oxygen_ros.models.pt_files import find_pt, list_pt
from oxygen_ros.models.tensor_files import INDEX, SINGLE, StoredTensor, list_tensors
from oxygen_ros.models.tokenizers import FILE_NAMES

OPENPI_MAX_TOKENS = {"pi05": 200, "pi0": 48}
TOKENIZER_FOLDER = "tokenizer"


@dataclass(frozen=True)
class OpenOptions:
    """What a user may say about a checkpoint. The defaults take everything from the files.

    Attributes:
        dialect: name of a dialect, or "auto".
        asset_id: openpi: folder under ``assets`` with the statistics; empty takes the only one.
        horizon: actions per chunk. openpi's files need not say it; where files do, it must agree.
        max_prompt_tokens: upper limit; a smaller one of the checkpoint counts.
        attention: "auto", "bidirectional" or "causal_text".
        openpi_prompt: openpi: prompt form, which its files do not say.
        num_vision_heads: heads of the vision tower where its width is not the real one; 0: not given.
    """

    dialect: str = AUTO
    asset_id: str = ""
    horizon: int | None = None
    max_prompt_tokens: int | None = None
    attention: str = "auto"
    openpi_prompt: str = PromptStyle.TASK_STATE_ACTION.value
    num_vision_heads: int = 0


def open_checkpoint(path: Path | str, options: OpenOptions | None = None) -> Checkpoint:
    """Open the checkpoint in directory ``path``.

    Raises:
        CheckpointError: if it is no checkpoint, is broken, ambiguous, or of a kind that does not load.
        ConfigError: if an option contradicts the files.
    """
    folder, options = Path(path), options or OpenOptions()
    origin, sign = find_origin(folder)
    plain = plain_tensors(_stored_tensors(folder))
    summary, dtype_warnings = check_dtypes(plain.tensors)
    opened = (_open_lerobot if origin is Origin.LEROBOT else _open_openpi)(folder, plain, options)
    check_names(opened.config, {name: tensor.shape for name, tensor in plain.tensors.items()})
    return replace(
        opened,
        decisions=(f"written by {origin.value}: {sign}", *plain.decisions, summary, *opened.decisions),
        warnings=(*dtype_warnings, *opened.warnings),
    )


def _stored_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Tensors of the safetensors files; of a ``.pt`` file where there are none."""
    path = find_pt(folder)
    has_safetensors = any((folder / name).is_file() for name in (SINGLE, INDEX))
    return list_tensors(folder) if path is None or has_safetensors else list_pt(path)


def _open_lerobot(folder: Path, plain: PlainTensors, options: OpenOptions) -> Checkpoint:
    facts = read_lerobot(folder)
    if facts.family != plain.family:
        raise CheckpointError(
            "policy_type",
            f"config.json says type {facts.family!r}, the tensors are those of {plain.family!r}",
            "config and weights belong to different checkpoints",
        )
    find = partial(find_dialect, facts, read_json(folder / "config.json"), plain.tensors)
    dialect, reason = _dialect(options, find)
    hints = SizeHints(
        horizon=_horizon(options, facts.horizon),
        max_tokens=_limit(options, facts.max_tokens),
        num_vision_heads=options.num_vision_heads,
        image_size=facts.image_size,
    )
    config, decisions, warnings = find_sizes(plain, hints)
    config = replace(
        config,
        cameras=tuple(slot.name for slot in facts.cameras if not slot.is_empty),
        attention=_attention(options, config.attention),
        time_grid=_grid(dialect),
        num_denoise_steps=facts.num_denoise_steps,
        min_period=facts.periods[0],
        max_period=facts.periods[1],
        rope_frequency_dtype=torch.bfloat16 if facts.is_bfloat16 else torch.float32,
    )
    if facts.is_bfloat16:
        decisions += ("rotary frequencies: rounded to bfloat16, as LeRobot does in a bfloat16 model",)
    if config.experts[0].action_dim != facts.padded_action_dim:
        raise CheckpointError(
            "action_width",
            f"config.json says max_action_dim {facts.padded_action_dim}, the weights have "
            f"{config.experts[0].action_dim}",
            "config and weights belong to different checkpoints",
        )
    return Checkpoint(
        path=folder,
        origin=Origin.LEROBOT,
        config=config,
        dialect=dialect,
        dialect_reason=reason,
        tensors=plain.tensors,
        state=facts.state,
        action=facts.action,
        cameras=facts.cameras,
        relative=facts.relative,
        prompt_style=PromptStyle.TASK_STATE_ACTION if facts.family == "pi05" else PromptStyle.TASK_ONLY,
        tokenizer_path=_tokenizer(folder, facts.tokenizer_name),
        tokenizer_name=facts.tokenizer_name,
        renamed=facts.renamed,
        decisions=decisions,
        warnings=(*facts.warnings, *warnings),
    )


def _open_openpi(folder: Path, plain: PlainTensors, options: OpenOptions) -> Checkpoint:
    has_config = (folder / "config.json").is_file()
    document = read_json(folder / "config.json") if has_config else JsonObject(str(folder), {})
    is_pi05 = plain.family == "pi05"
    mode = NormMode.QUANTILES if is_pi05 else NormMode.MEAN_STD
    state, action = read_features(folder, options.asset_id, mode)
    stated_tokens = document.integer("max_token_len", 8) if "max_token_len" in document else None
    hints = SizeHints(
        horizon=_horizon(
            options, document.integer("action_horizon", 1) if "action_horizon" in document else None
        ),
        max_tokens=_limit(options, stated_tokens or OPENPI_MAX_TOKENS[plain.family]),
        num_vision_heads=options.num_vision_heads,
        document=document.data,
    )
    config, decisions, warnings = find_sizes(plain, hints)
    dialect, reason = _dialect(options, lambda: (OPENPI, "there are openpi's files and none of LeRobot's"))
    return Checkpoint(
        path=folder,
        origin=Origin.OPENPI,
        config=replace(config, attention=_attention(options, config.attention), time_grid=_grid(dialect)),
        dialect=dialect,
        dialect_reason=reason,
        tensors=plain.tensors,
        state=state,
        action=action,
        cameras=tuple(CameraSlot(name) for name in config.cameras),
        relative=None,
        prompt_style=PromptStyle(options.openpi_prompt) if is_pi05 else PromptStyle.TASK_ONLY,
        tokenizer_path=_tokenizer(folder, ""),
        tokenizer_name="paligemma_tokenizer.model",
        decisions=decisions,
        warnings=warnings,
    )


def _dialect(options: OpenOptions, find: Callable[[], tuple[Dialect, str]]) -> tuple[Dialect, str]:
    if options.dialect != AUTO:
        return dialect_by_name(options.dialect), "set by model.dialect"
    return find()


def _horizon(options: OpenOptions, stated: int | None) -> int:
    given = options.horizon
    if given is not None and stated is not None and given != stated:
        raise ConfigError(
            "horizon",
            f"model.horizon is {given}, the checkpoint's chunks have {stated} actions",
            f"set model.horizon to {stated}",
        )
    known = stated if given is None else given
    if known is None:
        raise ConfigError(
            "horizon_unknown",
            "the files do not say how many actions a chunk has",
            "set model.horizon to the action_horizon of the training config",
        )
    return known


def _limit(options: OpenOptions, stated: int) -> int:
    return stated if options.max_prompt_tokens is None else min(stated, options.max_prompt_tokens)


def _attention(options: OpenOptions, stated: AttentionMode) -> AttentionMode:
    return stated if options.attention == AUTO else AttentionMode(options.attention)


def _grid(dialect: Dialect) -> TimeGrid:
    return TimeGrid.EXACT if dialect.has_exact_grid else TimeGrid.ACCUMULATED


def _tokenizer(folder: Path, relative_name: str) -> Path | None:
    """Tokenizer beside the weights: where the step says, or under a usual name. A Hub id is no path."""
    places = [folder / relative_name] if relative_name and not Path(relative_name).is_absolute() else []
    for place in (*places, folder / TOKENIZER_FOLDER, folder):
        if any((place / name).is_file() for name in FILE_NAMES):
            return place
    return None
