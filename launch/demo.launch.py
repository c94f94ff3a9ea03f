"""Shows both nodes at work on a simulated robot, with a speaker and a memory, until Ctrl-C.

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
    return LaunchDescription(
        [
            DeclareLaunchArgument("preset", default_value="humanoid", description="Robot preset."),
            SetEnvironmentVariable(PROFILE, EnvironmentVariable(PROFILE, default_value=profile)),
            Node(
                package="oxygen_ros",
                executable="demo",
                arguments=["--forever", "--preset", LaunchConfiguration("preset")],
                output="screen",
                emulate_tty=True,
                on_exit=Shutdown(reason="the demonstration has ended"),
            ),
        ]
    )
