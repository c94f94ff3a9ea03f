"""Parameter values that were given to a node, by source: params files, command line, ``ros2 param set``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rclpy.node import Node

from oxygen_ros.config import Layer
from oxygen_ros.config.source import is_of_ros, read_parameters
from oxygen_ros.errors import ConfigError
from oxygen_ros.ros.arguments import RosArguments
from oxygen_ros.ros.descriptors import raw_value

COMMAND_LINE = "command line"
SET_ON_NODE = "ros2 param set"


class GivenValues:
    """Raw values as given, right or wrong; each name has one source, the last that gave it."""

    def __init__(self, node: Node, arguments: RosArguments) -> None:
        """Take over the node's overrides. rcl tells the values that won, but not where they stood."""
        self._node_name = node.get_fully_qualified_name()
        self._unread_files = arguments.unread_files
        self._by_source: dict[str, dict[str, Any]] = {}
        source_of = self._sources(arguments)
        for name, parameter in node._parameter_overrides.items():
            if not is_of_ros(name) and not node.has_parameter(name):
                self._by_source[source_of.get(name, COMMAND_LINE)][name] = raw_value(parameter)

    def set(self, name: str, raw: Any) -> None:
        """Give ``name`` on the running node."""
        self.remove(name)
        self._by_source[SET_ON_NODE][name] = raw
        if name == "params_file":
            self._unread_files = ()

    def remove(self, name: str) -> None:
        """Forget that ``name`` was given, if it was."""
        for values in self._by_source.values():
            values.pop(name, None)

    def layers(self) -> list[Layer]:
        """All given values, lowest source first.

        Raises:
            ConfigError: if a params file of the command line cannot be read.
        """
        files = [
            Layer(RosArguments.label(path), read_parameters(Path(path), self._node_name))
            for path in self._unread_files
        ]
        return [*files, *(Layer(source, dict(values)) for source, values in self._by_source.items())]

    def items(self) -> Iterator[tuple[str, Any]]:
        """Name and raw value of all that was given, files that rcl could not read excepted."""
        for values in self._by_source.values():
            yield from values.items()

    def _sources(self, arguments: RosArguments) -> dict[str, str]:
        source_of: dict[str, str] = {}
        for path in arguments.params_files:
            label = RosArguments.label(path)
            self._by_source[label] = {}
            try:
                names = read_parameters(Path(path), self._node_name)
            except ConfigError:  # rcl took it; only the label is lost
                continue
            source_of.update(dict.fromkeys(names, label))
        source_of.update(dict.fromkeys(arguments.assigned, COMMAND_LINE))
        self._by_source[COMMAND_LINE] = {}
        self._by_source[SET_ON_NODE] = {}
        return source_of
