"""Between the declared parameters and rclpy's: descriptors with ranges, and values as ROS types them."""

from __future__ import annotations

import math
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.parameter import Parameter

from oxygen_ros.config.field import Value
from oxygen_ros.config.schema import ParameterSpec, ValueKind
from oxygen_ros.config.value import wanted

_TYPES = {
    ValueKind.BOOL: Parameter.Type.BOOL,
    ValueKind.INT: Parameter.Type.INTEGER,
    ValueKind.FLOAT: Parameter.Type.DOUBLE,
    ValueKind.STRING: Parameter.Type.STRING,
    ValueKind.INT_LIST: Parameter.Type.INTEGER_ARRAY,
    ValueKind.FLOAT_LIST: Parameter.Type.DOUBLE_ARRAY,
    ValueKind.STRING_LIST: Parameter.Type.STRING_ARRAY,
}
_INT64_MAX = 2**63 - 1


def descriptor(spec: ParameterSpec, *, is_in_section: bool) -> ParameterDescriptor:
    """Descriptor of ``spec``: help with unit and choices, range, read-only flag.

    Parameters of named sections can be deleted with their section; rclpy allows that to dynamically
    typed ones only. Their type is checked all the same, by ``NodeParameters``.
    """
    made = ParameterDescriptor(
        name=spec.name,
        type=_TYPES[spec.kind].value,
        description=f"{spec.facts.help} ({wanted(spec)})",
        additional_constraints=", ".join(choice or "''" for choice in spec.facts.choices),
        read_only=spec.facts.is_read_only,
        dynamic_typing=is_in_section,
    )
    low, high = spec.facts.minimum, spec.facts.maximum
    if low is None and high is None:
        return made
    if spec.kind is ValueKind.INT:
        start = -_INT64_MAX if low is None else int(low)
        made.integer_range = [
            IntegerRange(from_value=start, to_value=_INT64_MAX if high is None else int(high))
        ]
    elif spec.kind is ValueKind.FLOAT:
        made.floating_point_range = [
            FloatingPointRange(
                from_value=-math.inf if low is None else float(low),
                to_value=math.inf if high is None else float(high),
            )
        ]
    return made


def ros_parameter(spec: ParameterSpec, value: Value) -> Parameter:
    """``value`` as a ROS parameter; an empty list of strings as ``['']``."""
    if isinstance(value, tuple):
        return Parameter(spec.name, _TYPES[spec.kind], list(value) or [""])
    return Parameter(spec.name, _TYPES[spec.kind], value)


def with_floats(parameter: Parameter, spec: ParameterSpec) -> Parameter:
    """``parameter`` with whole numbers turned into floats where ``spec`` wants floats."""
    if spec.kind is ValueKind.FLOAT and parameter.type_ is Parameter.Type.INTEGER:
        return Parameter(parameter.name, Parameter.Type.DOUBLE, float(parameter.value))
    if spec.kind is ValueKind.FLOAT_LIST and parameter.type_ is Parameter.Type.INTEGER_ARRAY:
        return Parameter(parameter.name, Parameter.Type.DOUBLE_ARRAY, [float(v) for v in parameter.value])
    return parameter


def raw_value(parameter: Parameter) -> Any:
    """Value of ``parameter`` as the loader takes it. ROS hands ``[]`` over as "not set"."""
    return [] if parameter.type_ is Parameter.Type.NOT_SET else parameter.value
