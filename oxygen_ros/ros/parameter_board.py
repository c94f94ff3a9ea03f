"""Keeps the ROS parameters of a node equal to a set of configuration values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from oxygen_ros.config.field import Value
from oxygen_ros.config.schema import ParameterSpec, oxygen_schema
from oxygen_ros.ros.descriptors import descriptor, ros_parameter

_STRANGER = "Not a parameter of this node. Remove it with: ros2 param delete"


class ParameterBoard:
    """Owns the declarations: of the schema's parameters, and of unknown ones so that they can be deleted."""

    def __init__(self, node: Node) -> None:
        """Nothing is declared before the first ``show``."""
        self._node = node
        self._fixed = frozenset(spec.name for spec in oxygen_schema().parameters)
        self._is_writing = False
        self.specs: Mapping[str, ParameterSpec] = {}
        self.strangers: frozenset[str] = frozenset()

    @property
    def is_writing(self) -> bool:
        """True while the board itself changes parameters."""
        return self._is_writing

    def show(self, values: Mapping[str, Value], given: Iterable[tuple[str, Any]]) -> None:
        """Declare, change and remove parameters until they are ``values`` and the unknown of ``given``."""
        wanted = oxygen_schema().expand(values)
        strangers = {name: raw for name, raw in given if name not in wanted}
        with self._writing():
            for name in [*self.specs, *self.strangers]:
                if name not in wanted and self._node.has_parameter(name):
                    self._node.undeclare_parameter(name)
            for name in self.strangers & wanted.keys():
                self._node.undeclare_parameter(name)
            for spec in wanted.values():
                self._show(spec, values.get(spec.name, spec.default))
            for name, raw in strangers.items():
                if not self._node.has_parameter(name):
                    facts = ParameterDescriptor(description=_STRANGER, dynamic_typing=True)
                    self._node.declare_parameter(name, raw or None, facts, ignore_override=True)
        self.specs, self.strangers = wanted, frozenset(strangers)

    def _show(self, spec: ParameterSpec, value: Value) -> None:
        parameter = ros_parameter(spec, value)
        if not self._node.has_parameter(spec.name):
            facts = descriptor(spec, is_in_section=spec.name not in self._fixed)
            self._node.declare_parameter(spec.name, parameter.value, facts, ignore_override=True)
        elif not spec.facts.is_read_only and self._node.get_parameter(spec.name).value != parameter.value:
            self._node.set_parameters([parameter])

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._is_writing = True
        try:
            yield
        finally:
            self._is_writing = False
