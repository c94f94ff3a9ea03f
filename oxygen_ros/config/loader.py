"""Puts a configuration together: defaults < robot preset < device profile < params file < overrides.

The one way to get an ``OxygenConfig`` for real use. Says where each value came from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oxygen_ros.config.checks import check, warnings
from oxygen_ros.config.field import Value
from oxygen_ros.config.merge import Layer, merge
from oxygen_ros.config.root import OxygenConfig
from oxygen_ros.config.schema import build, flatten
from oxygen_ros.config.search import DEVICES, PRESETS, default_config_dirs, find
from oxygen_ros.config.source import flatten_keys, is_of_ros, read_parameters
from oxygen_ros.errors import ConfigError

CHOICES = ("preset", "device", "params_file")
"""Parameters that name a file with parameters. Empty is the same as not given."""


@dataclasses.dataclass(frozen=True)
class LoadedConfig:
    """A checked configuration, where its values came from, and what looks unwise.

    Attributes:
        sources: by parameter name, for each value that was given somewhere; others are defaults.
        warnings: one sentence each, to be logged once.
        ros_parameters: parameters of ROS itself that stood in a file, e.g. use_sim_time; not checked.
    """

    config: OxygenConfig
    sources: Mapping[str, str]
    warnings: tuple[str, ...]
    ros_parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def describe(self) -> str:
        """Every given value by source, a line for each section, for one log of the node."""
        values = flatten(self.config)
        lines = [
            f"{len(self.sources)} of {len(values)} parameters were given, the others have their defaults."
        ]
        for source in dict.fromkeys(self.sources.values()):
            lines.append(f"From {source}:")
            sections: dict[str, list[str]] = {}
            for name in (name for name, own in self.sources.items() if own == source):
                section, _, key = name.rpartition(".")
                sections.setdefault(section, []).append(f"{key} {_shown(values[name])}")
            lines.extend(f"  {section or 'general'}: {', '.join(held)}" for section, held in sections.items())
        return "\n".join(lines)


def load_config(
    *,
    preset: str | None = None,
    device: str | None = None,
    params_file: str | Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    config_dirs: Sequence[Path] | None = None,
    node_name: str = "oxygen_node",
) -> LoadedConfig:
    """Load and check a configuration.

    Args:
        preset: name or path of a robot preset; wins over the params file's.
        device: name or path of a device profile; wins over the params file's.
        params_file: YAML, in the ROS form or plain.
        overrides: launch arguments by name, nested or dotted; they win over everything.
        config_dirs: where ``presets/`` and ``devices/`` are; the default finds the package's own.
        node_name: whose sections of a params file in the ROS form are read; with its namespace if it
            has one.

    Raises:
        ConfigError: with a code, the parameter's name, what was got and wanted, and a suggestion.
    """
    given = flatten_keys(dict(overrides or {}), "overrides")
    given.update(
        (key, str(value))
        for key, value in zip(CHOICES, (preset, device, params_file), strict=True)
        if value is not None
    )
    return load_layers([Layer("launch arguments", given)], config_dirs=config_dirs, node_name=node_name)


def load_layers(
    layers: Sequence[Layer],
    *,
    config_dirs: Sequence[Path] | None = None,
    node_name: str = "oxygen_node",
) -> LoadedConfig:
    """As ``load_config``, from layers that the caller read, lowest first; all go over the params file.

    Raises:
        ConfigError: as ``load_config``.
    """
    dirs = default_config_dirs() if config_dirs is None else tuple(config_dirs)
    upper = [_without_empty_choices(layer) for layer in layers]
    files: list[Layer] = []
    params_file = _chosen("params_file", upper)
    if params_file:
        path = Path(params_file).expanduser()
        upper.insert(0, _read(path, f"params file {path}", node_name, ("params_file",)))
    for kind, key in ((PRESETS, "preset"), (DEVICES, "device")):
        name = _chosen(key, upper)
        if name:
            files.append(_read(find(kind, name, dirs), f"{key} {name}", node_name, CHOICES))
    everything = [*files, *upper]
    merged = merge([_ours(layer) for layer in everything])
    values: dict[str, Value] = dict(merged.values)
    sources = dict(merged.sources)
    if not values.get("robot.command_joint_names"):
        values["robot.command_joint_names"] = values.get("robot.joint_names", ())
        sources["robot.command_joint_names"] = "robot.joint_names"
    config = build(values)
    check(config)
    of_ros = {name: raw for layer in everything for name, raw in layer.values.items() if is_of_ros(name)}
    return LoadedConfig(config, sources, warnings(config), of_ros)


def _without_empty_choices(layer: Layer) -> Layer:
    kept = {name: raw for name, raw in layer.values.items() if name not in CHOICES or raw != ""}
    return Layer(layer.source, kept)


def _ours(layer: Layer) -> Layer:
    return Layer(layer.source, {name: raw for name, raw in layer.values.items() if not is_of_ros(name)})


def _chosen(key: str, layers: Sequence[Layer]) -> str:
    only = [Layer(layer.source, {key: layer.values[key]}) for layer in layers if key in layer.values]
    return str(merge(only).values.get(key, ""))


def _read(path: Path, source: str, node_name: str, forbidden: Sequence[str]) -> Layer:
    values = read_parameters(path, node_name)
    for key in forbidden:
        if key in values:
            raise ConfigError(
                "conflict", f"{path} sets {key}, which it cannot choose.", f"remove {key} there"
            )
    return _without_empty_choices(Layer(source, values))


def _shown(value: Value) -> str:
    return "[" + ", ".join(map(str, value)) + "]" if isinstance(value, tuple) else str(value)
