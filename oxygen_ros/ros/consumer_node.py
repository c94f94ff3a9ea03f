"""What a node that listens to the brain needs and is no business of its own: parameters, health, a clean end.

A subclass declares a dataclass of parameters, makes its topics in ``__init__`` and closes in ``close``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.clock import Clock as RosClock
from rclpy.clock_type import ClockType
from rclpy.exceptions import (
    InvalidParameterTypeException,
    InvalidParameterValueException,
    NameValidationException,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from oxygen_ros.clock import SteadyClock
from oxygen_ros.config.schema import ParameterSpec, parameter_specs
from oxygen_ros.config.value import coerce, nearest
from oxygen_ros.errors import ConfigError, OxygenError
from oxygen_ros.ros import qos
from oxygen_ros.ros.arguments import RosArguments
from oxygen_ros.ros.descriptors import descriptor, raw_value, ros_parameter, with_floats
from oxygen_ros.ros.diagnostics import health
from oxygen_ros.ros.process import run_node
from oxygen_ros.runtime.refusals import Refusals

HEARTBEAT_S = 1.0
EXIT_MISUSE = 2

SettingsT = TypeVar("SettingsT")


class ConsumerNode(Node):
    """A plain node: works from its start to its end. Parameters are fixed while it runs."""

    def __init__(self, name: str, *, arguments: RosArguments | None = None, **kwargs: Any) -> None:
        """Begin the heartbeat.

        Args:
            name: of the node.
            arguments: what ``start_ros`` returned.
            kwargs: of ``rclpy.node.Node``.

        Raises:
            ConfigError: if a params file of the command line could not be read.
        """
        super().__init__(name, **kwargs)
        if arguments is not None and arguments.unread_files:
            files = ", ".join(arguments.unread_files)
            raise ConfigError("params_file", f"cannot be read: {files}", "a YAML file in the form of ROS")
        self.steady = SteadyClock()
        self.refusals = Refusals(self.steady, self.get_logger().warning)
        self.on_end: Callable[[], None] = lambda: None
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", qos.stream(10))
        steady = RosClock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(HEARTBEAT_S, self._on_heartbeat, clock=steady)

    def settings(self, kind: type[SettingsT]) -> SettingsT:
        """Declare the parameters of a dataclass, with ranges and help, and return their values.

        Raises:
            ConfigError: names the parameter, what was given and what is wanted.
        """
        specs = parameter_specs(kind())
        known = {spec.name: spec for spec in specs}
        for name in self._parameter_overrides:
            if name not in known and not self.has_parameter(name) and not name.startswith("qos_overrides."):
                near = nearest(name, list(known))
                raise ConfigError(
                    "unknown_parameter", f"there is no parameter {name}", f"{near}" if near else ""
                )
        return kind(**{spec.name: self._declared(spec) for spec in specs})

    def health_line(self) -> DiagnosticStatus:
        """How the node fares."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what is not ROS's: processes, files."""

    def now_ns(self) -> int:
        """ROS time."""
        return int(self.get_clock().now().nanoseconds)

    def shut_down(self) -> None:
        """For the end of the process: nothing is spun any more."""
        self.close()

    def publish_diagnostics(self) -> None:
        """Send health now."""
        self._diagnostics.publish(health([self.health_line()], self.now_ns()))

    def _declared(self, spec: ParameterSpec) -> Any:
        given = self._parameter_overrides.get(spec.name)
        default = ros_parameter(spec, spec.default)
        if given is not None and given.type_ is not Parameter.Type.NOT_SET:
            default = with_floats(given, spec)
        value = coerce(spec, raw_value(default), "given")
        facts = descriptor(spec, is_in_section=False)
        facts.read_only = True
        try:
            self.declare_parameter(spec.name, default.value, facts, ignore_override=True)
        except (InvalidParameterTypeException, InvalidParameterValueException) as error:
            raise ConfigError("parameter", str(error)) from error
        return value

    def _on_heartbeat(self) -> None:
        self.publish_diagnostics()


def run_consumer(
    make_node: Callable[[RosArguments], ConsumerNode], arguments: Sequence[str] | None = None
) -> int:
    """Run a consumer until a signal ends it. Exit code 2 if its parameters cannot be used."""
    try:
        return run_node(make_node, arguments)
    except (OxygenError, NameValidationException) as fault:
        print(fault, file=sys.stderr)
        return EXIT_MISUSE
