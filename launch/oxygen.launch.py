"""Starts the brain and the hand: oxygen_node and action_player, which configure and activate by themselves.

ros2 launch oxygen_ros oxygen.launch.py preset:=libero device:=rtx4090 checkpoint:=/models/pi05_libero
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable
from launch.substitutions import EnvironmentVariable, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import LifecycleNode
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from oxygen_ros.tools.launch_arguments import ARGUMENTS, parameters_from

PROFILE = "FASTRTPS_DEFAULT_PROFILES_FILE"


def start_nodes(context: LaunchContext) -> list[LifecycleNode]:
    """Return both nodes with the parameters that the arguments stand for."""
    values = {argument.name: LaunchConfiguration(argument.name).perform(context) for argument in ARGUMENTS}
    parameters = {
        name: value if isinstance(value, bool) else ParameterValue(value, value_type=str)
        for name, value in parameters_from(values).items()
    }
    return [
        LifecycleNode(
            package="oxygen_ros",
            executable=name,
            name=name,
            namespace=values["namespace"],
            output="screen",
            emulate_tty=True,
            parameters=[parameters],
        )
        for name in ("oxygen_node", "action_player")
    ]


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments, choose the shared-memory transport unless one is set, start the nodes."""
    profile = PathJoinSubstitution([FindPackageShare("oxygen_ros"), "config", "fastdds_shm.xml"])
    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(a.name, default_value=a.default, description=a.help, choices=a.choices)
                for a in ARGUMENTS
            ),
            SetEnvironmentVariable(PROFILE, EnvironmentVariable(PROFILE, default_value=profile)),
            OpaqueFunction(function=start_nodes),
        ]
    )
