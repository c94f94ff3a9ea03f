"""Puts together what a workload needs: one set of random weights, policies, runners, executors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch

from benchmarks.executors.isolated import isolated, shared
from benchmarks.executors.noise import noise_of
from benchmarks.executors.own_kernels import OwnKernelsExecutor
from benchmarks.executors.oxygen import OxygenExecutor
from benchmarks.executors.protocol import Executor
from benchmarks.executors.reference import ReferenceExecutor
from benchmarks.random_weights import random_state_dict
from benchmarks.reference.policy import ReferencePolicy
from benchmarks.reference.weights import WeightLoader
from benchmarks.sizes import ModelSize, ParameterCounts, count_parameters, model_config
from benchmarks.workloads import Workload
from oxygen_ros.engine.budget import FixedSteps
from oxygen_ros.models.linear import has_bfloat16_units
from oxygen_ros.models.pi05.config import Pi05Config
from oxygen_ros.models.pi05.model import Pi05Model
from oxygen_ros.models.pi05.names import tensor_shapes
from oxygen_ros.models.tensor_source import DictSource
from oxygen_ros.runners.eager import EagerRunner

NUM_SPARE_ROWS = 2
BURST_FACTOR = 3
"""Rows for workloads whose texts do not come evenly."""


class Lab:
    """One model size, dtype and device, shaped for one workload. Weights are made once and shared."""

    def __init__(self, size: ModelSize, dtype: torch.dtype, device: torch.device, workload: Workload) -> None:
        self.size = size
        self.dtype = dtype
        self.device = device
        self.workload = workload
        self.config = self._config(workload, dtype)
        self.weights = random_state_dict(self.config, device)

    def _config(self, workload: Workload, dtype: torch.dtype) -> Pi05Config:
        return model_config(
            self.size,
            dtype,
            horizon=workload.robot.horizon,
            max_token_len=workload.robot.max_token_len,
            num_denoise_steps=workload.denoise_steps,
            num_experts=workload.num_experts,
        )

    @property
    def opponents_dtype(self) -> torch.dtype:
        """Dtype of the reference's data path: float32 where bfloat16 has to be emulated and is slower."""
        if self.device.type == "cpu" and not has_bfloat16_units():
            return torch.float32
        return self.dtype

    @property
    def parameters(self) -> ParameterCounts:
        """Parameters of the model."""
        return count_parameters(tensor_shapes(self.config))

    @cached_property
    def policy(self) -> ReferencePolicy:
        """The reference's data path; it keeps nothing between calls."""
        config = self._config(self.workload, self.opponents_dtype)
        return ReferencePolicy(config, WeightLoader(config, self.weights).load(), self.device)

    @cached_property
    def model(self) -> Pi05Model:
        """The product's model; it keeps nothing between calls."""
        return Pi05Model.from_source(self.config, DictSource(self.weights), self.device)

    def runner(
        self,
        num_prefixes: int | None = None,
        num_rows: int | None = None,
        model: Pi05Model | None = None,
        kind: type[EagerRunner] = EagerRunner,
    ) -> EagerRunner:
        """A runner with KV memory of its own, of the size that the workload needs unless told."""
        model = model or self.model
        is_even = self.workload.arrivals in ("uniform", "none")
        rows = (1 if is_even else BURST_FACTOR) * self.workload.steady_rows + NUM_SPARE_ROWS
        prefixes = self.workload.cycles_until_steady + NUM_SPARE_ROWS
        longest = max(text.prompt_tokens for text in self.workload.texts) + self.workload.max_tokens
        return kind(model, model.kv_layout(num_prefixes or prefixes, num_rows or rows, longest))

    def oxygen(
        self, name: str = "oxygen", runner: EagerRunner | None = None, is_strict: bool = True
    ) -> OxygenExecutor:
        """The product, with the workload's fixed number of decode steps, read once per cycle."""
        steps = self.workload.steps_per_cycle
        return OxygenExecutor(name, runner or self.runner(), FixedSteps(steps), steps, is_strict=is_strict)

    def executor(self, name: str) -> Executor:
        """Executor by name.

        Raises:
            KeyError: if there is none.
        """
        makers: dict[str, Callable[[], Executor]] = {
            "isolated": lambda: isolated(self.policy, noise_of(self.config, self.device)),
            "shared": lambda: shared(self.policy, noise_of(self.config, self.device)),
            "reference": lambda: ReferenceExecutor(
                self.policy,
                noise_of(self.config, self.device),
                self.workload.steps_per_cycle,
                self.workload.max_tokens,
            ),
            "isolated-own-kernels": lambda: OwnKernelsExecutor(name, self.runner(2, 1), False),
            "shared-own-kernels": lambda: OwnKernelsExecutor(name, self.runner(2, 1), True),
            "oxygen": self.oxygen,
        }
        return makers[name]()


EXECUTORS = (
    "isolated",
    "shared",
    "reference",
    "isolated-own-kernels",
    "shared-own-kernels",
    "oxygen",
)
