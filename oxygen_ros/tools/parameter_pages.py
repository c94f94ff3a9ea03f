"""The text of config/oxygen.yaml and docs/parameters.md, from the schema of the configuration."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from oxygen_ros.config.field import Value
from oxygen_ros.config.schema import NamedSpec, ParameterSpec, oxygen_schema
from oxygen_ros.config.value import wanted

_WIDTH = 104

_YAML_HEAD = """\
# Every parameter of oxygen_node and action_player, with its default. Made by
# python -m oxygen_ros.tools.gen_parameter_docs; copy it, do not edit it.
#
# Values are commented out (#name: value), for a line that is not wins over preset and device profile.
# One has to stay, since ROS takes no empty section.
# Order: defaults < preset < device < params_file < launch arguments. Names may be dotted, as here, or
# nested. A list without entries is written ['']. <role>, <joint>, <source> and <task> stand for a name
# from the list that is named beside them.
/**:
  ros__parameters:
"""

_LIVE_LINE = "autostart"


_MARKDOWN_HEAD = """\
# Parameters

Made from `oxygen_ros/config` by `python -m oxygen_ros.tools.gen_parameter_docs`. Both nodes,
`oxygen_node` and `action_player`, read the same parameters: give them the same files.

Values are laid over each other in this order, the last one wins:

1. the defaults below;
2. the robot preset (`preset`), a name from `config/presets` or the path of a YAML file;
3. the device profile (`device`), a name from `config/devices` or the path of a YAML file;
4. the params file (`params_file`);
5. launch arguments, `--ros-args --params-file` and `-p`, and `ros2 param set` before configure.

The node logs once which value came from where. An unknown name, a wrong type, a value out of range or a
contradiction makes configure fail with a message that names the parameter, what was got and what is
wanted; the node stays alive and can be configured again.

Files may have the ROS form (`/**:` or a node's name, then `ros__parameters:`) or be plain YAML; names may
be nested or dotted. A whole number is taken where a float is wanted. ROS has no empty lists: where a list
may be empty, write `['']`. `.inf` is a float without limit. A list replaces the list below it.

`<role>`, `<joint>`, `<source>` and `<task>` stand for names from the list that the section gives. Joints
of the state that are not commanded have no section in `robot.joints`.
"""


def parameters_yaml() -> str:
    """Content of config/oxygen.yaml: each parameter commented out below its help."""
    lines: list[str] = []
    for title, specs, named in _sections():
        lines += ["", f"    # ---- {title or 'general'} ----"]
        if named is not None:
            lines.append(f"    # One for each name in {' or '.join(named.names_from)}.")
        for spec in specs:
            lines += _yaml_entry(spec)
        if named is not None:
            lines += _yaml_special_defaults(named)
    return _YAML_HEAD + "\n".join(lines[1:]) + "\n"


def parameters_markdown() -> str:
    """Content of docs/parameters.md: one table for each section."""
    lines: list[str] = []
    for title, specs, named in _sections():
        lines += ["", f"## {title or 'General'}", ""]
        if named is not None:
            lines += [f"One for each name in `{'` or `'.join(named.names_from)}`.", ""]
        lines += ["| name | default | wanted | meaning |", "|---|---|---|---|"]
        for spec in specs:
            note = " Fixed at start." if spec.facts.is_read_only else ""
            row = (f"`{spec.name}`", f"`{yaml_value(spec.default)}`", wanted(spec), spec.facts.help + note)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
        if named is not None and named.defaults:
            lines += ["", "Other defaults:", ""]
            lines += [
                f"- `{name}`: `{yaml_value(value)}`" for name, value in _special_defaults(named).items()
            ]
    return _MARKDOWN_HEAD + "\n".join(lines) + "\n"


def yaml_value(value: Value) -> str:
    """``value`` as YAML writes it; an empty list as ``['']``."""
    if isinstance(value, tuple):
        return "[" + ", ".join(yaml_value(item) for item in value) + "]" if value else "['']"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value).replace("inf", ".inf")
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _sections() -> Iterator[tuple[str, list[ParameterSpec], NamedSpec | None]]:
    """Title, parameters and, for a map of sections, its spec; in the order of declaration."""
    schema = oxygen_schema()
    groups: dict[str, list[ParameterSpec]] = {}
    for spec in schema.parameters:
        groups.setdefault(spec.name.rpartition(".")[0], []).append(spec)
    for title, specs in groups.items():
        yield title, specs, None
        for named in schema.named:
            if named.prefix.rpartition(".")[0] == title:
                example = f"<{named.noun}>"
                yield f"{named.prefix}.{example}", list(named.expand(example)), named


def _yaml_entry(spec: ParameterSpec) -> list[str]:
    text = f"{spec.facts.help} ({wanted(spec)})" + (" Fixed at start." if spec.facts.is_read_only else "")
    comment = textwrap.wrap(text, _WIDTH, initial_indent="    # ", subsequent_indent="    # ")
    mark = "" if spec.name == _LIVE_LINE else "#"
    return [*comment, f"    {mark}{spec.name}: {yaml_value(spec.default)}"]


def _yaml_special_defaults(named: NamedSpec) -> list[str]:
    special = _special_defaults(named)
    head = ["    # Defaults that differ:"] if special else []
    return head + [f"    #{name}: {yaml_value(value)}" for name, value in special.items()]


def _special_defaults(named: NamedSpec) -> Mapping[str, Value]:
    usual = {spec.name: spec.default for spec in named.parameters}
    return {
        f"{named.prefix}.{name}.{key}": value
        for name, values in named.defaults.items()
        for key, value in values.items()
        if value != usual[key]
    }
