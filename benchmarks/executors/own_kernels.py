"""Isolated and shared execution on the product's own runner: what its kernels give without its batching."""

from __future__ import annotations

import torch

from benchmarks.executors.noise import noise_seed
from benchmarks.executors.protocol import CycleRecord, TextResult
from benchmarks.timing import Moment, moment
from benchmarks.workloads import Job, TextJob
from oxygen_ros.runners.eager import EagerRunner
from oxygen_ros.runners.protocol import BatchRow
from oxygen_ros.types import SamplingParams

ACTION_SLOT = 0
TEXT_SLOT = 1


class OwnKernelsExecutor:
    """Like ``SerialExecutor``, by the runner that the product uses. Actions are out before the text too."""

    def __init__(self, name: str, runner: EagerRunner, shares_prefix: bool) -> None:
        self.name = name
        self._runner = runner
        self._shares_prefix = shares_prefix

    @property
    def _device(self) -> torch.device:
        return self._runner.model.device

    def run(self, job: Job) -> CycleRecord:
        """Run one cycle."""
        runner, device = self._runner, self._device
        start = moment(device)
        num_tokens = runner.prefill(job.inputs, ACTION_SLOT)
        prefilled = moment(device)
        actions = {
            expert.name: runner.sample_actions(
                ACTION_SLOT, expert.name, noise_seed(job.inputs.observation_id, index)
            )
            for index, expert in enumerate(runner.spec.experts)
        }
        acted = moment(device)
        second_prefill_ns = 0
        finished = []
        for text in job.texts:
            slot = ACTION_SLOT
            if not self._shares_prefix:
                before_ns = moment(device).wall_ns
                slot = TEXT_SLOT
                runner.prefill(job.inputs, slot)
                second_prefill_ns += moment(device).wall_ns - before_ns
            finished.append(self._write(text, slot, num_tokens, start))
        end = moment(device)
        return CycleRecord(
            wall_ns=end.wall_ns - start.wall_ns,
            cpu_ns=end.cpu_ns - start.cpu_ns,
            action_latency_ns=acted.wall_ns - start.wall_ns,
            prefill_ns=prefilled.wall_ns - start.wall_ns + second_prefill_ns,
            act_ns=acted.wall_ns - prefilled.wall_ns,
            decode_ns=end.wall_ns - acted.wall_ns - second_prefill_ns,
            decode_steps=sum(text.max_tokens for text in job.texts),
            rows=len(job.texts),
            tokens=sum(text.max_tokens for text in job.texts),
            actions=actions,
            finished=tuple(finished),
        )

    def close(self) -> None:
        """Holds nothing between cycles."""

    def _write(self, text: TextJob, slot: int, num_tokens: int, start: Moment) -> TextResult:
        first_token_ns = 0
        for index in range(text.max_tokens):
            self._runner.decode_step([text_row(text, 0, slot, num_tokens, index)])
            first_token_ns = first_token_ns or moment(self._device).wall_ns - start.wall_ns
        tokens = self._runner.read_tokens()[0]
        return TextResult(
            request_id=text.request_id,
            token_ids=tuple(-1 if token is None else token for token in tokens),
            first_token_ns=first_token_ns,
            completion_ns=moment(self._device).wall_ns - start.wall_ns,
            cycles=1,
        )


def text_row(text: TextJob, row: int, slot: int, prefix_tokens: int, num_written: int) -> BatchRow:
    """Place of ``text`` in a decode step after ``num_written`` tokens."""
    is_first = num_written == 0
    return BatchRow(
        row=row,
        prefix_slot=slot,
        prefix_tokens=prefix_tokens,
        suffix_tokens=0 if is_first else len(text.prompt_ids) + num_written - 1,
        new_token_ids=text.prompt_ids if is_first else (),
        tokens_written=num_written,
        sampling=SamplingParams(max_tokens=text.max_tokens),
    )
