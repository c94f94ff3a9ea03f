"""A run against an earlier one: what changed, and what got worse by more than it may."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from oxygen_ros.errors import ConfigError
from oxygen_ros.replay.report.measures import flat, without_value

WORSE_WHEN_LARGER = {
    "mae": 0.05,
    "max_error": 0.10,
    "seam_jump": 0.10,
    "misses": 0.0,
    "latency_ms": 0.10,
    "refusals": 0.0,
    "unreadable": 0.0,
    "cycles.holding": 0.0,
    "cycles.failed": 0.0,
    "player.ticks_missed": 0.0,
}
"""Measures and by what share they may grow; also those below them, such as mae.left_elbow."""
WORSE_WHEN_SMALLER = {"texts.completion": 0.05, "decode.tokens_per_s": 0.10, "cycles.acted": 0.0}
KINDS = ("refusals", "unreadable")
"""Behind these stand kinds, which are not listed where they did not occur."""
SMALLEST = 1e-6
"""Differences below this are none."""


def read_baseline(folder: Path) -> dict[str, Any]:
    """The report of an earlier run.

    Raises:
        ConfigError: code ``baseline``.
    """
    path = folder / "report.json" if folder.is_dir() else folder
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        report["measures"], report["fingerprints"], report["texts"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = f"{path} is no report of a replay ({error})"
        raise ConfigError("baseline", what, "a folder with report.json") from error
    return dict(report)


def changes(
    run: Mapping[str, Any], before: Mapping[str, Any], tolerances: Mapping[str, float]
) -> dict[str, str]:
    """What is different, in words, by the rule that it breaks."""
    found = {}
    for word, key in (("actions_changed", "actions"), ("inputs_changed", "inputs")):
        if run["fingerprints"][key] != before["fingerprints"][key]:
            found[word] = f"the {key} are not those of the baseline"
    if run["fingerprints"]["texts"] != before["fingerprints"]["texts"]:
        found["text_changed"] = _text_change(run["texts"], before["texts"])
    worse = regressions(run["measures"], before["measures"], tolerances)
    if worse:
        found["regressed"] = "; ".join(worse)
    return found


def regressions(
    now: Mapping[str, Any], before: Mapping[str, Any], tolerances: Mapping[str, float]
) -> list[str]:
    """Measures that are worse than before by more than their tolerance, one sentence each.

    Args:
        now: measures of this run.
        before: measures of the baseline.
        tolerances: by measure, how much worse in its own unit it may be, in place of the built-in share.

    Raises:
        ConfigError: code ``tolerance``, for a measure that is not compared.
    """
    old, new = flat(before), flat(now)
    lost = old.keys() & without_value(now)
    worse = []
    _refuse_unknown(tolerances, (*old, *new, *without_value(now), *without_value(before)))
    for name in sorted(old.keys() | new.keys()):
        for rules, sign in ((WORSE_WHEN_LARGER, 1), (WORSE_WHEN_SMALLER, -1)):
            share = _nearest_rule(name, rules)
            if share is None:
                continue
            if name in lost:
                worse.append(f"{name} was {old[name]:g} and has no value")
                continue
            was, now_is = old.get(name, 0.0), new.get(name, 0.0)
            given = _nearest_rule(name, tolerances)
            allowed = share * abs(was) if given is None else given
            if sign * (now_is - was) > allowed + SMALLEST:
                worse.append(f"{name} was {was:g} and is {now_is:g}")
    return worse


def _nearest_rule(name: str, rules: Mapping[str, float]) -> float | None:
    """The rule of a measure, or of the one it is a part of. Counts beside a figure are no parts of it."""
    if name in ("seam_jump.seams", "seam_jump.step"):
        return None
    return rules[name] if name in rules else rules.get(name.partition(".")[0])


def _refuse_unknown(tolerances: Mapping[str, float], names: Collection[str]) -> None:
    compared = {
        name
        for name in names
        if any(_nearest_rule(name, rules) is not None for rules in (WORSE_WHEN_LARGER, WORSE_WHEN_SMALLER))
    }
    known = compared | {name.partition(".")[0] for name in compared}
    asked = {name for name in tolerances if name.partition(".")[0] not in KINDS}
    if strange := sorted(asked - known):
        raise ConfigError(
            "tolerance", f"no measure {', '.join(strange)} is compared", ", ".join(sorted(known))
        )


def _text_change(now: list[Mapping[str, Any]], before: list[Mapping[str, Any]]) -> str:
    """The first text that is another one."""
    for new, old in zip(now, before, strict=False):
        for key in ("request_id", "text", "reason", "observation_id"):
            if new[key] != old[key]:
                return f"{key} of {new['request_id']} was {old[key]!r} and is {new[key]!r}"
    return f"there were {len(before)} texts and are {len(now)}"
