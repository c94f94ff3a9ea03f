"""Walks the configuration dataclasses: flat parameter names with types, and back to dataclasses.

The flat names ("cycle.action_rate_hz", "robot.cameras.<role>.topic") are the names that people,
params files and ROS use. Knows no files and no checks beyond structure.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_type_hints

from oxygen_ros.config.field import NAMED_KEY, PARAMETER_KEY, NamedSections, Parameter, Value
from oxygen_ros.config.root import OxygenConfig


class ValueKind(enum.Enum):
    """Type of a parameter's value, named as people are told."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    STRING = "string"
    INT_LIST = "list of int"
    FLOAT_LIST = "list of float"
    STRING_LIST = "list of string"


_KINDS: dict[Any, ValueKind] = {
    bool: ValueKind.BOOL,
    int: ValueKind.INT,
    float: ValueKind.FLOAT,
    str: ValueKind.STRING,
    tuple[int, ...]: ValueKind.INT_LIST,
    tuple[float, ...]: ValueKind.FLOAT_LIST,
    tuple[str, ...]: ValueKind.STRING_LIST,
}


@dataclasses.dataclass(frozen=True)
class ParameterSpec:
    """One parameter by its full name."""

    name: str
    kind: ValueKind
    default: Value
    facts: Parameter


@dataclasses.dataclass(frozen=True)
class NamedSpec:
    """A map of sections, e.g. prefix "robot.cameras" with names from "robot.camera_roles".

    ``parameters`` are relative to one section. ``default_names`` are sections whose defaults differ
    from those of the element; ``defaults`` gives their values by relative name.
    """

    prefix: str
    noun: str
    names_from: tuple[str, ...]
    parameters: tuple[ParameterSpec, ...]
    defaults: Mapping[str, Mapping[str, Value]]

    def expand(self, name: str) -> Iterator[ParameterSpec]:
        """Full parameters of the section ``name``."""
        own = self.defaults.get(name, {})
        for spec in self.parameters:
            default = own.get(spec.name, spec.default)
            yield dataclasses.replace(spec, name=f"{self.prefix}.{name}.{spec.name}", default=default)


@dataclasses.dataclass(frozen=True)
class Schema:
    """Every parameter: those with a fixed name, and the maps of sections."""

    parameters: tuple[ParameterSpec, ...]
    named: tuple[NamedSpec, ...]

    def expand(self, values: Mapping[str, Value]) -> dict[str, ParameterSpec]:
        """All parameters by full name, given the lists of names in ``values`` (else the defaults)."""
        specs = {spec.name: spec for spec in self.parameters}
        for named in self.named:
            for name in section_names(named, specs, values):
                specs.update({spec.name: spec for spec in named.expand(name)})
        return specs


def section_names(
    named: NamedSpec, specs: Mapping[str, ParameterSpec], values: Mapping[str, Value]
) -> tuple[str, ...]:
    """Names of the sections of ``named``: the first of its lists that is not empty, without repeats."""
    for source in named.names_from:
        listed = values.get(source, specs[source].default)
        assert isinstance(listed, tuple)
        if listed:
            return tuple(dict.fromkeys(map(str, listed)))
    return ()


@cache
def oxygen_schema() -> Schema:
    """The schema of ``OxygenConfig``."""
    parameters: list[ParameterSpec] = []
    named: list[NamedSpec] = []
    _walk(OxygenConfig(), "", parameters, named)
    return Schema(tuple(parameters), tuple(named))


def _walk(instance: Any, prefix: str, parameters: list[ParameterSpec], named: list[NamedSpec]) -> None:
    hints = get_type_hints(type(instance))
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        name = prefix + field.name
        if PARAMETER_KEY in field.metadata:
            kind = _KINDS[hints[field.name]]
            parameters.append(ParameterSpec(name, kind, value, field.metadata[PARAMETER_KEY]))
        elif NAMED_KEY in field.metadata:
            named.append(_named_spec(name, prefix, field.metadata[NAMED_KEY], value))
        else:
            _walk(value, f"{name}.", parameters, named)


def _named_spec(name: str, prefix: str, facts: NamedSections, defaults: Mapping[str, Any]) -> NamedSpec:
    elements = {key: parameter_specs(value) for key, value in defaults.items()}
    return NamedSpec(
        prefix=name,
        noun=facts.noun,
        names_from=tuple(prefix + source for source in facts.names_from),
        parameters=parameter_specs(facts.element()),
        defaults={key: {spec.name: spec.default for spec in specs} for key, specs in elements.items()},
    )


def parameter_specs(instance: Any) -> tuple[ParameterSpec, ...]:
    """Every parameter of a configuration dataclass by its name below it; defaults are its values."""
    parameters: list[ParameterSpec] = []
    _walk(instance, "", parameters, [])
    return tuple(parameters)


def flatten(config: OxygenConfig) -> dict[str, Value]:
    """Every value of ``config`` by full name; the inverse of ``build``."""
    values: dict[str, Value] = {}
    _flatten(config, "", values)
    return values


def _flatten(instance: Any, prefix: str, values: dict[str, Value]) -> None:
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        name = prefix + field.name
        if PARAMETER_KEY in field.metadata:
            values[name] = value
        elif NAMED_KEY in field.metadata:
            for key, element in value.items():
                _flatten(element, f"{name}.{key}.", values)
        else:
            _flatten(value, f"{name}.", values)


def build(values: Mapping[str, Value]) -> OxygenConfig:
    """A configuration from typed values by full name; what is not there has its default."""
    schema = oxygen_schema()
    specs = {spec.name: spec for spec in schema.parameters}
    names = {named.prefix: section_names(named, specs, values) for named in schema.named}
    config = _build(OxygenConfig(), "", values, names)
    assert isinstance(config, OxygenConfig)
    return config


def _build(
    instance: Any, prefix: str, values: Mapping[str, Value], names: Mapping[str, tuple[str, ...]]
) -> Any:
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        name = prefix + field.name
        if PARAMETER_KEY in field.metadata:
            changes[field.name] = values.get(name, value)
        elif NAMED_KEY in field.metadata:
            element = field.metadata[NAMED_KEY].element
            changes[field.name] = {
                key: _build(value.get(key, element()), f"{name}.{key}.", values, names) for key in names[name]
            }
        else:
            changes[field.name] = _build(value, f"{name}.", values, names)
    return dataclasses.replace(instance, **changes)
