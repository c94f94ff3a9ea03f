"""Resident memory over time: beginning, end, and how fast it grows. Knows numbers only."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

MB = 1e6


@dataclass
class MemoryCurve:
    """Samples of one process: seconds and bytes."""

    seconds: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def add(self, second: float, size: int) -> None:
        """One sample."""
        self.seconds.append(second)
        self.sizes.append(size)

    def growth(self) -> float:
        """Last tenth against first tenth, as a share of the first: 0.01 is one percent."""
        tenth = max(1, len(self.sizes) // 10)
        begin, end = np.mean(self.sizes[:tenth]), np.mean(self.sizes[-tenth:])
        return float(end / begin - 1.0) if begin else 0.0

    def slope_mb_per_hour(self) -> float:
        """Slope of a straight line through all samples."""
        if len(self.sizes) < 3:
            return 0.0
        slope = np.polyfit(self.seconds, np.array(self.sizes) / MB, 1)[0]
        return float(slope * 3600)

    def in_words(self) -> str:
        """One line."""
        begin, end = self.sizes[0] / MB, self.sizes[-1] / MB
        return (
            f"{begin:.1f} MB -> {end:.1f} MB ({self.growth():+.2%}), {self.slope_mb_per_hour():+.2f} MB/h, "
            f"{len(self.sizes)} samples"
        )
