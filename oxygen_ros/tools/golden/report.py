"""Differences between recorded and computed tensors: collected, judged, printed. Knows no model."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Comparison:
    """One compared tensor.

    Attributes:
        difference: largest absolute difference; NaN where one side is not finite.
        tolerance: zero for what must be equal.
    """

    name: str
    shape: tuple[int, ...]
    difference: float
    tolerance: float

    @property
    def holds(self) -> bool:
        """True if the difference is a number within the tolerance."""
        return self.difference <= self.tolerance

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "scalar"
        verdict = "ok  " if self.holds else "FAIL"
        return f"{verdict} {self.name:38} {shape:>16} {self.difference:12.3e} {self.tolerance:12.3e}"


@dataclass
class Report:
    """All comparisons of one folder, in the order they were made."""

    tolerance: float
    comparisons: list[Comparison] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def close(self, name: str, recorded: Tensor, computed: Tensor) -> None:
        """Compare numbers within the tolerance: actions and what leads to them directly."""
        self._add(name, recorded, computed, self.tolerance)

    def close_to_scale(self, name: str, recorded: Tensor, computed: Tensor) -> None:
        """Compare numbers that may be large, such as hidden rows.

        The tolerance grows with the largest recorded value where that is above 10: two correct float32
        implementations differ by a few millionths of it.
        """
        largest = float(recorded.abs().max()) if recorded.numel() else 0.0
        self._add(name, recorded, computed, self.tolerance * max(1.0, largest / 10.0))

    def within(self, name: str, recorded: Tensor, computed: Tensor, tolerance: float) -> None:
        """Compare numbers within a tolerance of their own."""
        self._add(name, recorded, computed, tolerance)

    def same_text(self, name: str, recorded: str, computed: str) -> None:
        """Compare texts, character by character; both are shown where they differ."""
        if recorded != computed:
            self.note(f"{name}: recorded {recorded!r}, computed {computed!r}")
        difference = 0.0 if recorded == computed else float("inf")
        self.comparisons.append(Comparison(name, (len(recorded),), difference, 0.0))

    def equal(self, name: str, recorded: Tensor, computed: Tensor) -> None:
        """Compare what must be the same: tokens, masks, positions."""
        self._add(name, recorded, computed, 0.0)

    def note(self, text: str) -> None:
        """Say something beside the comparisons: the tokens of a text, a tensor that was left out."""
        self.notes.append(text)

    def _add(self, name: str, recorded: Tensor, computed: Tensor, tolerance: float) -> None:
        shape = tuple(recorded.shape)
        if shape != tuple(computed.shape):
            self.note(f"{name}: recorded shape {list(shape)}, computed {list(computed.shape)}")
            self.comparisons.append(Comparison(name, shape, float("inf"), tolerance))
            return
        difference = (recorded.to(torch.float64) - computed.to(torch.float64)).abs()
        largest = float(difference.max()) if difference.numel() else 0.0
        self.comparisons.append(Comparison(name, shape, largest, tolerance))

    @property
    def holds(self) -> bool:
        """True if there is something and all of it holds."""
        return bool(self.comparisons) and all(comparison.holds for comparison in self.comparisons)

    def __str__(self) -> str:
        header = f"     {'tensor':38} {'shape':>16} {'largest diff':>12} {'tolerance':>12}"
        failed = sum(not comparison.holds for comparison in self.comparisons)
        summary = f"{len(self.comparisons)} tensors compared, {failed} beyond their tolerance"
        return "\n".join([header, *map(str, self.comparisons), *self.notes, summary])
