"""Runs every shape of a runner once and measures it, before the first cycle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from oxygen_ros.clock import Clock
from oxygen_ros.models.family import VLAModel
from oxygen_ros.models.protocol import ModelInputs
from oxygen_ros.runners.device import describe, measure_ns
from oxygen_ros.runners.protocol import BatchRow, ModelRunner, WarmUp
from oxygen_ros.types import SamplingParams

DRAWN = SamplingParams(temperature=1.0, top_k=8)


def measure_all(
    runner: ModelRunner, model: VLAModel, row_buckets: Sequence[int], num_runs: int, clock: Clock
) -> WarmUp:
    """Costs of the longest prefix, of every expert's chunk and of decode steps by tokens fed.

    Decode steps are measured with full prefixes and nearly full rows, the dearest there are. Buckets
    beyond the number of rows are measured as one suffix prompt of that many tokens.
    """

    def timed(work: Callable[[], object]) -> tuple[int, ...]:
        work()
        return tuple(measure_ns(work, model.device, clock) for _ in range(num_runs))

    layout = runner.layout
    for num_images in range(1, model.max_images):
        runner.prefill(_inputs(model, num_images), 0)
    full = longest_inputs(model)
    prefill_ns = timed(partial(runner.prefill, full, 0))
    for slot in range(layout.num_prefixes):
        num_tokens = runner.prefill(full, slot)
    act_ns = tuple(
        cost
        for expert in runner.spec.experts
        for cost in timed(partial(runner.sample_actions, 0, expert.name, 0))
    )
    decode_step_ns = {}
    if runner.spec.supports_text:
        for bucket, rows in _batches(runner, row_buckets, num_tokens).items():
            decode_step_ns[bucket] = timed(partial(runner.decode_step, rows))
            runner.read_tokens()
        runner.decode_step([_row(runner, 0, num_tokens, DRAWN)])
        runner.read_tokens()
    return WarmUp(
        device=describe(model.device),
        dtype=str(model.dtype).removeprefix("torch."),
        backend=f"eager ({model.kernels})",
        prefill_ns=prefill_ns,
        act_ns=act_ns,
        decode_step_ns=decode_step_ns,
    )


def longest_inputs(model: VLAModel) -> ModelInputs:
    """The longest prompt and all images, grey."""
    return _inputs(model, model.max_images)


def _inputs(model: VLAModel, num_images: int) -> ModelInputs:
    """The longest prompt and so many grey images."""
    side = model.image_size
    tokens = np.zeros(model.max_prompt_tokens, dtype=np.int64)
    state = np.zeros(model.state_dim, dtype=np.float32) if model.state_dim else None
    return ModelInputs(0, np.zeros((num_images, 3, side, side), dtype=np.float32), tokens, state)


def _batches(runner: ModelRunner, row_buckets: Sequence[int], num_tokens: int) -> dict[int, list[BatchRow]]:
    """A batch for every bucket: of rows as far as there are rows, then of one suffix prompt."""
    layout = runner.layout
    counts = sorted({bucket for bucket in row_buckets if bucket < layout.num_rows} | {layout.num_rows})
    batches = {count: [_row(runner, row, num_tokens) for row in range(count)] for count in counts}
    for bucket in row_buckets:
        if layout.num_rows < bucket <= layout.row_capacity:
            batches[bucket] = [_prompt_row(bucket, num_tokens)]
    return batches


def _row(runner: ModelRunner, row: int, num_tokens: int, sampling: SamplingParams | None = None) -> BatchRow:
    """A text that has filled its row but for one token; prefixes are shared out evenly."""
    held = runner.layout.row_capacity - 1
    slot = row % runner.layout.num_prefixes
    return BatchRow(row, slot, num_tokens, held, (), held + 1, sampling or SamplingParams())


def _prompt_row(num_prompt_tokens: int, num_tokens: int) -> BatchRow:
    return BatchRow(0, 0, num_tokens, 0, (0,) * num_prompt_tokens, 0, SamplingParams())
