"""Runs a model by direct calls. The oracle that every other runner is compared with.

It owns the KV memory and what hangs on it: the state of each prefix, the newest token of each row, the
tokens nobody has read yet. Weights belong to the model. One thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from oxygen_ros.clock import Clock, SteadyClock
from oxygen_ros.errors import ConfigError, ContractError, RunnerError
from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.kv.memory import KVMemory
from oxygen_ros.models.family import PrefixInputs, PrefixState, TensorGuidance, VLAModel
from oxygen_ros.models.protocol import Guidance, ModelInputs, ModelSpec
from oxygen_ros.models.sampling import choose_tokens, plan_draws
from oxygen_ros.models.text_batch import TextPlanner, TextSegment
from oxygen_ros.runners.compilations import num_compiled_graphs
from oxygen_ros.runners.contract import check_inputs, check_rows
from oxygen_ros.runners.device import wait_for
from oxygen_ros.runners.protocol import BatchRow, WarmUp
from oxygen_ros.runners.warm_up import measure_all
from oxygen_ros.types import FloatArray

ROW_BUCKETS = (1, 2, 4, 8, 16, 32)
WARM_UP_RUNS = 20


class EagerRunner:
    """Implements ``runners.protocol.ModelRunner``. What it gives to callers is theirs: owned copies."""

    def __init__(
        self,
        model: VLAModel,
        layout: KVLayout,
        *,
        row_buckets: Sequence[int] = ROW_BUCKETS,
        warm_up_runs: int = WARM_UP_RUNS,
        clock: Clock | None = None,
    ) -> None:
        """Allocate the KV memory.

        Args:
            model: loaded, on the device it runs on.
            layout: from ``model.kv_layout``, or of the same shape.
            row_buckets: numbers of rows that warm-up measures; those beyond ``layout.num_rows`` are left out.
            warm_up_runs: timed runs of each shape.
            clock: measures warm-up where there are no device events.

        Raises:
            ConfigError: if ``layout`` does not belong to the model.
        """
        wanted = model.kv_layout(layout.num_prefixes, layout.num_rows, layout.row_capacity)
        if (wanted.bytes_per_token, wanted.dtype) != (layout.bytes_per_token, layout.dtype):
            raise ConfigError("kv_layout", f"layout {layout} is not the model's: {wanted}")
        self._model = model
        self._layout = layout
        self._clock = clock or SteadyClock()
        self._row_buckets = tuple(sorted(row_buckets))
        self._warm_up_runs = warm_up_runs
        self._planner = TextPlanner(model.heads_per_kv, model.dtype, model.device)
        with _failures_named("allocating the KV memory"):
            self.memory = KVMemory(layout, model.device)
        self._prefixes: dict[int, PrefixState] = {}
        self._newest = torch.zeros(layout.num_rows, dtype=torch.int64, device=model.device)
        self._unread: list[tuple[tuple[BatchRow, ...], Tensor]] = []
        self._graphs_at_warm_up = num_compiled_graphs()
        self._spoilt_prefixes: set[int] = set()
        self._spoilt_rows: set[int] = set()

    @property
    def spec(self) -> ModelSpec:
        """Facts of the model."""
        return self._model.spec

    @property
    def layout(self) -> KVLayout:
        """Shape of the KV memory it holds."""
        return self._layout

    @property
    def model(self) -> VLAModel:
        """The model it runs."""
        return self._model

    @property
    def num_compilations(self) -> int:
        """Graphs that torch compiled in this process since ``warm_up``; direct calls need none."""
        return num_compiled_graphs() - self._graphs_at_warm_up

    def warm_up(self) -> WarmUp:
        """Run every shape and measure it. Leaves no prefix and no unread token behind."""
        costs = measure_all(self, self._model, self._row_buckets, self._warm_up_runs, self._clock)
        self._prefixes.clear()
        self._graphs_at_warm_up = num_compiled_graphs()
        return costs

    @torch.inference_mode()
    def prefill(self, inputs: ModelInputs, prefix_slot: int) -> int:
        """Write the KV of ``inputs`` into ``prefix_slot``, in place; number of valid prefix tokens."""
        self._check_slot(prefix_slot)
        check_inputs(inputs, self._model, self._layout)
        self._prefixes.pop(prefix_slot, None)
        with _failures_named("prefill"):
            if prefix_slot in self._spoilt_prefixes:
                self.memory.clear_prefix(prefix_slot)
                self._spoilt_prefixes.discard(prefix_slot)
            state = self._model.prefill(self._on_device(inputs), self.memory.prefix(prefix_slot))
            is_finite = bool(torch.isfinite(state.last_hidden).all())  # blocks until all is done
        if not is_finite:
            self._spoilt_prefixes.add(prefix_slot)
            raise RunnerError("prefix_not_finite", "the prefix has values that are not finite")
        self._prefixes[prefix_slot] = state
        return state.num_tokens

    @torch.inference_mode()
    def sample_actions(
        self, prefix_slot: int, expert: str, seed: int, guidance: Guidance | None = None
    ) -> FloatArray:
        """One chunk, float32 [horizon, action_dim] in model space; its noise depends on ``seed`` alone."""
        experts = {entry.name: entry for entry in self.spec.experts}
        if expert not in experts:
            raise ContractError("expert", f"there is no expert {expert!r}, only {', '.join(experts)}")
        if prefix_slot not in self._prefixes:
            raise ContractError("prefix_slot", f"prefix slot {prefix_slot} was never written")
        shape = (experts[expert].horizon, experts[expert].action_dim)
        noise = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
        state, kv = self._prefixes[prefix_slot], self.memory.prefix(prefix_slot)
        with _failures_named("sampling actions"):
            pull = self._pull(guidance, shape)
            actions = self._model.sample_actions(expert, state, kv, noise.to(self._model.device), pull).cpu()
        if not torch.isfinite(actions).all():
            self._spoilt_prefixes.add(prefix_slot)
            raise RunnerError("actions_not_finite", f"actions of expert {expert!r} are not finite")
        return actions.numpy().copy()

    @torch.inference_mode()
    def decode_step(self, rows: Sequence[BatchRow]) -> None:
        """One batched forward that gives every row one token."""
        if not rows:
            return
        prefix_tokens = {slot: state.num_tokens for slot, state in self._prefixes.items()}
        check_rows(rows, self._layout, self.spec, prefix_tokens)
        rows = _in_batch_order(rows)
        with _failures_named("decode step"):
            self._clear_spoilt(rows)
            logits = self._model.logits(self._hidden(rows))
            draws = plan_draws(
                [row.sampling for row in rows],
                [row.tokens_written for row in rows],
                self.spec.vocab_size,
                self._model.device,
            )
            tokens, is_finite = choose_tokens(logits, draws)
            self._newest[self._row_index(rows)] = tokens
            self._unread.append((tuple(rows), torch.stack([tokens, is_finite.to(tokens.dtype)])))
            wait_for(self._model.device)

    @torch.inference_mode()
    def read_tokens(self) -> dict[int, list[int | None]]:
        """Tokens since the last call, by text row, oldest first, in one transfer; None if not finite."""
        if not self._unread:
            return {}
        unread, self._unread = self._unread, []
        with _failures_named("reading tokens"):
            tokens, is_finite = torch.cat([values for _, values in unread], dim=1).tolist()
        written: dict[int, list[int | None]] = {}
        rows = [row for step_rows, _ in unread for row in step_rows]
        for row, token, finite in zip(rows, tokens, is_finite, strict=True):
            written.setdefault(row.row, []).append(token if finite else None)
            if not finite:
                self._spoilt_rows.add(row.row)
                self._spoilt_prefixes.add(row.prefix_slot)
        return written

    def _pull(self, guidance: Guidance | None, shape: tuple[int, int]) -> TensorGuidance | None:
        if guidance is None:
            return None
        if guidance.previous.shape != shape or guidance.weights.shape != shape[:1]:
            got = f"{guidance.previous.shape} with {guidance.weights.shape} weights"
            raise ContractError("guidance", f"guidance has shape {got}, the expert's chunks have {shape}")
        previous, weights = torch.from_numpy(guidance.previous), torch.from_numpy(guidance.weights)[:, None]
        device = self._model.device
        return TensorGuidance(previous.to(device), weights.to(device), guidance.max_gain)

    def _check_slot(self, prefix_slot: int) -> None:
        if not 0 <= prefix_slot < self._layout.num_prefixes:
            slots = self._layout.num_prefixes
            raise ContractError("prefix_slot", f"prefix slot {prefix_slot} of {slots}")

    def _on_device(self, inputs: ModelInputs) -> PrefixInputs:
        device = self._model.device
        state = None if inputs.state is None else torch.from_numpy(inputs.state).to(device)
        return PrefixInputs(
            torch.from_numpy(inputs.images).to(device), torch.from_numpy(inputs.token_ids).to(device), state
        )

    def _clear_spoilt(self, rows: Sequence[BatchRow]) -> None:
        """Zero rows that held values that are not finite, before a new text takes them."""
        for row in rows:
            if row.tokens_written == 0 and row.row in self._spoilt_rows:
                self.memory.clear_row(row.row)
                self._spoilt_rows.discard(row.row)

    def _hidden(self, rows: Sequence[BatchRow]) -> Tensor:
        """Hidden rows [R, W] that the next tokens come from; a text without prompt begins from its prefix."""
        fed = [row for row in rows if _num_fed(row)]
        begun = [self._prefixes[row.prefix_slot].last_hidden for row in rows if not _num_fed(row)]
        parts = [torch.stack(begun)] if begun else []
        if fed:
            batch = self._planner.plan([self._segment(row) for row in fed])
            parts.insert(0, self._model.text_step(self._fed_ids(fed), batch, self.memory))
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _segment(self, row: BatchRow) -> TextSegment:
        position = self._prefixes[row.prefix_slot].next_position + row.suffix_tokens
        return TextSegment(
            row.row, row.prefix_slot, row.prefix_tokens, position, row.suffix_tokens, _num_fed(row)
        )

    def _fed_ids(self, rows: Sequence[BatchRow]) -> Tensor:
        """Ids [N] of what the rows feed: the newest token, or a suffix prompt."""
        running = [row for row in rows if not row.new_token_ids]
        prompts = [token for row in rows for token in row.new_token_ids]
        parts = []
        if running:
            parts.append(self._newest[self._row_index(running)])
        if prompts:
            parts.append(torch.tensor(prompts).to(self._model.device, non_blocking=True))
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _row_index(self, rows: Sequence[BatchRow]) -> Tensor:
        return torch.tensor([row.row for row in rows]).to(self._model.device, non_blocking=True)


def _num_fed(row: BatchRow) -> int:
    """Tokens the row puts through the model: its suffix prompt, its newest token, or none at first."""
    return len(row.new_token_ids) or min(1, row.tokens_written)


def _in_batch_order(rows: Sequence[BatchRow]) -> list[BatchRow]:
    """Running rows, then suffix prompts from short to long, then texts that begin from the prefix alone."""

    def key(row: BatchRow) -> tuple[bool, int]:
        return _num_fed(row) == 0, len(row.new_token_ids)

    return sorted(rows, key=key)


@contextlib.contextmanager
def _failures_named(what: str) -> Iterator[None]:
    """Around work on the device: what torch raises becomes a RunnerError."""
    try:
        yield
    except torch.OutOfMemoryError as fault:
        raise RunnerError(
            "out_of_memory",
            f"{what}: {_in_short(fault)}",
            "fewer prefixes or text rows, a smaller dtype, or a larger device",
        ) from fault
    except RuntimeError as fault:
        raise RunnerError("runner_failed", f"{what}: {_in_short(fault)}") from fault


def _in_short(fault: RuntimeError) -> str:
    """The first line that says something, and what a compiler called fatal: torch's own texts are long."""
    lines = [line.strip() for line in str(fault).splitlines() if line.strip()] or [type(fault).__name__]
    first = next((i for i, line in enumerate(lines) if not line.endswith(":")), len(lines) - 1)
    fatal = [line for line in lines[first + 1 :] if "fatal" in line]
    return " ".join((*lines[: first + 1], *fatal[:1]))
