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
from oxygen_ros.config.source import flatten_keys, read_parameters
from oxygen_ros.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class LoadedConfig:
    """A checked configuration, where its values came from, and what looks unwise.

    Attributes:
        sources: by parameter name, for each value that was given somewhere; others are defaults.
        warnings: one sentence each, to be logged once.
    """

    config: OxygenConfig
    sources: Mapping[str, str]
    warnings: tuple[str, ...]

    def describe(self) -> str:
        """Every given value with its source, one per line, for one log of the node."""
        values = flatten(self.config)
        lines = [f"  {name} = {_shown(values[name])}  ({self.sources[name]})" for name in self.sources]
        head = f"{len(lines)} of {len(values)} parameters were given, the others have their defaults:"
        return "\n".join([head, *lines])


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
        overrides: launch arguments by full name, nested or dotted; they win over everything.
        config_dirs: where ``presets/`` and ``devices/`` are; the default finds the package's own.
        node_name: whose sections of a params file in the ROS form are read.

    Raises:
        ConfigError: with a code, the parameter's name, what was got and wanted, and a suggestion.
    """
    layers: list[Layer] = []
    if params_file is not None:
        path = Path(params_file).expanduser()
        layers.append(Layer(f"params file {path}", read_parameters(path, node_name)))
    given = flatten_keys(dict(overrides or {}), "overrides")
    given.update({key: value for key, value in (("preset", preset), ("device", device)) if value is not None})
    if given:
        layers.append(Layer("launch argument", given))
    return load_layers(layers, config_dirs=config_dirs, node_name=node_name)


def load_layers(
    layers: Sequence[Layer],
    *,
    config_dirs: Sequence[Path] | None = None,
    node_name: str = "oxygen_node",
) -> LoadedConfig:
    """As ``load_config``, from layers that the caller read, lowest first, above preset and device.

    Raises:
        ConfigError: as ``load_config``.
    """
    dirs = default_config_dirs() if config_dirs is None else tuple(config_dirs)
    chosen = merge([Layer(x.source, _only_choice(x.values)) for x in layers]).values
    files: list[Layer] = []
    for kind, key in ((PRESETS, "preset"), (DEVICES, "device")):
        name = str(chosen.get(key, ""))
        if name:
            path = find(kind, name, dirs)
            values = read_parameters(path, node_name)
            _refuse_choice(values, path)
            files.append(Layer(f"{key} {name}", values))
    return _finish(merge([*files, *layers]))


def _finish(merged: Any) -> LoadedConfig:
    values: dict[str, Value] = dict(merged.values)
    sources: dict[str, str] = dict(merged.sources)
    if not values.get("robot.command_joint_names"):
        values["robot.command_joint_names"] = values.get("robot.joint_names", ())
        sources["robot.command_joint_names"] = "same as robot.joint_names"
    config = build(values)
    check(config)
    return LoadedConfig(config, sources, warnings(config))


def _only_choice(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key in ("preset", "device")}


def _refuse_choice(values: Mapping[str, Any], path: Path) -> None:
    for key in _only_choice(values):
        raise ConfigError(
            "conflict", f"{path} sets {key}; only a params file or a launch argument can.", f"remove {key}"
        )


def _shown(value: Value) -> str:
    return "[" + ", ".join(map(str, value)) + "]" if isinstance(value, tuple) else repr(value)
