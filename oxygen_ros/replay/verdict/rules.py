"""Rules such as ``mae.arm>0.02`` or ``text_changed``: each fails a run when it holds."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oxygen_ros.errors import ConfigError
from oxygen_ros.replay.report.measures import value_of

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
CHANGES = ("text_changed", "actions_changed", "inputs_changed", "regressed")
"""Rules that need a baseline."""
OWN = ("warnings", "not_reproduced")
"""Rules that hold for a run with warnings, and for one that differs from the recorded run it repeats."""
_COMPARISON = re.compile(r"\s*([\w./\-]+)\s*(>=|<=|==|!=|>|<)\s*([-+0-9.eE]+)\s*")


@dataclass(frozen=True)
class Rule:
    """One rule; ``measure`` alone for the words of ``CHANGES`` and ``OWN``."""

    text: str
    measure: str
    compare: str = ""
    limit: float = 0.0


def parse_rule(text: str) -> Rule:
    """A rule from its text.

    Raises:
        ConfigError: code ``rule``.
    """
    word = text.strip()
    if word in CHANGES or word in OWN:
        return Rule(word, word)
    match = _COMPARISON.fullmatch(text)
    try:
        if match is not None:
            return Rule(word, match[1], match[2], float(match[3]))
    except ValueError:
        pass
    words = ", ".join((*CHANGES, *OWN))
    raise ConfigError("rule", f"'{text}' is no rule", f"one such as mae>0.02 or misses>0, or {words}")


def broken_rules(
    rules: Sequence[Rule], measures: Mapping[str, Any], experts: Mapping[str, str], changed: Mapping[str, str]
) -> list[str]:
    """One sentence for each rule that is broken.

    Args:
        rules: to look at.
        measures: of the run.
        experts: by joint.
        changed: what is the matter, in words, by the rule's word.

    Raises:
        ConfigError: code ``measure``, for a measure that does not exist.
    """
    broken = []
    for rule in rules:
        if not rule.compare:
            if rule.measure in changed:
                broken.append(f"{rule.text}: {changed[rule.measure]}")
            continue
        value = value_of(measures, experts, rule.measure)
        if value is None:
            broken.append(f"{rule.text}: this run has no such figure")
        elif OPERATORS[rule.compare](value, rule.limit):
            broken.append(f"{rule.text}: it is {value:g}")
    return broken
