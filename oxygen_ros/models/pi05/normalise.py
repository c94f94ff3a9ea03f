"""Normalising: robot numbers to model space and back, per dimension, by the checkpoint's statistics.

Knows statistics and the dialect's epsilon; knows nothing of joints' names beyond reporting them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oxygen_ros.models.pi05.dialect import Dialect, Epsilon
from oxygen_ros.models.pi05.statistics import FeatureStatistics, NormMode, Vector

# A range below this is no motion (1e-4 rad is 0.006 degrees, 1e-4 m a tenth of a millimetre): dividing
# by it turns sensor noise into huge numbers.
DEGENERATE_RANGE = 1e-4
# Such a dimension is kept within this bound of model space. The prompt's numbers end at 1, so they are
# the same with and without the bound; a state that the model takes as numbers is tamed by it.
DEGENERATE_BOUND = 10.0


@dataclass(frozen=True)
class Normaliser:
    """Affine map of one feature: x -> (x - offset) / width * gain - shift, and back.

    Attributes:
        offset, width_in, width_out: [num_dims]; the widths differ where a dialect's epsilon does.
        degenerate: dimensions whose recorded range is almost zero.
    """

    feature: str
    mode: NormMode
    offset: Vector
    width_in: Vector
    width_out: Vector
    gain: float
    shift: float
    degenerate: tuple[int, ...]

    @property
    def num_dims(self) -> int:
        """Number of dimensions."""
        return int(self.offset.size)

    def normalise(self, values: Vector) -> Vector:
        """Model space of ``values`` [..., num_dims], in the precision of the dialect."""
        out = (values - self.offset) / self.width_in * self.gain - self.shift
        for dim in self.degenerate:
            out[..., dim] = np.clip(out[..., dim], -DEGENERATE_BOUND, DEGENERATE_BOUND)
        return out.astype(self.offset.dtype, copy=False)

    def unnormalise(self, values: Vector) -> Vector:
        """Robot numbers of ``values`` [..., at least num_dims]; what lies past num_dims passes through."""
        out = values.astype(self.offset.dtype)
        known = out[..., : self.num_dims]
        known += self.shift
        known *= self.width_out
        known /= self.gain
        known += self.offset
        return out


def make_normaliser(
    statistics: FeatureStatistics, mode: NormMode, num_dims: int, dialect: Dialect
) -> Normaliser:
    """Normaliser of one feature.

    Raises:
        CheckpointError: if the statistics that ``mode`` needs are missing or cannot be.
    """
    precision: type[np.floating] = np.float64 if dialect.epsilon is Epsilon.ADD_1E_6 else np.float32
    if mode is NormMode.IDENTITY:
        zeros: Vector = np.zeros(num_dims, precision)
        ones = zeros + 1
        return Normaliser(statistics.feature, mode, zeros, ones, ones, 1.0, 0.0, ())
    first, second = (_as(vector, precision) for vector in statistics.pair(mode, num_dims))
    width: Vector = second if mode is NormMode.MEAN_STD else second - first
    degenerate = tuple(int(dim) for dim in np.flatnonzero(width < DEGENERATE_RANGE))
    width_in, width_out = _guarded(width, mode, dialect.epsilon)
    gain, shift = (1.0, 0.0) if mode is NormMode.MEAN_STD else (2.0, 1.0)
    return Normaliser(statistics.feature, mode, first, width_in, width_out, gain, shift, degenerate)


def _guarded(width: Vector, mode: NormMode, epsilon: Epsilon) -> tuple[Vector, Vector]:
    """Widths to divide by and to multiply by."""
    if epsilon is Epsilon.ADD_1E_6:
        added = width + 1e-6
        return added, added
    tiny = width.dtype.type(1e-8)
    if mode is NormMode.MEAN_STD:
        return width + tiny, width
    replaced = np.where(width == 0, tiny, width)
    return replaced, replaced


def _as(vector: Vector, precision: type[np.floating]) -> Vector:
    return vector.astype(precision)
