"""A series of rows that keeps its length within bounds: when it is full, every second row goes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MAX_ROWS = 20_000


class Series:
    """Rows float64 [num_rows, num_columns], evenly thinned once there are too many."""

    def __init__(self, max_rows: int = MAX_ROWS) -> None:
        self._max_rows = max_rows
        self._rows: list[NDArray[np.float64]] = []
        self._stride = 1
        self._num_offered = 0

    def add(self, *values: float | NDArray[np.float64]) -> None:
        """One more row, made of numbers and arrays side by side."""
        if self._num_offered % self._stride == 0:
            self._rows.append(
                np.concatenate([np.atleast_1d(np.asarray(v, dtype=np.float64)) for v in values])
            )
            if len(self._rows) > self._max_rows:
                self._rows = self._rows[::2]
                self._stride *= 2
        self._num_offered += 1

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self) -> NDArray[np.float64]:
        """All rows that are kept; [0, 0] if there are none."""
        return np.array(self._rows) if self._rows else np.zeros((0, 0))
