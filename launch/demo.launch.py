"""Shows the nodes at work on the simulated tabletop, or on the stand-in of any robot, until Ctrl-C.

ros2 launch oxygen_ros demo.launch.py task:="put the red cube in the bowl"
ros2 launch oxygen_ros demo.launch.py preset:=aloha
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, SetEnvironmentVariable, Shutdown
from launch.substitutions import EnvironmentVariable, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

PROFILE = "FASTRTPS_DEFAULT_PROFILES_FILE"


def generate_launch_description() -> LaunchDescription:
    """Choose the shared-memory transport unless one is set, start the demonstration; it starts the nodes."""
    profile = PathJoinSubstitution([FindPackageShare("oxygen_ros"), "config", "fastdds_shm.xml"])
    task, preset = LaunchConfiguration("task"), LaunchConfiguration("preset")
    return LaunchDescription(
        [
            DeclareLaunchArgument("task", default_value="", description="One task. Empty: all six in turn."),
            DeclareLaunchArgument(
                "preset", default_value="", description="Robot of the stand-in. Empty: the tabletop."
            ),
            SetEnvironmentVariable(PROFILE, EnvironmentVariable(PROFILE, default_value=profile)),
            Node(
                package="oxygen_ros",
                executable="demo",
                arguments=["--forever", "--plain", "--task", task, "--preset", preset],
                output="screen",
                emulate_tty=True,
                on_exit=Shutdown(reason="the demonstration has ended"),
            ),
        ]
    )
