"""When inputs of several streams belong together, and by which clock they are judged."""

from __future__ import annotations

from dataclasses import dataclass

from oxygen_ros.config.field import parameter


@dataclass(frozen=True)
class SyncConfig:
    """Synchrony and freshness rules of the mailbox."""

    mode: str = parameter(
        "receive",
        choices=("receive", "header"),
        help="Time that pairs the streams: when a message came, or its header stamp.",
    )
    max_skew_s: float = parameter(
        0.1, unit="s", minimum=0.0, maximum=3600.0, help="Largest time between the inputs of one observation."
    )
    max_reuse: int = parameter(
        3, unit="times", minimum=1, maximum=100_000, help="Observations that may use the same picture."
    )
    stale_clock: str = parameter(
        "receive",
        choices=("receive", "header"),
        help="Time that ages are measured from: when a message came, or its header stamp.",
    )
    max_future_s: float = parameter(
        1.0, unit="s", minimum=0.0, maximum=3600.0, help="A stamp further in the future is refused."
    )
    frozen_stamp_frames: int = parameter(
        10, unit="messages", minimum=2, maximum=100_000, help="Equal stamps in a row before a warning."
    )

    @property
    def max_skew_ns(self) -> int:
        """The skew in nanoseconds."""
        return round(self.max_skew_s * 1e9)

    @property
    def max_future_ns(self) -> int:
        """The future limit in nanoseconds."""
        return round(self.max_future_s * 1e9)
