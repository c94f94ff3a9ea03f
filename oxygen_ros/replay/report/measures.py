"""The measures of a run as plain nested values, and how a name such as ``mae.arm`` finds its value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.errors import ConfigError
from oxygen_ros.replay.figures import Figures
from oxygen_ros.runtime.playback import PlayerStatus

DIGITS = 9
JOINTS = "joints"


def measures_of(
    figures: Figures, player: PlayerStatus, player_refusals: Mapping[str, int], duration_s: float
) -> dict[str, Any]:
    """All measures. Times are simulated time in a deterministic run."""
    cycles, errors, seams, texts = figures.cycles, figures.errors, figures.seams, figures.texts
    names = errors.joint_names
    num_ended = sum(texts.by_reason.values())
    refusals = {**cycles.refusals, **{f"player_{kind}": n for kind, n in sorted(player_refusals.items())}}
    return {
        "cycles": {"all": cycles.num_cycles, **dict(sorted(cycles.by_status.items()))},
        "misses": cycles.num_late,
        "latency_ms": _quantiles(cycles.latency_ms()),
        "mae": _by_joint(names, errors.mae, np.nanmean),
        "max_error": _by_joint(names, np.where(errors.num_compared > 0, errors.maximum, np.nan), np.nanmax),
        "rows_compared": int(errors.num_compared.max(initial=0)),
        "rows_without_reference": errors.num_missing,
        "seam_jump": {
            **_by_joint(names, seams.mean, np.mean),
            "max": _number(float(seams.maximum.max(initial=0.0))),
            "step": _number(float(seams.step_mean.mean())),
            "seams": seams.num_seams,
        },
        "decode": {
            "steps": cycles.num_steps,
            "steps_possible": cycles.num_steps_possible,
            "share": _number(cycles.num_steps / max(1, cycles.num_steps_possible)),
            "tokens": cycles.num_tokens,
            "tokens_per_s": _number(cycles.num_tokens / duration_s if duration_s else 0.0),
        },
        "texts": {
            "all": num_ended,
            "completed": texts.num_complete,
            "completion": _number(texts.num_complete / num_ended if num_ended else 1.0),
            **dict(sorted(texts.by_reason.items())),
        },
        "refusals": {"all": sum(refusals.values()), **refusals},
        "unreadable": {"all": sum(figures.undecodable.values()), **dict(sorted(figures.undecodable.items()))},
        "player": {
            "actions_played": player.actions_played,
            "ticks_missed": player.ticks_missed,
            "steps_clamped": player.steps_clamped,
            "holds": figures.num_holds,
        },
    }


def value_of(measures: Mapping[str, Any], experts: Mapping[str, str], name: str) -> float | None:
    """Value of a measure by its name; None if it has none in this run.

    ``mae`` is ``mae.all``; behind ``mae``, ``max_error`` and ``seam_jump`` a joint may stand, an expert, or a
    word that joint names hold (``left`` finds ``left_elbow``): the mean over those joints, of ``max_error``
    the largest.

    Raises:
        ConfigError: code ``measure``, if there is no such measure.
    """
    head, _, tail = name.partition(".")
    found = measures.get(head)
    if isinstance(found, Mapping):
        if JOINTS in found and tail and tail not in found:
            return _of_joints(name, found[JOINTS], experts, tail, largest=head == "max_error")
        # A kind that did not occur is not listed: it happened no time.
        default = 0 if head in ("refusals", "texts", "cycles", "unreadable") and tail else ...
        found = found.get(tail or "all", default)
    if found is ... or (head not in measures) or (tail and not isinstance(measures[head], Mapping)):
        near = ", ".join(sorted(_names(measures)))
        raise ConfigError("measure", f"there is no measure {name}", near)
    return None if found is None else float(found)


def flat(measures: Mapping[str, Any]) -> dict[str, float]:
    """Every measure that has a value, by its dotted name."""
    return {name: float(value) for name, value in _names(measures).items() if value is not None}


def without_value(measures: Mapping[str, Any]) -> set[str]:
    """Names of the measures that this run has no value for."""
    return {name for name, value in _names(measures).items() if value is None}


def _names(measures: Mapping[str, Any]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for head, value in measures.items():
        if not isinstance(value, Mapping):
            found[head] = value
            continue
        for key, inner in value.items():
            if isinstance(inner, Mapping):
                found.update((f"{head}.{joint}", number) for joint, number in inner.items())
            else:
                found[head if key == "all" else f"{head}.{key}"] = inner
    return found


def _of_joints(
    name: str, joints: Mapping[str, float | None], experts: Mapping[str, str], word: str, largest: bool
) -> float | None:
    chosen = [joint for joint in joints if joint == word]
    chosen = chosen or [joint for joint in joints if experts.get(joint) == word]
    chosen = chosen or [joint for joint in joints if word in re.split(r"[_./\-0-9]+", joint)]
    if not chosen:
        raise ConfigError("measure", f"{name}: no joint, expert or part of a joint's name", ", ".join(joints))
    values = [value for joint in chosen if (value := joints[joint]) is not None]
    if not values:
        return None
    return max(values) if largest else sum(values) / len(values)


def _by_joint(names: tuple[str, ...], values: NDArray[np.float64], join: Any) -> dict[str, Any]:
    """Values by joint and one figure for all; null where there is none."""
    known = values[np.isfinite(values)]
    joints = {name: _number(float(value)) for name, value in zip(names, values, strict=True)}
    return {"all": _number(float(join(known))) if known.size else None, JOINTS: joints}


def _quantiles(values: NDArray[np.float64]) -> dict[str, float | None]:
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    if not values.size:
        return dict.fromkeys(shares)
    ordered = np.sort(values)
    ranks: Iterator[int] = (max(0, math.ceil(share * values.size) - 1) for share in shares.values())
    return {name: _number(float(ordered[rank])) for name, rank in zip(shares, ranks, strict=True)}


def _number(value: float) -> float | None:
    """Rounded, so that the text is the same everywhere; None if it is not finite."""
    return round(value, DIGITS) if math.isfinite(value) else None
