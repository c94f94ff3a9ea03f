"""Lays values over each other, typed and by known name, and remembers which layer each came from."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oxygen_ros.config.field import Value
from oxygen_ros.config.schema import NamedSpec, ParameterSpec, Schema, oxygen_schema, section_names
from oxygen_ros.config.value import coerce, nearest
from oxygen_ros.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class Layer:
    """Raw values by full name, all from one source."""

    source: str
    values: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Merged:
    """Typed values that were given somewhere, and the source that won, by full name."""

    values: Mapping[str, Value]
    sources: Mapping[str, str]


def merge(layers: Sequence[Layer]) -> Merged:
    """Merge ``layers``, lowest first.

    A section of a name that is not listed (``robot.cameras.wrist.*`` without the role wrist) is an
    error where the list comes from the same or a lower layer; a higher layer that lists other names
    drops it.

    Raises:
        ConfigError: unknown_parameter, unknown_name or what ``coerce`` raises.
    """
    schema = oxygen_schema()
    static = {spec.name: spec for spec in schema.parameters}
    values: dict[str, Value] = {}
    sources: dict[str, str] = {}
    ranks: dict[str, int] = {}

    def put(rank: int, layer: Layer, spec: ParameterSpec, raw: Any) -> None:
        values[spec.name] = coerce(spec, raw, layer.source)
        sources[spec.name] = layer.source
        ranks[spec.name] = rank

    for rank, layer in enumerate(layers):
        for name, raw in layer.values.items():
            if name in static:
                put(rank, layer, static[name], raw)
    specs = schema.expand(values)
    for rank, layer in enumerate(layers):
        for name, raw in layer.values.items():
            if name in static:
                continue
            if name in specs:
                put(rank, layer, specs[name], raw)
                continue
            named = _section_of(name, schema)
            if named is None or not _is_dropped(named, ranks, rank):
                raise _unknown(name, layer.source, specs, named, values, static)
    return Merged(values, sources)


def _section_of(name: str, schema: Schema) -> NamedSpec | None:
    for named in schema.named:
        if name.startswith(f"{named.prefix}."):
            return named
    return None


def _is_dropped(named: NamedSpec, ranks: Mapping[str, int], rank: int) -> bool:
    """True if a layer above ``rank`` replaced the list of names."""
    return max(ranks.get(source, -1) for source in named.names_from) > rank


def _unknown(
    name: str,
    source: str,
    specs: Mapping[str, ParameterSpec],
    named: NamedSpec | None,
    values: Mapping[str, Value],
    static: Mapping[str, ParameterSpec],
) -> ConfigError:
    if named is not None:
        names = section_names(named, static, values)
        own = [known for known in names if name.startswith(f"{named.prefix}.{known}.")]
        if not own:
            given = name[len(named.prefix) + 1 :].split(".")[0]
            near = nearest(given, names)
            lists = " or ".join(named.names_from)
            return ConfigError(
                "unknown_name",
                f"{name} ({source}): there is no {named.noun} '{given}' in {lists}; "
                f"there are: {', '.join(names) or 'none'}.",
                f"use {named.prefix}.{near}" if near else f"add '{given}' to {named.names_from[0]}",
            )
    near = _nearest_parameter(name, specs)
    return ConfigError(
        "unknown_parameter",
        f"There is no parameter {name} ({source}).",
        near or "docs/parameters.md lists all parameters",
    )


def _nearest_parameter(name: str, known: Iterable[str]) -> str | None:
    names = list(known)
    near = nearest(name, names)
    if near is not None:
        return near
    last = name.rpartition(".")[2]
    near_last = nearest(last, sorted({entry.rpartition(".")[2] for entry in names}))
    if near_last is None:
        return None
    return next(entry for entry in names if entry.rpartition(".")[2] == near_last)
