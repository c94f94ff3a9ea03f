"""Statistics of one feature (state or action) as a checkpoint holds them, checked when they are read."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.errors import CheckpointError

Vector = NDArray[np.floating]


class NormMode(enum.Enum):
    """How a feature is brought to model space."""

    IDENTITY = "IDENTITY"
    QUANTILES = "QUANTILES"
    QUANTILE10 = "QUANTILE10"
    MEAN_STD = "MEAN_STD"
    MIN_MAX = "MIN_MAX"


# Per mode: the statistic that is subtracted, and the one that gives the width.
NEEDED = {
    NormMode.QUANTILES: ("q01", "q99"),
    NormMode.QUANTILE10: ("q10", "q90"),
    NormMode.MEAN_STD: ("mean", "std"),
    NormMode.MIN_MAX: ("min", "max"),
}


@dataclass(frozen=True)
class FeatureStatistics:
    """Statistics of one feature: vectors by name, and the file they were read from."""

    feature: str
    source: str
    values: Mapping[str, Vector]

    def pair(self, mode: NormMode, num_dims: int) -> tuple[Vector, Vector]:
        """The two vectors that ``mode`` needs, each [num_dims].

        Raises:
            CheckpointError: if one is missing, has another length, is not finite, or they are reversed.
        """
        names = NEEDED[mode]
        missing = [name for name in names if name not in self.values]
        if missing:
            raise self._refuse(
                "statistics_missing",
                f"no {' and '.join(missing)} for {self.feature!r}, which mode {mode.value} needs "
                f"(there: {', '.join(sorted(self.values)) or 'nothing'})",
                "use the statistics that the checkpoint was trained with; do not compute them anew",
            )
        first, second = (self._vector(name, num_dims) for name in names)
        reversed_dims = np.flatnonzero(second < (0.0 if mode is NormMode.MEAN_STD else first))
        if reversed_dims.size:
            dim = int(reversed_dims[0])
            raise self._refuse(
                "statistics_reversed",
                f"{self.feature!r} dimension {dim}: {names[0]} {first[dim]:g}, {names[1]} {second[dim]:g} "
                f"cannot be ({reversed_dims.size} dimension(s) like this)",
                "the statistics file is damaged or its columns are swapped: copy it again",
            )
        return first, second

    def _vector(self, name: str, num_dims: int) -> Vector:
        vector = self.values[name]
        if vector.ndim != 1 or vector.size < num_dims:
            raise self._refuse(
                "statistics_shape",
                f"{name} of {self.feature!r} has shape {vector.shape}, want [{num_dims}]",
                "statistics and checkpoint belong to different robots",
            )
        if not np.isfinite(vector[:num_dims]).all():
            raise self._refuse(
                "statistics_not_finite",
                f"{name} of {self.feature!r} has values that are not finite",
                "the statistics file is damaged: copy it again",
            )
        return vector[:num_dims]

    def _refuse(self, code: str, message: str, suggestion: str) -> CheckpointError:
        return CheckpointError(code, f"{message}; read from {self.source}", suggestion)
