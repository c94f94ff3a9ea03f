"""The configuration as ROS parameters of one node: declared with ranges, and read back checked.

Wrong values never keep a node from starting: ``load`` refuses them by name, and they can be set anew
before the next ``load``. Called from the thread that spins the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from oxygen_ros.config import LoadedConfig, default_config_dirs, load_layers
from oxygen_ros.config.field import Value
from oxygen_ros.config.schema import flatten, oxygen_schema
from oxygen_ros.config.topics import TopicsConfig
from oxygen_ros.config.value import coerce
from oxygen_ros.errors import ConfigError
from oxygen_ros.ros.arguments import RosArguments
from oxygen_ros.ros.descriptors import raw_value, with_floats
from oxygen_ros.ros.given import SET_ON_NODE, GivenValues
from oxygen_ros.ros.parameter_board import ParameterBoard


def config_dirs() -> tuple[Path, ...]:
    """Folders with presets and device profiles: the installed share folder first."""
    try:
        installed = Path(get_package_share_directory("oxygen_ros")) / "config"
    except (PackageNotFoundError, LookupError):
        return default_config_dirs()
    return (installed, *default_config_dirs())


class NodeParameters:
    """All parameters of ``OxygenConfig`` on one node. They may be changed until locked; ``load`` reads them.

    What was given is kept apart from what follows from preset and device profile: a changed preset takes
    effect, and a parameter that is deleted falls back to the preset.
    """

    def __init__(
        self, node: Node, arguments: RosArguments | None = None, *, dirs: Sequence[Path] | None = None
    ) -> None:
        """Declare all parameters. ``arguments`` come from ``start_ros``; without them sources lack names."""
        self._node = node
        self._dirs = config_dirs() if dirs is None else tuple(dirs)
        self._given = GivenValues(node, arguments or RosArguments())
        self._board = ParameterBoard(node)
        self._lock_reason = ""
        self._last_log = ""
        self._refresh()
        node.add_pre_set_parameters_callback(self._before_set)
        node.add_on_set_parameters_callback(self._on_set)
        node.add_post_set_parameters_callback(self._after_set)

    @property
    def autostart(self) -> bool:
        """Whether the node is to configure and activate by itself; known even if ``load`` fails."""
        return bool(self._node.get_parameter("autostart").value)

    @property
    def health(self) -> str:
        """The topic of health; known even if ``load`` fails."""
        try:
            return self._load().config.topics.diagnostics
        except ConfigError:
            return TopicsConfig.diagnostics

    def load(self) -> LoadedConfig:
        """Read all parameters, show what they came to, and log once where each came from.

        Raises:
            ConfigError: names the parameter, what was got and wanted. Can be called again after changes.
        """
        loaded = self._load()
        self._board.show(flatten(loaded.config), self._given.items())
        self._set_ros_parameters(loaded.ros_parameters)
        log = loaded.describe()
        if log != self._last_log:
            self._last_log = log
            self._node.get_logger().info(f"Configuration: {log}")
            for warning in loaded.warnings:
                self._node.get_logger().warning(warning)
        return loaded

    def lock(self, reason: str) -> None:
        """Refuse changes with ``reason``: a configured node works with these values."""
        self._lock_reason = reason

    def unlock(self) -> None:
        """Allow changes again."""
        self._lock_reason = ""

    def _load(self) -> LoadedConfig:
        name = self._node.get_fully_qualified_name()
        return load_layers(self._given.layers(), config_dirs=self._dirs, node_name=name)

    def _refresh(self) -> None:
        """Show what follows from the given values; while they are wrong, those that are right alone."""
        try:
            values: Mapping[str, Value] = flatten(self._load().config)
        except ConfigError:
            values = self._usable()
        self._board.show(values, self._given.items())

    def _usable(self) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for _ in range(2):  # the lists of names first, then the sections they name
            specs = oxygen_schema().expand(values)
            for name, raw in self._given.items():
                if name in specs:
                    try:
                        values[name] = coerce(specs[name], raw, "")
                    except ConfigError:  # load says so
                        continue
        return values

    def _set_ros_parameters(self, values: Mapping[str, Any]) -> None:
        """Set use_sim_time and the like where one of our files gives it and nothing else did."""
        overrides = self._node._parameter_overrides
        for name, value in values.items():
            if name not in overrides and self._node.has_parameter(name):
                self._node.set_parameters([Parameter(name, value=value)])

    def _before_set(self, parameters: list[Parameter]) -> list[Parameter]:
        specs = self._board.specs
        return [with_floats(p, specs[p.name]) if p.name in specs else p for p in parameters]

    def _on_set(self, parameters: list[Parameter]) -> SetParametersResult:
        if self._board.is_writing:
            return SetParametersResult(successful=True)
        for parameter in parameters:
            spec = self._board.specs.get(parameter.name)
            if spec is None:
                continue
            if self._lock_reason:
                return SetParametersResult(successful=False, reason=f"{spec.name}: {self._lock_reason}")
            try:
                if parameter.type_ is not Parameter.Type.NOT_SET:
                    coerce(spec, raw_value(parameter), SET_ON_NODE)
            except ConfigError as error:
                return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _after_set(self, parameters: list[Parameter]) -> None:
        if self._board.is_writing:
            return
        for parameter in parameters:
            if parameter.type_ is Parameter.Type.NOT_SET:
                self._given.remove(parameter.name)
            elif parameter.name in self._board.specs or parameter.name in self._board.strangers:
                self._given.set(parameter.name, raw_value(parameter))
        self._refresh()
