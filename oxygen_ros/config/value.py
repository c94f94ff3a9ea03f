"""Turns one value, as YAML or ROS gives it, into the type its parameter wants, or says what is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

from oxygen_ros.config.field import Value
from oxygen_ros.config.schema import ParameterSpec, ValueKind
from oxygen_ros.errors import ConfigError

_ELEMENT = {
    ValueKind.INT_LIST: ValueKind.INT,
    ValueKind.FLOAT_LIST: ValueKind.FLOAT,
    ValueKind.STRING_LIST: ValueKind.STRING,
}


def coerce(spec: ParameterSpec, raw: Any, source: str) -> Value:
    """``raw`` as the type of ``spec``. A whole number is a float where one is wanted; nothing else turns.

    Args:
        spec: what is wanted.
        raw: what was given; lists may be any sequence.
        source: where it was given, for messages.

    Raises:
        ConfigError: wrong_type, empty_list, out_of_range or not_a_choice.
    """
    if spec.kind not in _ELEMENT:
        value: Value = _scalar(spec, spec.kind, raw, source)
        _check(spec, value, source)
        return value
    return _list(spec, raw, source)


def wanted(spec: ParameterSpec) -> str:
    """Type, unit, bounds and choices of ``spec`` in one phrase, as in "float [Hz], 0.1 to 1000"."""
    facts = spec.facts
    text = spec.kind.value + (f" [{facts.unit}]" if facts.unit else "")
    if facts.choices:
        return text + ", one of: " + ", ".join(choice or "''" for choice in facts.choices)
    return text + (f", {limits(spec)}" if limits(spec) else "")


def limits(spec: ParameterSpec) -> str:
    """The bounds in words, empty for none."""
    low, high = spec.facts.minimum, spec.facts.maximum
    if low is not None and high is not None:
        return f"{low:.10g} to {high:.10g}"
    if low is not None:
        return f"at least {low:.10g}"
    return f"at most {high:.10g}" if high is not None else ""


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word most like ``word``, if any is near."""
    close = get_close_matches(word, known, n=1, cutoff=0.6)
    return close[0] if close else None


def _list(spec: ParameterSpec, raw: Any, source: str) -> Value:
    if isinstance(raw, (str, bytes, bool, int, float, dict)) or raw is None or not hasattr(raw, "__iter__"):
        raise _wrong_type(spec, raw, source, "write a list: [a, b]")
    items = list(raw)
    if not items:
        raise _empty_list(spec, source)
    element = _ELEMENT[spec.kind]
    values = [_scalar(spec, element, item, source) for item in items]
    if spec.kind is ValueKind.STRING_LIST:
        values = [value for value in values if value != ""]
    for value in values:
        _check(spec, value, source)
    return tuple(values)


def _scalar(spec: ParameterSpec, kind: ValueKind, raw: Any, source: str) -> Any:
    is_number = isinstance(raw, (int, float)) and not isinstance(raw, bool)
    accepts: dict[ValueKind, Callable[[], bool]] = {
        ValueKind.BOOL: lambda: isinstance(raw, bool),
        ValueKind.INT: lambda: is_number and isinstance(raw, int),
        ValueKind.FLOAT: lambda: is_number,
        ValueKind.STRING: lambda: isinstance(raw, str),
    }
    if not accepts[kind]():
        raise _wrong_type(spec, raw, source, _type_hint(kind, raw))
    return float(raw) if kind is ValueKind.FLOAT else raw


def _check(spec: ParameterSpec, value: Any, source: str) -> None:
    facts = spec.facts
    if facts.choices and value not in facts.choices:
        near = nearest(value, facts.choices)
        raise ConfigError(
            "not_a_choice",
            f"{spec.name} is '{value}' ({source}); allowed: "
            + ", ".join(choice or "''" for choice in facts.choices)
            + ".",
            f"{spec.name}: {near}" if near else "",
        )
    if isinstance(value, float) and math.isnan(value):
        raise ConfigError("out_of_range", f"{spec.name} is not a number ({source}); wanted {wanted(spec)}.")
    low = -math.inf if facts.minimum is None else facts.minimum
    high = math.inf if facts.maximum is None else facts.maximum
    if isinstance(value, (int, float)) and not low <= value <= high:
        near_value = low if value < low else high
        raise ConfigError(
            "out_of_range",
            f"{spec.name} is {value:.10g} ({source}); wanted {wanted(spec)}.",
            f"{spec.name}: {near_value:.10g}",
        )


def _wrong_type(spec: ParameterSpec, raw: Any, source: str, hint: str) -> ConfigError:
    got = "nothing" if raw is None else f"{type(raw).__name__} {raw!r}"
    return ConfigError("wrong_type", f"{spec.name} is {got} ({source}); wanted {wanted(spec)}.", hint)


def _empty_list(spec: ParameterSpec, source: str) -> ConfigError:
    none = "write [''] for none, or leave the line out" if spec.default == () else "leave the line out"
    return ConfigError(
        "empty_list",
        f"{spec.name} is [] ({source}); an empty list has no type in ROS. Wanted {wanted(spec)}.",
        none,
    )


def _type_hint(kind: ValueKind, raw: Any) -> str:
    if kind is ValueKind.STRING and raw is not None:
        return "put it in quotes; YAML reads it as another type"
    if kind is ValueKind.BOOL:
        return "write true or false"
    if kind is ValueKind.FLOAT and isinstance(raw, str):
        return "write a number with a point, without quotes: 0.5"
    if kind is ValueKind.INT and isinstance(raw, float) and raw.is_integer():
        return f"write {int(raw)}"
    return ""
