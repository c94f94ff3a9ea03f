"""What stops, holds or limits the robot, whatever the model says."""

from __future__ import annotations

import math
from dataclasses import dataclass

from oxygen_ros.config.field import parameter


@dataclass(frozen=True)
class SafetyConfig:
    """Limits that hold for the whole robot; those of single joints are in robot.joints."""

    max_chunk_age_s: float = parameter(
        2.0,
        unit="s",
        minimum=0.001,
        maximum=3600.0,
        help="A chunk whose observation is older is refused by the player.",
    )
    brain_timeout_s: float = parameter(
        2.0,
        unit="s",
        minimum=0.01,
        maximum=3600.0,
        help="Without a chunk for so long the player holds and says so.",
    )
    max_step: float = parameter(
        math.inf,
        unit="rad or m",
        minimum=0.0,
        help="Largest change of any joint from one action to the next. .inf: only the joints' own limits.",
    )
    hold_repeats: int = parameter(
        1, unit="messages", minimum=1, maximum=1000, help="Times the hold command is sent before silence."
    )

    @property
    def max_chunk_age_ns(self) -> int:
        """The chunk age limit in nanoseconds."""
        return round(self.max_chunk_age_s * 1e9)

    @property
    def brain_timeout_ns(self) -> int:
        """The timeout in nanoseconds."""
        return round(self.brain_timeout_s * 1e9)
