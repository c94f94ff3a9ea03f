"""A stand-in for a model: set costs, scripted text, smooth made-up actions. No weights, no torch.

It stays in the product: teams bring up topics with it, and tests get exact time from it. It is strict about
the runner contract, so that an engine that gets slots, rows or counts wrong fails here.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.clock import Clock
from oxygen_ros.errors import IntegrityError, RunnerError
from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.models.protocol import Guidance, ModelInputs, ModelSpec, Tokenizer
from oxygen_ros.runners.protocol import BatchRow, WarmUp
from oxygen_ros.types import FloatArray

ScriptedText = str | Sequence[int | None]

STAND_IN_TEXT = "Frame {observation_id}. I am a stand-in and see nothing."


@dataclass(frozen=True)
class FakeCosts:
    """What each phase costs, in nanoseconds of the clock.

    Attributes:
        decode_ns, decode_token_ns: of a decode step: fixed part, and part per token fed.
        first_call_ns: added to the first sampling of actions, as after a poor warm-up.
        jitter_ns, seed: each call costs up to so much more, by a generator of its own.
    """

    prefill_ns: int = 0
    act_ns: int = 0
    decode_ns: int = 0
    decode_token_ns: int = 0
    first_call_ns: int = 0
    jitter_ns: int = 0
    seed: int = 0

    def step_ns(self, num_tokens: int) -> int:
        """Cost of a decode step that feeds ``num_tokens``, without jitter."""
        return self.decode_ns + num_tokens * self.decode_token_ns


@dataclass(frozen=True)
class FakeCall:
    """One call of the runner: its verb, and what it was about."""

    verb: str
    observation_id: int = 0
    prefix_slot: int = 0
    expert: str = ""
    rows: tuple[BatchRow, ...] = ()


@dataclass
class _Slot:
    inputs: ModelInputs
    num_tokens: int


@dataclass
class _Row:
    inputs: ModelInputs
    script: tuple[int | None, ...]
    num_suffix: int = 0
    unread: list[int | None] = field(default_factory=list)


class FakeRunner:
    """A ModelRunner without a model. Same inputs, seed and script: same actions and text, bit for bit."""

    def __init__(
        self,
        spec: ModelSpec,
        layout: KVLayout,
        clock: Clock,
        tokenizer: Tokenizer,
        costs: FakeCosts | None = None,
        script: Mapping[str, ScriptedText] | None = None,
        other_texts: Sequence[str] = (STAND_IN_TEXT,),
        calls: list[FakeCall] | None = None,
    ) -> None:
        """Make a runner whose phases take their set time of ``clock``.

        Args:
            spec: what it claims to be.
            layout: KV memory it claims to hold.
            clock: moved on by the costs if simulated, waited for if real.
            tokenizer: turns the script into tokens.
            costs: of each phase; nothing costs anything by default.
            script: text by suffix prompt, as characters (an end token follows) or as tokens (repeated for
                ever; None stands for logits that are not finite). A text has ``{observation_id}`` filled in.
            other_texts: for all other prompts, by observation id, round again.
            calls: takes note of every call, for tests.
        """
        self.spec = spec
        self.layout = layout
        self.num_compilations = 0
        self._clock = clock
        self._tokenizer = tokenizer
        self._costs = costs or FakeCosts()
        self._script = dict(script or {})
        self._other_texts = tuple(other_texts)
        self._calls = calls
        self._jitter = np.random.default_rng(self._costs.seed)
        self._slots: dict[int, _Slot] = {}
        self._rows: dict[int, _Row] = {}
        self._has_acted = False
        self._failures: deque[tuple[str, str]] = deque()

    def fail_next(self, verb: str, message: str = "made to fail") -> None:
        """Make the next call of ``verb``, e.g. "prefill" or "decode_step", raise RunnerError."""
        self._failures.append((verb, message))

    def warm_up(self) -> WarmUp:
        """The set costs; takes no time itself."""
        self._note(FakeCall("warm_up"))
        buckets = [1 << n for n in range(self.layout.row_capacity.bit_length())]
        return WarmUp(
            device="none",
            dtype=self.layout.dtype,
            backend="fake",
            prefill_ns=(self._costs.prefill_ns,),
            act_ns=(self._costs.act_ns,),
            decode_step_ns={n: (self._costs.step_ns(n),) for n in buckets},
        )

    def prefill(self, inputs: ModelInputs, prefix_slot: int) -> int:
        """Keep ``inputs`` in ``prefix_slot``."""
        self._note(FakeCall("prefill", inputs.observation_id, prefix_slot))
        self._spend("prefill", self._costs.prefill_ns)
        self._must(0 <= prefix_slot < self.layout.num_prefixes, f"prefix slot {prefix_slot}")
        num_tokens = min(len(inputs.images) + len(inputs.token_ids), self.layout.prefix_capacity)
        self._slots[prefix_slot] = _Slot(inputs, num_tokens)
        return num_tokens

    def sample_actions(
        self, prefix_slot: int, expert: str, seed: int, guidance: Guidance | None = None
    ) -> FloatArray:
        """A smooth way from the state to a goal; see ``made_up_actions``. Guided rows are mixed by weight."""
        self._note(FakeCall("sample_actions", self._held(prefix_slot).observation_id, prefix_slot, expert))
        self._spend("sample_actions", self._costs.act_ns)
        shapes = {e.name: (e.horizon, e.action_dim) for e in self.spec.experts}
        self._must(expert in shapes, f"expert '{expert}' of {sorted(shapes)}")
        actions = made_up_actions(self._held(prefix_slot), expert, seed, shapes[expert])
        if guidance is None:
            return actions
        self._must(guidance.previous.shape == actions.shape, "shape of the guidance")
        return actions + guidance.weights[:, None] * (guidance.previous - actions)

    def decode_step(self, rows: Sequence[BatchRow]) -> None:
        """The next scripted token for every row."""
        self._note(FakeCall("decode_step", rows=tuple(rows)))
        self._spend("decode_step", self._costs.step_ns(sum(max(1, len(row.new_token_ids)) for row in rows)))
        self._must(0 < len({row.row for row in rows}) == len(rows), "rows of a step differ and are not none")
        for row in rows:
            self._step(row)

    def read_tokens(self) -> dict[int, list[int | None]]:
        """Tokens written since the last call, by text row."""
        self._note(FakeCall("read_tokens"))
        self._spend("read_tokens", 0)
        unread = {number: row.unread for number, row in self._rows.items() if row.unread}
        for number in unread:
            self._rows[number].unread = []
        return unread

    def _step(self, row: BatchRow) -> None:
        inputs = self._held(row.prefix_slot)
        if row.tokens_written == 0:
            self._must(0 <= row.row < self.layout.num_rows, f"text row {row.row}")
            unread = self._rows[row.row].unread if row.row in self._rows else []
            self._must(not unread, f"row {row.row} is taken before its tokens were read")
            self._rows[row.row] = _Row(inputs, self._scripted(row, inputs))
        state = self._rows[row.row]
        self._must(state.inputs is inputs, f"prefix {row.prefix_slot} was written over under row {row.row}")
        self._must(row.prefix_tokens == self._slots[row.prefix_slot].num_tokens, "length of the prefix")
        self._must(row.suffix_tokens == state.num_suffix, f"row {row.row} holds {state.num_suffix} tokens")
        is_fed = bool(row.new_token_ids) or row.tokens_written > 0
        state.num_suffix += (len(row.new_token_ids) or 1) if is_fed else 0
        self._must(state.num_suffix <= self.layout.row_capacity, f"row {row.row} is written past its end")
        state.unread.append(state.script[row.tokens_written % len(state.script)])

    def _scripted(self, row: BatchRow, inputs: ModelInputs) -> tuple[int | None, ...]:
        prompt = self._tokenizer.decode(list(row.new_token_ids))
        other = self._other_texts[inputs.observation_id % len(self._other_texts)]
        text = self._script.get(prompt, other)
        if not isinstance(text, str):
            return tuple(text)
        filled = text.replace("{observation_id}", str(inputs.observation_id))
        return (*self._tokenizer.encode(filled), *sorted(self.spec.stop_token_ids)[:1])

    def _held(self, prefix_slot: int) -> ModelInputs:
        self._must(prefix_slot in self._slots, f"prefix {prefix_slot} was never written")
        return self._slots[prefix_slot].inputs

    def _spend(self, verb: str, cost_ns: int) -> None:
        """Let the call take its time, then fail if it was told to."""
        if verb == "sample_actions" and not self._has_acted:
            cost_ns += self._costs.first_call_ns
            self._has_acted = True
        if self._costs.jitter_ns and cost_ns:
            cost_ns += int(self._jitter.integers(0, self._costs.jitter_ns + 1))
        self._clock.sleep_until_ns(self._clock.now_ns() + cost_ns)
        if self._failures and self._failures[0][0] == verb:
            raise RunnerError("fake_failure", self._failures.popleft()[1])

    def _note(self, call: FakeCall) -> None:
        if self._calls is not None:
            self._calls.append(call)

    @staticmethod
    def _must(holds: bool, what: str) -> None:
        if not holds:
            raise IntegrityError("runner_contract", f"the caller broke the runner contract: {what}")


def made_up_actions(inputs: ModelInputs, expert: str, seed: int, shape: tuple[int, int]) -> FloatArray:
    """A smooth way from the state to a goal, [horizon, action_dim], the same for the same arguments.

    The goal depends on the prompt and the expert and moves on slowly with the observation id; pictures and
    seed shift it by a hundredth at most. Values stay within 0.5 of zero unless the state begins outside.
    """
    horizon, dim = shape
    told = _uniform(dim, inputs.token_ids.tobytes(), expert.encode())
    seen = _uniform(dim, inputs.images.tobytes(), seed.to_bytes(8, "little", signed=True))
    goal = 0.4 * np.sin(2 * np.pi * (told + 0.02 * inputs.observation_id)) + 0.02 * (seen - 0.5)
    start = np.zeros(dim)
    if inputs.state is not None:
        size = min(dim, inputs.state.size)
        start[:size] = inputs.state[:size]
    share = 1 - np.exp(-np.arange(1, horizon + 1) / 20.0)
    return np.asarray(start + share[:, None] * (goal - start), dtype=np.float32)


def _uniform(size: int, *parts: bytes) -> NDArray[np.float64]:
    """``size`` numbers in [0, 1) that depend on ``parts`` alone."""
    digest = hashlib.blake2b(b"\0".join(parts), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest, "little")).random(size)
