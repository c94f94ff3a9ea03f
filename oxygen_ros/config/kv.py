"""How much KV memory is set aside. All of it is allocated at configure; nothing grows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from oxygen_ros.config.field import parameter


@dataclass(frozen=True)
class KVConfig:
    """Counts of prefixes and text rows, and a limit on their bytes."""

    num_prefixes: int = parameter(
        4,
        unit="prefixes",
        minimum=2,
        maximum=256,
        help="Observations held at once. One is always kept for the next; texts hold the others.",
    )
    num_rows: int = parameter(
        8, unit="rows", minimum=1, maximum=1024, help="Texts that are decoded together; more have to wait."
    )
    row_capacity: int = parameter(
        128, unit="tokens", minimum=8, maximum=8192, help="Tokens of one row: suffix prompt and written text."
    )
    memory_limit_mb: float = parameter(
        math.inf,
        unit="MiB",
        minimum=1.0,
        help="Most KV memory. Configure is refused when the counts above need more. .inf: no limit.",
    )

    @property
    def memory_limit_bytes(self) -> float:
        """The limit in bytes; infinite for none."""
        return self.memory_limit_mb * 2**20
