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
    return _Merge(oxygen_schema()).run(layers)


class _Merge:
    """One run of ``merge``: parameters with fixed names first, since their lists name the sections."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._fixed = {spec.name: spec for spec in schema.parameters}
        self._values: dict[str, Value] = {}
        self._sources: dict[str, str] = {}
        self._ranks: dict[str, int] = {}

    def run(self, layers: Sequence[Layer]) -> Merged:
        for rank, layer in enumerate(layers):
            for name, raw in layer.values.items():
                if name in self._fixed:
                    self._put(rank, layer, self._fixed[name], raw)
        specs = self._schema.expand(self._values)
        for rank, layer in enumerate(layers):
            for name, raw in layer.values.items():
                if name in self._fixed:
                    continue
                if name in specs:
                    self._put(rank, layer, specs[name], raw)
                elif not self._is_dropped(name, rank):
                    raise self._unknown(name, layer.source, specs)
        return Merged(self._values, self._sources)

    def _put(self, rank: int, layer: Layer, spec: ParameterSpec, raw: Any) -> None:
        self._values[spec.name] = coerce(spec, raw, layer.source)
        self._sources[spec.name] = layer.source
        self._ranks[spec.name] = rank

    def _section_of(self, name: str) -> NamedSpec | None:
        return next((it for it in self._schema.named if name.startswith(f"{it.prefix}.")), None)

    def _is_dropped(self, name: str, rank: int) -> bool:
        """True if a layer above ``rank`` replaced the list of names."""
        named = self._section_of(name)
        return named is not None and any(self._ranks.get(key, -1) > rank for key in named.names_from)

    def _unknown(self, name: str, source: str, specs: Mapping[str, ParameterSpec]) -> ConfigError:
        named = self._section_of(name)
        if named is not None:
            names = section_names(named, self._fixed, self._values)
            if not any(name.startswith(f"{named.prefix}.{known}.") for known in names):
                return _unknown_name(name, source, named, names)
        return ConfigError(
            "unknown_parameter",
            f"There is no parameter {name} ({source}).",
            _nearest_parameter(name, specs) or "docs/parameters.md lists all parameters",
        )


def _unknown_name(name: str, source: str, named: NamedSpec, names: Sequence[str]) -> ConfigError:
    given = name[len(named.prefix) + 1 :].split(".")[0]
    near = nearest(given, names)
    return ConfigError(
        "unknown_name",
        f"{name} ({source}): there is no {named.noun} '{given}' in {named.names_from[0]}; "
        f"there are: {', '.join(names) or 'none'}.",
        f"{named.prefix}.{near}" if near else f"add '{given}' to {named.names_from[0]}",
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
