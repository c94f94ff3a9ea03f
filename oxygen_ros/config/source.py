"""Reads parameter files: the ROS form and plain nested YAML alike, into flat names with raw values."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from oxygen_ros.errors import ConfigError

ROS_KEY = "ros__parameters"
ROS_PARAMETERS = ("use_sim_time", "start_type_description_service")


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader that refuses a key given twice; plain YAML takes the last in silence."""


def _mapping(loader: _StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[str] = set()
    for key_node, _ in node.value:
        key = str(key_node.value)
        if key in seen:
            line = key_node.start_mark.line + 1
            raise ConfigError("bad_yaml", f"'{key}' is given twice, again in line {line}.")
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_parameters(path: Path, node_name: str) -> dict[str, Any]:
    """Flat names and raw values of ``path`` that are meant for ``node_name``.

    Raises:
        ConfigError: missing_file, bad_yaml, or no_section when the file has parameters, but none of
            its sections is for the node.
    """
    document = _load(path)
    if not contains_ros_form(document):
        return flatten_keys(document, str(path))
    sections = list(_ros_sections(document, "", path))
    matching = [body for name, body in sections if is_for_node(name, node_name)]
    if not matching:
        names = ", ".join(name for name, _ in sections)
        raise ConfigError(
            "no_section",
            f"{path} has no parameters for node '{node_name}'; its sections: {names}.",
            f"name the section '{node_name}' or '/**'",
        )
    flat: dict[str, Any] = {}
    for body in matching:
        flat.update(flatten_keys(body, str(path)))
    return flat


def is_for_node(section: str, node_name: str) -> bool:
    """True if the section of a params file, e.g. "/**" or "/robot/oxygen_node", is for the node.

    A section without a namespace is for the node in any namespace. So is any section when
    ``node_name`` does not start with "/": its namespace is not known.
    """
    space, _, name = section.strip("/").rpartition("/")
    own_space, _, own_name = node_name.strip("/").rpartition("/")
    is_space_free = not space or not node_name.startswith("/")
    if name == "**":
        return is_space_free or fnmatchcase(f"{own_space}/", f"{space}/*")
    return fnmatchcase(own_name, name) and (is_space_free or fnmatchcase(own_space, space))


def is_of_ros(name: str) -> bool:
    """True for parameters that every node has: they are not ours to judge."""
    return name in ROS_PARAMETERS or name.startswith("qos_overrides.")


def contains_ros_form(document: Any) -> bool:
    """True if a ``ros__parameters`` key is somewhere in ``document``."""
    if not isinstance(document, dict):
        return False
    return ROS_KEY in document or any(contains_ros_form(value) for value in document.values())


def flatten_keys(body: Any, origin: str, prefix: str = "") -> dict[str, Any]:
    """``{"a": {"b": 1}, "c.d": 2}`` as ``{"a.b": 1, "c.d": 2}``."""
    if body is None and not prefix:
        return {}
    if not isinstance(body, dict):
        raise ConfigError("bad_yaml", f"{origin} holds a {type(body).__name__}, not parameters by name.")
    flat: dict[str, Any] = {}
    for key, value in body.items():
        name = f"{prefix}{key}"
        entries = flatten_keys(value, origin, f"{name}.") if isinstance(value, dict) else {name: value}
        for entry, raw in entries.items():
            if entry in flat:
                raise ConfigError("bad_yaml", f"{origin} gives {entry} twice, nested and dotted.")
            flat[entry] = raw
    return flat


def _load(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            "missing_file", f"Cannot read the file {path}: {error}.", "check the path"
        ) from error
    try:
        return yaml.load(text, _StrictLoader)
    except yaml.YAMLError as error:
        raise ConfigError("bad_yaml", f"{path} is not valid YAML: {error}") from error
    except ConfigError as error:
        raise ConfigError(error.code, f"{path}: {error.message}", error.suggestion) from error


def _ros_sections(document: Any, prefix: str, path: Path) -> list[tuple[str, Any]]:
    sections: list[tuple[str, Any]] = []
    for key, value in document.items():
        name = f"{prefix}/{key}".replace("//", "/")
        if not isinstance(value, dict):
            raise ConfigError(
                "bad_yaml", f"{path}: '{name}' stands outside {ROS_KEY}.", f"move it below {ROS_KEY}"
            )
        if ROS_KEY in value:
            sections.append((name, value[ROS_KEY]))
        else:
            sections.extend(_ros_sections(value, name, path))
    return sections
