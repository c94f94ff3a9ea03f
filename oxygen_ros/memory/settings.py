"""Parameters of the memory node."""

from __future__ import annotations

from dataclasses import dataclass

from oxygen_ros.config.field import parameter


@dataclass(frozen=True)
class MemorySettings:
    """Where texts are kept, which, and how many."""

    path: str = parameter("", help="File of the store. Empty: oxygen_memory.sqlite3 in $ROS_HOME or ~/.ros.")
    tasks: tuple[str, ...] = parameter((), help="Text tasks whose texts are kept. ['']: all.")
    max_rows: int = parameter(
        100_000, unit="texts", minimum=1, maximum=10_000_000, help="The oldest go when there are more."
    )
    max_age_days: float = parameter(
        30.0, unit="days", minimum=0.0, maximum=36_500.0, help="Texts received before that go. 0: any age."
    )
    text_stream: str = parameter("oxygen_node/text_stream", help="In: text as it grows (TextDelta).")

    @property
    def max_age_ns(self) -> int:
        """The age limit in nanoseconds of ROS time; 0 for none."""
        return round(self.max_age_days * 86_400e9)
