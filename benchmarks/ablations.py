"""The product minus one feature each. Runner, engine and cycle stay the product's own.

A feature is taken away by a mixin on the runner or the model, by the kind of linear layers, or by a patch
that is active only while that executor runs. Most give the same outputs; ``changes_outputs`` marks those
that cannot.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from benchmarks.executors.oxygen import OxygenExecutor
from benchmarks.executors.padding import BLACK
from benchmarks.executors.protocol import CycleRecord, Executor
from benchmarks.lab import Lab
from benchmarks.workloads import Job
from oxygen_ros.kv.memory import PrefixKV
from oxygen_ros.models import sampling
from oxygen_ros.models.family import PrefixInputs, PrefixState
from oxygen_ros.models.linear import Linear, PlainLinear, make_linear
from oxygen_ros.models.pi05.expert import modulations
from oxygen_ros.models.pi05.model import Pi05Model
from oxygen_ros.models.pi05.weights import build_weights
from oxygen_ros.models.protocol import ModelInputs
from oxygen_ros.models.tensor_source import DictSource
from oxygen_ros.runners.eager import EagerRunner
from oxygen_ros.runners.protocol import BatchRow

BUILDER = "oxygen_ros.models.pi05.weights."


class TwoPrefills:
    """Every observation is prefilled twice, as by two programs. Mixin on the runner."""

    def prefill(self: Any, inputs: ModelInputs, prefix_slot: int) -> int:
        """Prefill into a slot that is free for sure, then into the wanted one."""
        EagerRunner.prefill(self, inputs, self.layout.num_prefixes - 1)
        return EagerRunner.prefill(self, inputs, prefix_slot)


class RowByRow:
    """Every row has a forward of its own. Mixin on the runner."""

    def decode_step(self: Any, rows: Sequence[BatchRow]) -> None:
        """One forward after another."""
        for row in rows:
            EagerRunner.decode_step(self, [row])


class CopiedPrefixes:
    """Each running text's prefix is copied three times a cycle, as joining and splitting caches does."""

    rows_of_round: Sequence[BatchRow] = ()

    def decode_step(self: Any, rows: Sequence[BatchRow]) -> None:
        """One step; notes whose prefixes are to be copied."""
        self.rows_of_round = rows
        EagerRunner.decode_step(self, rows)

    def read_tokens(self: Any) -> dict[int, list[int | None]]:
        """Tokens, after the copies."""
        for row in self.rows_of_round:
            for memory in (self.memory.prefix_k, self.memory.prefix_v):
                for _ in range(3):
                    memory[:, row.prefix_slot, :, : row.prefix_tokens].clone()
        self.rows_of_round = ()
        return EagerRunner.read_tokens(self)


class ModulationsEachStep:
    """Norm modulations are computed anew in every denoise step. Mixin on the model."""

    conditioning: dict[str, Any]

    def step_velocity(
        self: Any, expert: str, x_t: Tensor, step: int, kv: PrefixKV, num_tokens: int
    ) -> Tensor:
        """Velocity with a table made for this step alone."""
        width = self.config.expert(expert).size.width
        times = self._times()[step : step + 1]
        table = modulations(self.conditioning[expert], self.config, width, times)
        return Pi05Model.velocity(self, expert, x_t, table[0], kv, num_tokens)


class WholeLastLayer:
    """The last layer is computed for every prefix token. Mixin on the model."""

    def prefill(self: Any, inputs: PrefixInputs, kv: PrefixKV) -> PrefixState:
        """Prefill that throws all rows but the last away."""
        hidden = self.prefill_rows(inputs, kv, is_every_row_wanted=True)
        num_tokens = self.num_prefix_tokens(inputs.images.shape[0], inputs.token_ids.shape[0])
        return PrefixState(num_tokens, num_tokens, hidden[-1], action_context=inputs.state)


class SplitLinear:
    """What the product fuses into one product, as one product per stored matrix."""

    kernel = "split"

    def __init__(self, parts: list[Linear]) -> None:
        self._parts = parts
        self.in_features = parts[0].in_features
        self.out_features = sum(part.out_features for part in parts)
        self.num_parameters = sum(part.num_parameters for part in parts)
        self.num_bytes = sum(part.num_bytes for part in parts)

    def __call__(self, x: Tensor) -> Tensor:
        """Products side by side."""
        return torch.cat([part(x) for part in self._parts], dim=-1)


def _split_linear(builder: Any, dtype: torch.dtype, *bases: str, has_bias: bool = False) -> Linear:
    def tensor(name: str) -> Tensor:
        return builder._tensor(name, dtype).contiguous()

    parts = [
        make_linear(tensor(f"{base}.weight"), tensor(f"{base}.bias") if has_bias else None) for base in bases
    ]
    return parts[0] if len(parts) == 1 else SplitLinear(parts)


def _repeated(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One query at a time per head: keys and values [B, K, N, D] copied for each of M queries' heads."""
    repeats = HEADS_PER_KV
    heads = (
        q.unflatten(2, (-1, repeats)).permute(0, 1, 3, 2, 4).flatten(1, 2)
    )  # [B, K * repeats, M / repeats, D]
    return heads, k.repeat_interleave(repeats, dim=1), v.repeat_interleave(repeats, dim=1)


HEADS_PER_KV = 8


def _attend_repeated(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
    heads, keys, values = _repeated(q[None], k[None], v[None])
    scores = torch.matmul(heads, keys.transpose(-1, -2)) * q.shape[-1] ** -0.5
    if bias is not None:
        scores = scores + bias.unflatten(0, (-1, HEADS_PER_KV)).transpose(0, 1)[None]
    out = torch.matmul(torch.softmax(scores.float(), dim=-1).to(v.dtype), values)
    return out.unflatten(1, (k.shape[0], HEADS_PER_KV)).permute(0, 1, 3, 2, 4).flatten(2, 3)[0]


def _attend_with_sum_repeated(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    heads, keys, values = _repeated(q, k, v)
    spread = bias.expand(-1, -1, q.shape[2], -1).unflatten(2, (-1, HEADS_PER_KV))
    scores = torch.matmul(heads, keys.transpose(-1, -2)).float() * q.shape[-1] ** -0.5
    scores = scores + spread.transpose(2, 3).flatten(1, 2)
    out = torch.matmul(torch.softmax(scores, dim=-1).to(v.dtype), values)
    log_sum = torch.logsumexp(scores, dim=-1)

    def back(x: Tensor) -> Tensor:
        return x.unflatten(1, (q.shape[1], HEADS_PER_KV)).transpose(2, 3).flatten(2, 3)

    return back(out), back(log_sum)


def _choose_with_log_softmax(logits: Tensor, draws: sampling.Draws | None) -> tuple[Tensor, Tensor]:
    return sampling.choose_tokens(torch.log_softmax(logits.float(), dim=-1).clone(), draws)


@contextlib.contextmanager
def _patched_attention() -> Iterator[None]:
    modules = ("pi05.backbone", "pi05.expert", "text_attention")
    with contextlib.ExitStack() as stack:
        for module in modules:
            for name, twin in (("attend", _attend_repeated), ("attend_with_sum", _attend_with_sum_repeated)):
                target = f"oxygen_ros.models.{module}"
                with contextlib.suppress(AttributeError):
                    stack.enter_context(mock.patch(f"{target}.{name}", twin))
        yield


@contextlib.contextmanager
def _patched_choice() -> Iterator[None]:
    with mock.patch("oxygen_ros.runners.eager.choose_tokens", _choose_with_log_softmax):
        yield


Patch = Callable[[], contextlib.AbstractContextManager[None]]


@dataclass(frozen=True)
class Ablation:
    """How one feature is taken away."""

    feature: str
    runner: type | None = None
    model: type | None = None
    build_patch: tuple[str, Any] | None = None
    run_patch: Patch | None = None
    pads_inputs: bool = False
    holds_actions: bool = False

    @property
    def changes_outputs(self) -> bool:
        """True where masked pictures and padding are computed as if valid: right cost, other outputs."""
        return self.pads_inputs


ABLATIONS = (
    Ablation("one prefill for actions and text", runner=TwoPrefills),
    Ablation("texts decoded as one batch", runner=RowByRow),
    Ablation("only valid tokens computed", pads_inputs=True),
    Ablation("packed linear layers", build_patch=(f"{BUILDER}make_linear", PlainLinear)),
    Ablation("fused projections", build_patch=(f"{BUILDER}_Builder._linear", _split_linear)),
    Ablation("modulations computed once", model=ModulationsEachStep),
    Ablation("KV heads not repeated", run_patch=_patched_attention),
    Ablation("last layer trimmed", model=WholeLastLayer),
    Ablation("prefix never copied", runner=CopiedPrefixes),
    Ablation("no log-softmax", run_patch=_patched_choice),
    Ablation("actions published first", holds_actions=True),
)


class AblatedExecutor:
    """The product's executor while the patches of some ablations are active."""

    def __init__(self, name: str, inner: OxygenExecutor, ablations: Sequence[Ablation], lab: Lab) -> None:
        self.name = name
        self._inner = inner
        self._ablations = ablations
        self._lab = lab

    def run(self, job: Job) -> CycleRecord:
        """Run one cycle."""
        if any(ablation.pads_inputs for ablation in self._ablations):
            job = replace(job, inputs=_padded_inputs(job.inputs, self._lab))
        with contextlib.ExitStack() as stack:
            for ablation in self._ablations:
                if ablation.run_patch:
                    stack.enter_context(ablation.run_patch())
            record = self._inner.run(job)
        if any(ablation.holds_actions for ablation in self._ablations):
            return replace(record, action_latency_ns=record.wall_ns)
        return record

    def close(self) -> None:
        """End all texts."""
        self._inner.close()


def ablated(lab: Lab, name: str, ablations: Sequence[Ablation]) -> Executor:
    """The product without the features of ``ablations``."""
    model = _model(lab, ablations)
    mixins = tuple(a.runner for a in ablations if a.runner)
    kind: type[EagerRunner] = type("AblatedRunner", (*mixins, EagerRunner), {}) if mixins else EagerRunner
    prefixes = lab.workload.cycles_until_steady + 3  # one more than without, for the second prefill
    return AblatedExecutor(
        name, lab.oxygen(name, lab.runner(num_prefixes=prefixes, model=model, kind=kind)), ablations, lab
    )


def _model(lab: Lab, ablations: Sequence[Ablation]) -> Pi05Model:
    """The lab's own model where nothing of it changes."""
    mixins = tuple(a.model for a in ablations if a.model)
    patches = [a.build_patch for a in ablations if a.build_patch]
    if not mixins and not patches:
        return lab.model
    kind: type[Pi05Model] = type("AblatedModel", (*mixins, Pi05Model), {}) if mixins else Pi05Model
    with contextlib.ExitStack() as stack:
        for target, twin in patches:
            stack.enter_context(mock.patch(target, twin))
        weights = build_weights(lab.config, DictSource(lab.weights), lab.device)
    model = kind(lab.config, weights, lab.device)
    if ModulationsEachStep in mixins:
        model.conditioning = weights.conditioning  # type: ignore[attr-defined]
    return model


def _padded_inputs(inputs: ModelInputs, lab: Lab) -> ModelInputs:
    """All camera slots, absent ones black, and the prompt filled up with token 0."""
    config = lab.config
    absent = len(config.cameras) - len(inputs.images)
    black = np.full((absent, *inputs.images.shape[1:]), BLACK, dtype=np.float32)
    ids = np.zeros(config.max_token_len, dtype=np.int64)
    ids[: len(inputs.token_ids)] = inputs.token_ids
    return replace(inputs, images=np.concatenate([inputs.images, black]), token_ids=ids)
