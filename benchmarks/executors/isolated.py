"""Every text alone, to its end, in the reference's data path; with a prefill of its own, or with none."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.executors.noise import Noise
from benchmarks.executors.padding import padded
from benchmarks.executors.protocol import CycleRecord, TextResult
from benchmarks.reference.policy import Prefix, ReferencePolicy
from benchmarks.timing import Moment, moment
from benchmarks.workloads import Job, TextJob
from oxygen_ros.types import FloatArray


@dataclass
class _Tally:
    """What the texts of one cycle came to."""

    steps: int = 0
    second_prefill_ns: int = 0


class SerialExecutor:
    """One prefill and one chunk per observation; then text after text, all its tokens at once.

    Without ``shares_prefix`` every text has a second prefill: two programs that know nothing of each other.
    """

    def __init__(self, name: str, policy: ReferencePolicy, noise: Noise, shares_prefix: bool) -> None:
        self.name = name
        self._policy = policy
        self._noise = noise
        self._shares_prefix = shares_prefix

    def run(self, job: Job) -> CycleRecord:
        """Run one cycle."""
        policy, device = self._policy, self._policy.device
        start = moment(device)
        prefix = policy.prefill(padded(job.inputs, (), policy.config, device))
        prefilled = moment(device)
        actions = self._act(prefix, job)
        acted = moment(device)
        tally = _Tally()
        finished = tuple(self._write(text, job, prefix, start, tally) for text in job.texts)
        end = moment(device)
        return CycleRecord(
            wall_ns=end.wall_ns - start.wall_ns,
            cpu_ns=end.cpu_ns - start.cpu_ns,
            action_latency_ns=acted.wall_ns - start.wall_ns,
            prefill_ns=prefilled.wall_ns - start.wall_ns + tally.second_prefill_ns,
            act_ns=acted.wall_ns - prefilled.wall_ns,
            decode_ns=end.wall_ns - acted.wall_ns - tally.second_prefill_ns,
            decode_steps=tally.steps,
            rows=len(job.texts),
            tokens=sum(len(text.token_ids) for text in finished),
            actions=actions,
            finished=finished,
        )

    def close(self) -> None:
        """Holds nothing between cycles."""

    def _act(self, prefix: Prefix, job: Job) -> dict[str, FloatArray]:
        config = self._policy.config
        noises = {e.name: self._noise(job.inputs.observation_id, i) for i, e in enumerate(config.experts)}
        return {
            name: self._policy.sample_actions(prefix, name, noise).cpu().numpy()
            for name, noise in noises.items()
        }

    def _write(self, text: TextJob, job: Job, prefix: Prefix, start: Moment, tally: _Tally) -> TextResult:
        policy, device = self._policy, self._policy.device
        if not self._shares_prefix or text.prompt_ids:
            before = moment(device).wall_ns
            prefix = policy.prefill(padded(job.inputs, text.prompt_ids, policy.config, device))
            tally.second_prefill_ns += moment(device).wall_ns - before
        state = policy.begin_text(prefix, text.max_tokens)
        policy.text_step(state)
        first_token = moment(device)
        for _ in range(text.max_tokens - 1):
            policy.text_step(state)
        tally.steps += text.max_tokens
        return TextResult(
            request_id=text.request_id,
            token_ids=tuple(state.tokens[0].tolist()),
            first_token_ns=first_token.wall_ns - start.wall_ns,
            completion_ns=moment(device).wall_ns - start.wall_ns,
            cycles=1,
        )


def isolated(policy: ReferencePolicy, noise: Noise) -> SerialExecutor:
    """Prefill and denoise; prefill again and write."""
    return SerialExecutor("isolated", policy, noise, shares_prefix=False)


def shared(policy: ReferencePolicy, noise: Noise) -> SerialExecutor:
    """One prefill for actions and text; a text with a prompt of its own still needs a prefill of its own."""
    return SerialExecutor("shared", policy, noise, shares_prefix=True)
