"""The control cycle: its period, and how the time left in it is spent on text."""

from __future__ import annotations

from dataclasses import dataclass

from oxygen_ros.config.field import parameter


@dataclass(frozen=True)
class CycleConfig:
    """Rate, window and decode budget. One cycle lasts ``execute_horizon / action_rate_hz``."""

    action_rate_hz: float = parameter(
        10.0, unit="Hz", minimum=0.1, maximum=1000.0, help="Actions per second that the player sends."
    )
    execute_horizon: int = parameter(
        5,
        unit="actions",
        minimum=1,
        maximum=1000,
        help="Actions of a chunk that are run before the next chunk takes over.",
    )
    reserve_ms: float = parameter(
        10.0, unit="ms", minimum=0.0, maximum=10_000.0, help="Part of the cycle that is never spent on text."
    )
    decode_policy: str = parameter(
        "auto",
        choices=("auto", "fixed"),
        help="auto: as many decode steps as fit the time left. fixed: fixed_decode_steps at any cost.",
    )
    fixed_decode_steps: int = parameter(
        5, unit="steps", minimum=0, maximum=1000, help="Most decode steps per cycle with decode_policy fixed."
    )
    steps_per_round: int = parameter(
        4, unit="steps", minimum=1, maximum=64, help="Decode steps between two looks at the written tokens."
    )
    cost_quantile: float = parameter(
        0.9, minimum=0.5, maximum=1.0, help="Quantile of measured step costs that is taken as the cost."
    )
    cost_window: int = parameter(
        64, unit="steps", minimum=4, maximum=10_000, help="Measured steps per batch size that are remembered."
    )

    @property
    def period_ns(self) -> int:
        """Action-execution window: time one cycle may take."""
        return round(self.execute_horizon * 1e9 / self.action_rate_hz)

    @property
    def action_dt_ns(self) -> int:
        """Time between two actions."""
        return round(1e9 / self.action_rate_hz)

    @property
    def reserve_ns(self) -> int:
        """The reserve in nanoseconds."""
        return round(self.reserve_ms * 1e6)
