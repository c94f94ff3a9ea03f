"""Continuous batching as the public reference does it: caches joined and split each cycle, actions last."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.executors.noise import Noise
from benchmarks.executors.padding import padded
from benchmarks.executors.protocol import CycleRecord, TextResult
from benchmarks.reference.policy import Prefix, ReferencePolicy, TextState, copied, split, stack
from benchmarks.timing import moment
from benchmarks.workloads import Job, TextJob


@dataclass
class _Running:
    """One text between two cycles."""

    text: TextJob
    state: TextState
    born_cycle: int
    born_ns: int
    first_token_ns: int = 0


class ReferenceExecutor:
    """One blocking call per observation: prefill, denoise, k steps of all texts, then all is returned."""

    name = "reference"

    def __init__(self, policy: ReferencePolicy, noise: Noise, steps_per_cycle: int, max_tokens: int) -> None:
        self._policy = policy
        self._noise = noise
        self._steps_per_cycle = steps_per_cycle
        self._max_tokens = max_tokens
        self._running: list[_Running] = []

    def run(self, job: Job) -> CycleRecord:
        """Run one cycle."""
        policy, device = self._policy, self._policy.device
        start = moment(device)
        prefix = policy.prefill(padded(job.inputs, (), policy.config, device))
        self._admit(job, prefix, start.wall_ns)
        prefilled = moment(device)
        chunks = {
            expert.name: policy.sample_actions(
                prefix, expert.name, self._noise(job.inputs.observation_id, index)
            )
            for index, expert in enumerate(policy.config.experts)
        }
        acted = moment(device)
        rows = len(self._running)
        steps, tokens, finished = self._decode(job.cycle) if rows else (0, 0, ())
        actions = {name: chunk.cpu().numpy() for name, chunk in chunks.items()}
        end = moment(device)
        return CycleRecord(
            wall_ns=end.wall_ns - start.wall_ns,
            cpu_ns=end.cpu_ns - start.cpu_ns,
            action_latency_ns=end.wall_ns - start.wall_ns,
            prefill_ns=prefilled.wall_ns - start.wall_ns,
            act_ns=acted.wall_ns - prefilled.wall_ns,
            decode_ns=end.wall_ns - acted.wall_ns,
            decode_steps=steps,
            rows=rows,
            tokens=tokens,
            actions=actions,
            finished=finished,
        )

    def close(self) -> None:
        """Drop all texts."""
        self._running.clear()

    def _admit(self, job: Job, prefix: Prefix, start_ns: int) -> None:
        """Texts with a prompt of their own need a prefill of their own: the prompt is part of the prefix."""
        policy = self._policy
        for text in job.texts:
            own = prefix
            if text.prompt_ids:
                own = policy.prefill(padded(job.inputs, text.prompt_ids, policy.config, policy.device))
            state = policy.begin_text(own, self._max_tokens)
            self._running.append(_Running(text, state, job.cycle, start_ns))

    def _decode(self, cycle: int) -> tuple[int, int, tuple[TextResult, ...]]:
        policy, device = self._policy, self._policy.device
        batch = stack([running.state for running in self._running])
        for _ in range(self._steps_per_cycle):
            policy.text_step(batch)
        for running, state in zip(self._running, split(batch), strict=True):
            running.state = copied(state)
        now_ns = moment(device).wall_ns
        tokens, finished = 0, []
        for running in list(self._running):
            count = int(running.state.count.item())
            tokens += min(self._steps_per_cycle, running.text.max_tokens - (count - self._steps_per_cycle))
            running.first_token_ns = running.first_token_ns or now_ns - running.born_ns
            if count >= running.text.max_tokens:
                self._running.remove(running)
                finished.append(_result(running, cycle, now_ns))
        return self._steps_per_cycle, tokens, tuple(finished)


def _result(running: _Running, cycle: int, now_ns: int) -> TextResult:
    ids = running.state.tokens[0, : running.text.max_tokens].tolist()
    return TextResult(
        request_id=running.text.request_id,
        token_ids=tuple(ids),
        first_token_ns=running.first_token_ns,
        completion_ns=now_ns - running.born_ns,
        cycles=cycle - running.born_cycle + 1,
    )
