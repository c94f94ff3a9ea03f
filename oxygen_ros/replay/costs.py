"""What the phases of a cycle cost in simulated time: set, measured on some machine, or recorded."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from oxygen_ros.clock import Clock
from oxygen_ros.config import FakeConfig
from oxygen_ros.errors import ConfigError
from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.models.protocol import Guidance, ModelInputs, ModelSpec
from oxygen_ros.replay.recording import CycleCosts
from oxygen_ros.runners.protocol import BatchRow, ModelRunner, WarmUp
from oxygen_ros.types import FloatArray

KEYS = ("prefill_ms", "act_ms", "decode_step_ms", "decode_row_ms")


class Costs(Protocol):
    """Costs of the cycle that runs."""

    def begin(self, cycle_id: int) -> None:
        """A cycle begins."""
        ...

    def observe_ns(self) -> int:
        """Taking the observation."""
        ...

    def prefill_ns(self) -> int:
        """One prefill."""
        ...

    def act_ns(self) -> int:
        """One chunk."""
        ...

    def step_ns(self, num_tokens: int) -> int:
        """One decode step that feeds so many tokens."""
        ...


@dataclass(frozen=True)
class SetCosts:
    """The same in every cycle."""

    prefill: int
    act: int
    step: int
    token: int = 0

    @classmethod
    def of_config(cls, fake: FakeConfig) -> SetCosts:
        """The costs that the stand-in has."""
        first_ns = max(0.0, fake.decode_step_ms - fake.decode_row_ms)
        return cls(_ns(fake.prefill_ms), _ns(fake.act_ms), _ns(first_ns), _ns(fake.decode_row_ms))

    @classmethod
    def of_file(cls, path: Path) -> SetCosts:
        """Costs from the costs.json of a realtime run, or from the folder that holds it.

        Raises:
            ConfigError: code ``costs``.
        """
        path = path / "costs.json" if path.is_dir() else path
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            prefill, act, step, token = (_ns(float(values[key])) for key in KEYS)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                "costs", f"{path} gives no costs ({error})", f"JSON with {', '.join(KEYS)}"
            ) from error
        return cls(prefill, act, max(0, step - token), token)

    def begin(self, cycle_id: int) -> None:
        """A cycle begins: nothing changes."""

    def observe_ns(self) -> int:
        """Nothing."""
        return 0

    def prefill_ns(self) -> int:
        """One prefill."""
        return self.prefill

    def act_ns(self) -> int:
        """One chunk."""
        return self.act

    def step_ns(self, num_tokens: int) -> int:
        """One decode step that feeds so many tokens."""
        return self.step + num_tokens * self.token


class RecordedCosts:
    """As each recorded cycle had them; the medians of all where there is no such cycle."""

    def __init__(self, cycles: Mapping[int, CycleCosts], num_experts: int = 1) -> None:
        self._cycles = cycles
        self._num_experts = num_experts
        self._usual = _median_costs(cycles.values())
        self._now = self._usual

    def begin(self, cycle_id: int) -> None:
        """Take the costs of this cycle."""
        self._now = self._cycles.get(cycle_id, self._usual)

    def observe_ns(self) -> int:
        """Taking the observation."""
        return self._now.observe_ns

    def prefill_ns(self) -> int:
        """One prefill."""
        return self._now.prefill_ns

    def act_ns(self) -> int:
        """One chunk."""
        return self._now.act_ns // self._num_experts

    def step_ns(self, num_tokens: int) -> int:
        """One decode step, however many tokens it feeds."""
        source = self._now if self._now.decode_steps else self._usual
        return source.decode_ns // max(1, source.decode_steps)


class TimedRunner:
    """A ModelRunner that lets each call of another one take its set time of the clock."""

    def __init__(self, runner: ModelRunner, clock: Clock, costs: Costs) -> None:
        self._runner = runner
        self._clock = clock
        self._costs = costs

    @property
    def spec(self) -> ModelSpec:
        """Facts of the model."""
        return self._runner.spec

    @property
    def layout(self) -> KVLayout:
        """Shape of the KV memory."""
        return self._runner.layout

    @property
    def num_compilations(self) -> int:
        """As the other one."""
        return self._runner.num_compilations

    def warm_up(self) -> WarmUp:
        """Run every shape; the costs are the set ones."""
        real = self._runner.warm_up()
        steps: dict[int, tuple[int, ...]] = {n: (self._costs.step_ns(n),) for n in real.decode_step_ns}
        return WarmUp(
            device=real.device,
            dtype=real.dtype,
            backend=real.backend,
            prefill_ns=(self._costs.prefill_ns(),),
            act_ns=(self._costs.act_ns(),),
            decode_step_ns=steps,
            fault=real.fault,
        )

    def prefill(self, inputs: ModelInputs, prefix_slot: int) -> int:
        """As the other one."""
        num_tokens = self._runner.prefill(inputs, prefix_slot)
        self._pass(self._costs.prefill_ns())
        return num_tokens

    def sample_actions(
        self, prefix_slot: int, expert: str, seed: int, guidance: Guidance | None = None
    ) -> FloatArray:
        """As the other one."""
        actions = self._runner.sample_actions(prefix_slot, expert, seed, guidance)
        self._pass(self._costs.act_ns())
        return actions

    def decode_step(self, rows: Sequence[BatchRow]) -> None:
        """As the other one."""
        self._runner.decode_step(rows)
        num_fed = sum(1 if row.tokens_written else len(row.new_token_ids) for row in rows)
        self._pass(self._costs.step_ns(num_fed))

    def read_tokens(self) -> dict[int, list[int | None]]:
        """As the other one."""
        return self._runner.read_tokens()

    def _pass(self, cost_ns: int) -> None:
        self._clock.sleep_until_ns(self._clock.now_ns() + cost_ns)


def _median_costs(cycles: Any) -> CycleCosts:
    acted = [costs for costs in cycles if costs.prefill_ns]
    if not acted:
        return CycleCosts()
    steps = [costs.decode_ns // costs.decode_steps for costs in acted if costs.decode_steps]
    return CycleCosts(
        observe_ns=int(statistics.median_low([c.observe_ns for c in acted])),
        prefill_ns=int(statistics.median_low([c.prefill_ns for c in acted])),
        act_ns=int(statistics.median_low([c.act_ns for c in acted])),
        decode_ns=int(statistics.median_low(steps)) if steps else 0,
        decode_steps=1,
    )


def _ns(milliseconds: float) -> int:
    return round(milliseconds * 1e6)
