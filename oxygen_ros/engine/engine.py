"""One prefill per observation, leased by actions and texts; texts decoded together in what time is left.

The engine owns the accounts of the KV memory, the runner owns the memory. It knows no model family, no ROS
and no wall clock. ``submit`` and ``cancel`` may be called from any thread, all else from the control thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from oxygen_ros.clock import Clock
from oxygen_ros.engine.admission import Inbox, Submission, encode_prompt
from oxygen_ros.engine.budget import AutoSteps, CycleBudget, StepCostEstimator, StepPolicy
from oxygen_ros.engine.request import Prefix, RequestState, Seat
from oxygen_ros.engine.scheduler import Plan, SchedulerLimits, plan
from oxygen_ros.engine.writer import TextRules, TextWriter
from oxygen_ros.errors import ContractError, IntegrityError, RunnerError
from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.kv.ledger import KVLedger, Lease
from oxygen_ros.models.protocol import ModelInputs, ModelSpec, Tokenizer
from oxygen_ros.runners.protocol import ModelRunner, WarmUp
from oxygen_ros.types import FinishReason, FloatArray, MemoryUse, TextDelta, TextRequest


@dataclass(frozen=True)
class EngineSettings:
    """Choices that hold while the engine lives.

    Attributes:
        steps: how many decode steps a cycle takes.
        steps_per_round: decode steps between two reads of tokens.
        max_waiting: requests that wait for a row; also how many may come in between two cycles, doubled.
        aging_ns: waiting time that is worth one unit of priority.
        rules: when a text is taken for none, or for a loop.
    """

    steps: StepPolicy = field(default_factory=AutoSteps)
    steps_per_round: int = 4
    max_waiting: int = 16
    aging_ns: int = 1_000_000_000
    rules: TextRules = field(default_factory=TextRules)


@dataclass(frozen=True)
class DecodeOutcome:
    """What ``decode`` came to: steps run, steps that would have fitted, texts advanced, tokens written."""

    num_steps: int = 0
    num_steps_possible: int = 0
    num_rows: int = 0
    num_tokens: int = 0


class Engine:
    """Every text that was taken ends with exactly one final delta, and nothing is held for it after that."""

    def __init__(
        self, runner: ModelRunner, tokenizer: Tokenizer, clock: Clock, settings: EngineSettings | None = None
    ) -> None:
        self._runner = runner
        self._tokenizer = tokenizer
        self._clock = clock
        self._settings = settings or EngineSettings()
        self._ledger = KVLedger(runner.layout)
        self._limits = SchedulerLimits(
            num_prefixes=runner.layout.num_prefixes,
            num_rows=runner.layout.num_rows,
            max_waiting=self._settings.max_waiting,
            aging_ns=self._settings.aging_ns,
        )
        self._inbox = Inbox(max_size=2 * self._settings.max_waiting + runner.layout.num_rows)
        self._estimator = StepCostEstimator()
        self._texts: dict[str, RequestState] = {}  # in order of submission
        self._deltas: list[TextDelta] = []
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
        ids, refusal = encode_prompt(request, self.spec, self.layout, self._tokenizer)
        not_taken = self._inbox.put(Submission(request, self._clock.now_ns(), ids, refusal))
        return str(not_taken) if not_taken else None

    def cancel(self, request_id: str = "", task: str = "") -> int:
        """End one text, all texts of a task, or all when both are empty. Number of living texts hit.

        They end before the next decode step and hold nothing from then on.
        """
        return self._inbox.cancel(request_id, task)

    def refusals(self) -> dict[str, int]:
        """Text requests refused since the start, by kind."""
        return self._inbox.refusals()

    # Control thread.

    @property
    def num_waiting(self) -> int:
        """Requests that wait for a row."""
        return sum(text.seat is None for text in self._texts.values())

    @property
    def num_decoding(self) -> int:
        """Texts that hold a row."""
        return sum(text.seat is not None for text in self._texts.values())

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
        self._drop_current()
        ids = inputs.token_ids
        if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < self.spec.vocab_size:
            raise ContractError(
                "token_range",
                f"prompt tokens {ids.min()}..{ids.max()}, vocabulary 0..{self.spec.vocab_size - 1}",
            )
        lease = _must_have(self._ledger.prefixes.acquire(), "prefix slot")
        self.num_prefills += 1
        try:
            with self._runner_at_work():
                num_tokens = self._runner.prefill(inputs, lease.slot)
            self._current = Prefix(inputs.observation_id, stamp_ns, lease, num_tokens)
        finally:
            if self._current is None:
                self._ledger.prefixes.release(lease)

    def act(self, expert: str, seed: int) -> FloatArray:
        """One chunk of ``expert`` from the current prefix: float32 [horizon, action_dim], a copy.

        Raises:
            ContractError: if there is no current prefix.
            RunnerError: if the model fails or its actions are not finite.
        """
        if self._current is None:
            raise ContractError("no_prefix", "there is no current prefix to act on", "prefill first")
        with self._runner_at_work():
            actions = self._runner.sample_actions(self._current.lease.slot, expert, seed)
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
            rows = self._begin_round()
            if possible is None:
                cost_ns = self._estimator.estimate_ns(max(1, len(rows)))
                possible = budget.num_steps(cost_ns, self._clock.now_ns())
            steps = self._run_steps(rows, budget, num_steps)
            if not steps:
                break
            num_steps += steps
            advanced |= {text.request.request_id for text in rows}
            num_tokens += self._end_round(rows)
        if rows and not num_steps and budget.remaining_ns(self._clock.now_ns()) > 0:
            # Without new measures, one stall would keep texts waiting for good.
            self._estimator.forget_dearest(_tokens_fed(rows))
        return DecodeOutcome(num_steps, possible, len(advanced), num_tokens)

    def take_deltas(self) -> list[TextDelta]:
        """All deltas since the last call, in order."""
        deltas, self._deltas = self._deltas, []
        return deltas

    def reset(self, detail: str) -> None:
        """End all texts as cancelled and forget the current prefix. The engine can be used at once."""
        self._end_all(FinishReason.CANCELLED, detail)

    def fail(self, detail: str) -> None:
        """End all texts as errors and forget the current prefix. The engine can be used at once."""
        self._end_all(FinishReason.ERROR, detail)

    def check_integrity(self) -> None:
        """Prove that leases and holders are the same ones.

        Raises:
            IntegrityError: if they are not.
        """
        self._ledger.check_integrity()
        seats = [text.seat for text in self._texts.values() if text.seat]
        prefixes = [seat.prefix.lease for seat in seats] + ([self._current.lease] if self._current else [])
        for name, leases, ledger in (
            ("prefix", prefixes, self._ledger.prefixes),
            ("row", [seat.row for seat in seats], self._ledger.rows),
        ):
            if sorted(x.lease_id for x in leases) != ledger.lease_ids():
                raise IntegrityError("kv_holders", f"{name} leases {ledger.lease_ids()} are held by {leases}")

    def _begin_round(self) -> list[RequestState]:
        """Take in what other threads want; end and begin texts as planned. The texts of the next round."""
        self._take_inbox()
        entries = [text.entry() for text in self._texts.values()]
        slot = self._current.lease.slot if self._current else None
        todo = plan(entries, self._limits, slot, self._clock.now_ns())
        for ending in todo.ended:
            if ending.reason is FinishReason.REFUSED:
                self._inbox.count_refusal(ending.code)
            self._end(self._texts[ending.request_id], ending.reason, f"{ending.code}: {ending.detail}")
        self._admit(todo)
        return [self._texts[request_id] for request_id in todo.decoding]

    def _admit(self, todo: Plan) -> None:
        for request_id in todo.admitted:
            assert self._current is not None
            lease = self._ledger.prefixes.retain(self._current.lease)
            prefix = Prefix(
                self._current.observation_id, self._current.stamp_ns, lease, self._current.num_tokens
            )
            row = _must_have(self._ledger.rows.acquire(), "text row")
            self._texts[request_id].begin(Seat(row, prefix))

    def _run_steps(self, texts: list[RequestState], budget: CycleBudget, num_before: int) -> int:
        """At most one round of steps; the deadline and the inbox are looked at before each. Steps run."""
        for num_done in range(self._settings.steps_per_round):
            if num_done:
                self._take_inbox()
            active = [text for text in texts if text.can_step()]
            num_fed = _tokens_fed(active)
            now_ns = self._clock.now_ns()
            cost_ns = self._estimator.estimate_ns(num_fed)
            if not active or not self._settings.steps.allows(num_before + num_done, cost_ns, budget, now_ns):
                return num_done
            with self._runner_at_work():
                self._discard_stale_tokens()
                self._runner.decode_step([text.batch_row() for text in active])
            self._estimator.observe(num_fed, self._clock.now_ns() - now_ns)
            for text in active:
                text.num_steps += 1
        return self._settings.steps_per_round

    def _end_round(self, texts: list[RequestState]) -> int:
        """Read the round's tokens, make deltas of them, end the texts that are complete. Tokens written."""
        with self._runner_at_work():
            tokens = self._runner.read_tokens()
        num_written = 0
        for text in texts:
            if text.seat is None:
                continue  # it was cancelled after one of the round's steps
            for token_id in tokens.get(text.seat.row.slot, []):
                num_written += 1
                if text.writer.add(token_id):
                    break
            if text.writer.finish_reason:
                self._end(text, text.writer.finish_reason, text.writer.detail, text.writer.take())
            elif new := text.writer.take():
                self._deltas.append(text.delta(new))
        return num_written

    def _discard_stale_tokens(self) -> None:
        """After a failure within a round, the runner may still hold tokens of texts that have ended."""
        if self._has_stale_tokens:
            self._runner.read_tokens()
            self._has_stale_tokens = False

    def _take_inbox(self) -> None:
        submissions, cancelled = self._inbox.take()
        for item in submissions:
            writer = TextWriter(self._tokenizer, self.spec, item.request.sampling, self._settings.rules)
            text = RequestState(item.request, item.submitted_ns, item.prompt_ids, writer)
            self._texts[item.request.request_id] = text
            if item.refusal:
                self._inbox.count_refusal(item.refusal.code)
                self._end(text, FinishReason.REFUSED, str(item.refusal))
        for request_id in cancelled:
            if request_id in self._texts:
                self._end(self._texts[request_id], FinishReason.CANCELLED, "cancelled on request")

    def _end(self, text: RequestState, reason: FinishReason, detail: str, rest: str = "") -> None:
        """The one way out: the final delta, and everything it held is given back."""
        self._deltas.append(text.finish(reason, detail, rest))
        if text.seat:
            self._ledger.rows.release(text.seat.row)
            self._ledger.prefixes.release(text.seat.prefix.lease)
            text.seat = None
        del self._texts[text.request.request_id]
        self._inbox.forget(text.request.request_id)

    def _end_all(self, reason: FinishReason, detail: str) -> None:
        self._take_inbox()
        for text in list(self._texts.values()):
            self._end(text, reason, detail)
        self._drop_current()

    def _drop_current(self) -> None:
        if self._current:
            self._ledger.prefixes.release(self._current.lease)
            self._current = None

    @contextlib.contextmanager
    def _runner_at_work(self) -> Iterator[None]:
        """Around every call of the runner: its failure ends all texts before it is passed on."""
        try:
            yield
        except RunnerError as error:
            self._has_stale_tokens = True
            self.fail(str(error))
            raise


def _tokens_fed(texts: list[RequestState]) -> int:
    """Tokens that the next step of ``texts`` puts through the model."""
    return sum(text.tokens_fed() for text in texts)


def _must_have(lease: Lease | None, what: str) -> Lease:
    if lease is None:
        raise IntegrityError("kv_no_slot", f"no {what} is free where the plan has one")
    return lease
