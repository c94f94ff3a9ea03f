"""How a model is run: the few verbs that the engine calls. No torch here.

A runner owns the weights and the KV memory. The engine owns the accounts: it says which prefix slot
and which text row to use. All calls come from one thread, the control thread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.models.protocol import Guidance, ModelInputs, ModelSpec
from oxygen_ros.types import FloatArray, SamplingParams


@dataclass(frozen=True)
class BatchRow:
    """One text in a decode step.

    Attributes:
        row: text row (suffix memory) it owns.
        prefix_slot: prefix it leases.
        prefix_tokens: valid tokens of that prefix.
        suffix_tokens: tokens already in its row, before this step.
        new_token_ids: suffix prompt, in the row's first step only; all later steps feed the token the
            row wrote last. Empty in a first step (``tokens_written == 0``): the first token comes
            from the prefix itself.
        tokens_written: tokens written before this step.
        sampling: how the next token is chosen.
    """

    row: int
    prefix_slot: int
    prefix_tokens: int
    suffix_tokens: int
    new_token_ids: tuple[int, ...]
    tokens_written: int
    sampling: SamplingParams


@dataclass(frozen=True)
class WarmUp:
    """Cost of each phase as measured before the first cycle, in nanoseconds of steady time.

    ``dtype`` is the precision the runner really has, ``backend`` also says what its kernels make of it.
    ``decode_step_ns`` is by number of tokens fed: one per row, more where a row begins with its suffix
    prompt. One entry per bucket the runner declares. ``fault`` says why it does not run as asked,
    empty if it does.
    """

    device: str
    dtype: str
    backend: str
    prefill_ns: tuple[int, ...]
    act_ns: tuple[int, ...]
    decode_step_ns: dict[int, tuple[int, ...]] = field(default_factory=dict)
    fault: str = ""

    def in_words(self) -> str:
        """One line for the log: what runs where, and the median and 99th percentile of each phase."""
        phases = {"prefill": self.prefill_ns, "actions": self.act_ns}
        phases |= {f"decode of {n}": costs for n, costs in sorted(self.decode_step_ns.items())}
        costs = ", ".join(f"{name} {_p50_p99_ms(costs)}" for name, costs in phases.items() if costs)
        runs = len(self.prefill_ns)
        return f"{self.backend} on {self.device}, {self.dtype}; p50/p99 ms of {runs} warm runs: {costs}"


def _p50_p99_ms(costs_ns: Sequence[int]) -> str:
    ordered = sorted(costs_ns)
    ranks = (math.ceil(share * len(ordered)) - 1 for share in (0.5, 0.99))
    return "/".join(f"{ordered[rank] / 1e6:.1f}" for rank in ranks)


class ModelRunner(Protocol):
    """Runs one model. Every method blocks until its result is there and raises RunnerError."""

    @property
    def spec(self) -> ModelSpec:
        """Facts of the model."""
        ...

    @property
    def layout(self) -> KVLayout:
        """Shape of the KV memory the runner holds."""
        ...

    @property
    def num_compilations(self) -> int:
        """Shapes compiled, captured or built since ``warm_up``: 0, or a shape was forgotten there."""
        ...

    def warm_up(self) -> WarmUp:
        """Run every shape once and measure it. After this nothing of KV size is allocated."""
        ...

    def prefill(self, inputs: ModelInputs, prefix_slot: int) -> int:
        """Write the KV of ``inputs`` into ``prefix_slot``, in place.

        Returns:
            Number of valid prefix tokens.

        Raises:
            ContractError: if shapes, dtypes or token ids are out of contract.
        """
        ...

    def sample_actions(
        self, prefix_slot: int, expert: str, seed: int, guidance: Guidance | None = None
    ) -> FloatArray:
        """One chunk, float32 [horizon, action_dim] in model space, finite, owned by the caller.

        The prefix is read in place and unchanged: the same (prefix, seed, guidance) gives the same bits.
        """
        ...

    def decode_step(self, rows: Sequence[BatchRow]) -> None:
        """One batched forward that gives every row one token. Tokens stay with the runner."""
        ...

    def read_tokens(self) -> dict[int, list[int | None]]:
        """Tokens written since the last call, by text row, oldest first: one transfer.

        A row whose logits were not finite has None in place of a token.
        """
        ...
