"""What moved between two result files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

THRESHOLD = 0.05
"""Smaller relative changes are noise on a shared machine."""


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every measured number of a result tree by its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in ("settings", "model", "workload", "latencies_ms", "created"):
                yield from numbers(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from numbers(item, f"{path}[{index}]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, float(value)


def moved(
    old: dict[str, Any], new: dict[str, Any], only: tuple[str, ...] = ("p50_ms", "ratios", "x_")
) -> list[str]:
    """Lines for medians and ratios that changed by more than the threshold, the largest change first."""
    before = dict(numbers(old))
    changes = []
    for path, value in numbers(new):
        was = before.get(path)
        if was and any(mark in path for mark in only) and abs(value / was - 1) > THRESHOLD:
            changes.append(
                (abs(value / was - 1), f"{path}: {was:.4g} -> {value:.4g} ({value / was - 1:+.0%})")
            )
    return [line for _, line in sorted(changes, reverse=True)]
