"""One prefill per observation, leased by actions and texts; texts decoded together in what time is left.

The engine owns the accounts of the KV memory, the runner owns the memory. It knows no model family, no ROS
and no wall clock. ``submit`` and ``cancel`` may be called from any thread, all else from the control thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from oxygen_ros.clock import Clock
from oxygen_ros.engine.admission import Inbox, Submission, encode_prompt
from oxygen_ros.engine.budget import CycleBudget, StepCostEstimator
from oxygen_ros.engine.request import Prefix, RequestState
from oxygen_ros.engine.settings import EngineSettings
from oxygen_ros.engine.texts import LivingTexts, must_have
from oxygen_ros.errors import ContractError, IntegrityError, RunnerError
from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.kv.ledger import KVLedger
from oxygen_ros.models.protocol import Guidance, ModelInputs, ModelSpec, Tokenizer
from oxygen_ros.runners.protocol import ModelRunner, WarmUp
from oxygen_ros.types import FinishReason, FloatArray, MemoryUse, TextDelta, TextRequest

__all__ = ["DecodeOutcome", "Engine", "EngineSettings"]


@dataclass(frozen=True)
class DecodeOutcome:
    """What ``decode`` came to: steps run, steps that would have fitted, texts advanced, tokens written."""

    num_steps: int = 0
    num_steps_possible: int = 0
    num_rows: int = 0
    num_tokens: int = 0


class Engine:
    """Owns the accounts; makes sure that every slot and row is held by those, and only those, that use it."""

    def __init__(
        self, runner: ModelRunner, tokenizer: Tokenizer, clock: Clock, settings: EngineSettings | None = None
    ) -> None:
        self._runner = runner
        self._tokenizer = tokenizer
        self._clock = clock
        self.settings = settings or EngineSettings()
        self._ledger = KVLedger(runner.layout)
        self._inbox = Inbox(max_size=2 * (self.settings.max_waiting + runner.layout.num_rows))
        self._texts = LivingTexts(
            runner.spec, runner.layout, self._ledger, self._inbox, tokenizer, clock, self.settings
        )
        self._estimator = StepCostEstimator(self.settings.cost_quantile, self.settings.cost_window)
        self._current: Prefix | None = None
        self._has_stale_tokens = False
        self.num_prefills = 0

    @property
    def spec(self) -> ModelSpec:
        """Facts of the model."""
        return self._runner.spec

    @property
    def layout(self) -> KVLayout:
        """Shape of the KV memory."""
        return self._runner.layout

    # Any thread.

    def submit(self, request: TextRequest) -> str | None:
        """Ask for a text. None: taken, and exactly one final delta will come, be it a refusal.

        Otherwise the reason why it was not taken (an id that is alive or empty, a flood of requests): no
        delta will come, and the caller tells the asker.
        """
        ids, refusal = encode_prompt(request, self.spec, self.layout, self.settings.rules, self._tokenizer)
        not_taken = self._inbox.put(Submission(request, self._clock.now_ns(), ids, refusal))
        return str(not_taken) if not_taken else None

    def cancel(self, request_id: str = "", task: str = "") -> int:
        """End one text, all texts of a task, or all when both are empty. Number of living texts hit.

        They end before the next decode step and hold nothing from then on.
        """
        return self._inbox.cancel(request_id, task)

    def is_alive(self, request_id: str) -> bool:
        """True while a text of this id has not ended: its final delta is still to come."""
        return self._inbox.is_alive(request_id)

    def refusals(self) -> dict[str, int]:
        """Text requests refused since the start, by kind."""
        return self._inbox.refusals()

    # Control thread.

    def watch_intake(self, gate: AbstractContextManager[object]) -> None:
        """Have ``gate`` around every moment at which requests and cancels are taken in. Before any cycle.

        For recording and replay: it is the moment, in logical time, at which they begin to count.
        """
        self._inbox.gate = gate

    @property
    def num_waiting(self) -> int:
        """Requests that wait for a row."""
        return self._texts.num_waiting

    def memory(self) -> MemoryUse:
        """KV memory that is used and fits."""
        return self._ledger.use()

    def warm_up(self) -> WarmUp:
        """Let the runner run every shape, and take its costs as first measures. Blocks.

        Raises:
            RunnerError: if the model fails.
        """
        with self._runner_at_work():
            costs = self._runner.warm_up()
        self._estimator.seed(costs.decode_step_ns)
        return costs

    def prefill(self, inputs: ModelInputs, stamp_ns: int) -> None:
        """Make ``inputs`` the current prefix. A second call for the same observation does nothing.

        Raises:
            ContractError: if the inputs are out of contract; there is no current prefix then.
            RunnerError: if the model fails.
        """
        if self._current and self._current.observation_id == inputs.observation_id:
            return
        self.release_prefix()
        ids = inputs.token_ids
        if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < self.spec.vocab_size:
            raise ContractError(
                "token_range",
                f"prompt tokens {ids.min()}..{ids.max()}, vocabulary 0..{self.spec.vocab_size - 1}",
            )
        lease = must_have(self._ledger.prefixes.acquire(), "prefix slot")
        self.num_prefills += 1
        try:
            with self._runner_at_work():
                num_tokens = self._runner.prefill(inputs, lease.slot)
            self._current = Prefix(inputs.observation_id, stamp_ns, lease, num_tokens)
        finally:
            if self._current is None:
                self._ledger.prefixes.release(lease)

    def release_prefix(self) -> None:
        """No current prefix any more: running texts keep their lease, none begins until the next prefill."""
        if self._current:
            self._ledger.prefixes.release(self._current.lease)
            self._current = None

    def act(self, expert: str, seed: int, guidance: Guidance | None = None) -> FloatArray:
        """One chunk of ``expert`` from the current prefix: float32 [horizon, action_dim], a copy.

        Raises:
            ContractError: if there is no current prefix.
            RunnerError: if the model fails or its actions are not finite.
        """
        if self._current is None:
            raise ContractError("no_prefix", "there is no current prefix to act on", "prefill first")
        with self._runner_at_work():
            pull = () if guidance is None else (guidance,)
            actions = self._runner.sample_actions(self._current.lease.slot, expert, seed, *pull)
            if not np.isfinite(actions).all():
                raise RunnerError("actions_not_finite", f"actions of expert '{expert}' are not finite")
        return np.array(actions, dtype=np.float32)

    def decode(self, budget: CycleBudget) -> DecodeOutcome:
        """Begin, end and advance texts, in rounds of decode steps, until the budget or the texts are used up.

        Raises:
            RunnerError: if the model fails.
        """
        num_steps = num_tokens = 0
        possible: int | None = None
        advanced: set[str] = set()
        while True:
            texts = self._texts.begin_round(self._current)
            if possible is None:
                cost_ns = self._estimator.estimate_ns(max(1, len(texts)))
                possible = budget.num_steps(cost_ns, self._clock.now_ns())
            steps = self._run_steps(texts, budget, num_steps)
            if not steps:
                break
            num_steps += steps
            advanced |= {text.request.request_id for text in texts}
            num_tokens += self._texts.end_round(texts, self._read_tokens())
        if texts and not num_steps:
            self._forget_stall(_tokens_fed(texts), budget)
        return DecodeOutcome(num_steps, possible, len(advanced), num_tokens)

    def take_deltas(self) -> list[TextDelta]:
        """All deltas since the last call, in order."""
        return self._texts.take_deltas()

    def reset(self, detail: str) -> None:
        """End all texts as cancelled and forget the current prefix. The engine can be used at once."""
        self._end_all(FinishReason.CANCELLED, detail)

    def fail(self, detail: str) -> None:
        """End all texts as errors and forget the current prefix. The engine can be used at once."""
        self._has_stale_tokens = True  # of a round that was broken off
        self._end_all(FinishReason.ERROR, detail)

    def check_integrity(self) -> None:
        """Prove that leases and holders are the same ones.

        Raises:
            IntegrityError: if they are not.
        """
        self._ledger.check_integrity()
        seats = self._texts.seats
        prefixes = [seat.prefix.lease for seat in seats] + ([self._current.lease] if self._current else [])
        for name, leases, ledger in (
            ("prefix", prefixes, self._ledger.prefixes),
            ("row", [seat.row for seat in seats], self._ledger.rows),
        ):
            if sorted(x.lease_id for x in leases) != ledger.lease_ids():
                raise IntegrityError("kv_holders", f"{name} leases {ledger.lease_ids()} are held by {leases}")

    def _run_steps(self, texts: list[RequestState], budget: CycleBudget, num_before: int) -> int:
        """At most one round of steps; the deadline and the inbox are looked at before each. Steps run."""
        for num_done in range(self.settings.steps_per_round):
            if num_done:
                self._texts.take_inbox()
            active = [text for text in texts if text.can_step()]
            num_fed = _tokens_fed(active)
            now_ns = self._clock.now_ns()
            cost_ns = self._estimator.estimate_ns(num_fed)
            if not active or not self.settings.steps.allows(num_before + num_done, cost_ns, budget, now_ns):
                return num_done
            with self._runner_at_work():
                if self._has_stale_tokens:
                    self._runner.read_tokens()
                    self._has_stale_tokens = False
                self._runner.decode_step([text.batch_row() for text in active])
            self._estimator.observe(num_fed, self._clock.now_ns() - now_ns)
            for text in active:
                text.num_steps += 1
        return self.settings.steps_per_round

    def _forget_stall(self, num_tokens: int, budget: CycleBudget) -> None:
        """After a cycle with time left but no step that fits: without new measures, one stall would last."""
        remaining_ns = budget.remaining_ns(self._clock.now_ns())
        if 0 < remaining_ns < self._estimator.estimate_ns(num_tokens):
            self._estimator.forget_dearest(num_tokens)

    def _read_tokens(self) -> dict[int, list[int | None]]:
        with self._runner_at_work():
            return self._runner.read_tokens()

    def _end_all(self, reason: FinishReason, detail: str) -> None:
        self._texts.end_all(reason, detail)
        self.release_prefix()

    @contextlib.contextmanager
    def _runner_at_work(self) -> Iterator[None]:
        """Around every call of the runner: its failure ends all texts before it is passed on."""
        try:
            yield
        except RunnerError as error:
            self.fail(str(error))
            raise


def _tokens_fed(texts: list[RequestState]) -> int:
    """Tokens that the next step of ``texts`` puts through the model."""
    return sum(text.tokens_fed() for text in texts)
