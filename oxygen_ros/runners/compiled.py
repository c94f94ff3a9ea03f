"""The eager runner with its denoising step passed through torch.compile. Not verified on a GPU.

Compiled once, in warm-up. A failure is refused, or allowed by name; nothing is replaced in silence.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import torch

from oxygen_ros.clock import Clock
from oxygen_ros.errors import RunnerError
from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.models.family import VLAModel
from oxygen_ros.models.linear import PlainLinear
from oxygen_ros.runners.eager import ROW_BUCKETS, WARM_UP_RUNS, EagerRunner
from oxygen_ros.runners.protocol import WarmUp
from oxygen_ros.runners.warm_up import longest_inputs


class CompiledRunner(EagerRunner):
    """Prefill and text are direct calls as in ``EagerRunner``. The model it was given stays as it is."""

    def __init__(
        self,
        model: VLAModel,
        layout: KVLayout,
        *,
        allow_eager: bool = False,
        row_buckets: Sequence[int] = ROW_BUCKETS,
        warm_up_runs: int = WARM_UP_RUNS,
        clock: Clock | None = None,
    ) -> None:
        """As ``EagerRunner``.

        Args:
            model: loaded, on the device it runs on.
            layout: from ``model.kv_layout``.
            allow_eager: go on with direct calls when compiling fails.
            row_buckets: numbers of rows that warm-up measures.
            warm_up_runs: timed runs of each shape.
            clock: measures warm-up where there are no device events.
        """
        super().__init__(
            copy.copy(model), layout, row_buckets=row_buckets, warm_up_runs=warm_up_runs, clock=clock
        )
        self._allow_eager = allow_eager

    def warm_up(self) -> WarmUp:
        """Compile, then run every shape and measure it.

        Raises:
            RunnerError: code ``compile_failed``, unless direct calls may take its place.
        """
        plain = self._model.denoise_step
        try:
            self._compile()
        except Exception as fault:  # compilers raise what they like
            if isinstance(fault, RunnerError) and fault.code != "runner_failed":
                raise
            self._model.denoise_step = plain
            cause = self._cause(fault)
            if not self._allow_eager:
                raise RunnerError(
                    "compile_failed",
                    f"torch.compile of the denoising step: {cause}",
                    "runner.kind: eager, or runner.allow_eager: true to go on eagerly when compiling fails",
                ) from fault
            costs, why = super().warm_up(), f"since compiling failed: {cause}"
            return replace(costs, backend=f"{costs.backend}, {why}", fault=f"eager, {why}")
        costs = super().warm_up()
        return replace(costs, backend=f"denoising step compiled by inductor, the rest {costs.backend}")

    def _compile(self) -> None:
        """Compile for every expert by running it: for the longest prefix, then for one of any length."""
        num_tokens = self.prefill(longest_inputs(self._model), 0)
        state = self._prefixes[0]
        self._model.denoise_step = torch.compile(  # type: ignore[call-overload]  # an argument lacks in its stubs
            self._model.denoise_step, fullgraph=True, isolate_recompiles=True
        )
        for length in (num_tokens, num_tokens // 2):
            self._prefixes[0] = replace(state, num_tokens=length)
            for expert in self.spec.experts:
                self.sample_actions(0, expert.name, seed=0)

    def _cause(self, fault: Exception) -> str:
        raised = fault.__cause__ if isinstance(fault, RunnerError) and fault.__cause__ else fault
        cause = decisive_line(raised)
        if self._model.kernels == PlainLinear.kernel:
            return cause
        return f"{cause} (linear layers packed for this CPU cannot be compiled: {self._model.kernels})"


def decisive_line(fault: BaseException) -> str:
    """The line of a compiler's message that says why: the first fatal one, or error, or the first of all."""
    lines = [" ".join(line.split()) for line in str(fault).splitlines() if line.strip()]
    for word in ("fatal", " error: "):
        for line in lines:
            if word in line:
                return f"{type(fault).__name__}: {line}"
    return ": ".join([type(fault).__name__, *lines[:1]])
