"""Checks what callers hand to a runner. Everything that is refused is refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from oxygen_ros.errors import ContractError
from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.models.family import VLAModel
from oxygen_ros.models.protocol import ModelInputs, ModelSpec
from oxygen_ros.runners.protocol import BatchRow


def check_inputs(inputs: ModelInputs, model: VLAModel, layout: KVLayout) -> None:
    """Refuse model inputs whose shapes, dtypes, values or length are out of contract.

    Raises:
        ContractError: naming the input, and what was got and wanted.
    """
    side = model.image_size
    images, tokens = inputs.images, inputs.token_ids
    if images.dtype != np.float32 or images.ndim != 4 or images.shape[1:] != (3, side, side):
        got = f"{images.dtype} {list(images.shape)}"
        raise ContractError("images", f"images are {got}, wanted float32 [cameras, 3, {side}, {side}]")
    if len(images) > model.max_images:
        raise ContractError("images", f"{len(images)} images, the model takes {model.max_images}")
    if tokens.dtype != np.int64 or tokens.ndim != 1 or tokens.size == 0:
        got = f"{tokens.dtype} {list(tokens.shape)}"
        raise ContractError("token_ids", f"token_ids are {got}, wanted int64 [tokens], at least one")
    _check_ids(tokens, model.spec, "prompt")
    if model.state_dim and (inputs.state is None or inputs.state.shape != (model.state_dim,)):
        got = "none" if inputs.state is None else str(list(inputs.state.shape))
        raise ContractError("state", f"the state is {got}, wanted float32 [{model.state_dim}]")
    if inputs.state is not None and not np.isfinite(inputs.state).all():
        raise ContractError("state", "the state is not finite")
    longest = min(model.spec.max_prefix_tokens, layout.prefix_capacity)
    num_tokens = model.num_prefix_tokens(len(images), len(tokens))
    if num_tokens > longest:
        raise ContractError(
            "prefix_length",
            f"{len(images)} images and {len(tokens)} prompt tokens make {num_tokens} tokens, {longest} fit",
            "shorten the instruction",
        )


def _check_ids(ids: Sequence[int] | np.ndarray, spec: ModelSpec, what: str) -> None:
    lowest, highest = int(np.min(ids)), int(np.max(ids))
    if lowest < 0 or highest >= spec.vocab_size:
        raise ContractError(
            "token_range", f"{what} token ids {lowest}..{highest}, vocabulary 0..{spec.vocab_size - 1}"
        )


def check_rows(
    rows: Sequence[BatchRow], layout: KVLayout, spec: ModelSpec, prefix_tokens: Mapping[int, int]
) -> None:
    """Refuse a decode batch that does not fit the memory or the prefixes that lie there.

    Args:
        prefix_tokens: valid tokens of each prefix slot that was written.

    Raises:
        ContractError: naming the row and what is wrong with it.
    """
    if len({row.row for row in rows}) != len(rows):
        raise ContractError("decode_rows", f"rows of a step must differ: {[row.row for row in rows]}")
    for row in rows:
        fault = _row_fault(row, layout, prefix_tokens)
        if fault:
            raise ContractError("decode_rows", f"text row {row.row}: {fault}")
        if row.new_token_ids:
            _check_ids(row.new_token_ids, spec, "suffix prompt")


def _row_fault(row: BatchRow, layout: KVLayout, prefix_tokens: Mapping[int, int]) -> str:
    """What is wrong with one row, or nothing."""
    if not 0 <= row.row < layout.num_rows:
        return f"there are {layout.num_rows} rows"
    if row.prefix_slot not in prefix_tokens:
        return f"prefix slot {row.prefix_slot} was never written"
    if row.prefix_tokens != prefix_tokens[row.prefix_slot]:
        held = prefix_tokens[row.prefix_slot]
        return f"prefix {row.prefix_slot} holds {held} tokens, not {row.prefix_tokens}"
    if row.tokens_written and row.new_token_ids:
        return "a suffix prompt belongs to the first step"
    num_fed = len(row.new_token_ids) or min(1, row.tokens_written)
    if row.suffix_tokens < 0 or row.suffix_tokens + num_fed > layout.row_capacity:
        return f"{row.suffix_tokens} tokens and {num_fed} more, {layout.row_capacity} fit"
    return ""
