"""The arguments of the launch files and the parameters they become; one table for all of them.

Knows no launch library, so it is tested without one. An argument left empty gives no parameter: what preset,
device profile and params file say then holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class LaunchArgument:
    """One argument: its parameter on both nodes ("" when it has none), default and help."""

    name: str
    parameter: str
    help: str
    default: str = ""
    is_bool: bool = False

    @property
    def choices(self) -> tuple[str, ...] | None:
        """Allowed values; None for any."""
        return (*BOOLEANS, *([""] if self.default == "" else [])) if self.is_bool else None


ARGUMENTS = (
    LaunchArgument("preset", "preset", "Robot preset: a name from config/presets or a file."),
    LaunchArgument("device", "device", "Device profile: a name from config/devices or a file."),
    LaunchArgument("checkpoint", "model.checkpoint", "Folder of the model's checkpoint."),
    LaunchArgument("params_file", "params_file", "YAML file with parameters, over preset and device."),
    LaunchArgument("namespace", "", "Namespace of both nodes."),
    LaunchArgument("use_sim_time", "use_sim_time", "Take time from /clock.", "false", is_bool=True),
    LaunchArgument("autostart", "autostart", "Configure and activate by themselves.", "true", is_bool=True),
    LaunchArgument("enable_control", "enable_control", "Send commands to the robot.", is_bool=True),
)


def parameters_from(values: Mapping[str, str]) -> dict[str, str | bool]:
    """Return the ROS parameters that launch arguments stand for; an empty one stands for none."""
    given = ((argument, values[argument.name]) for argument in ARGUMENTS if argument.parameter)
    return {
        argument.parameter: BOOLEANS[value.lower()] if argument.is_bool else value
        for argument, value in given
        if value != ""
    }
