"""Plays a bag as the robot: the bag gives sensors and time, the nodes run dry, what they send is recorded.

ros2 launch oxygen_ros replay.launch.py bag:=/bags/kitchen output:=/bags/kitchen_replayed preset:=libero
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, IncludeLaunchDescription, Shutdown
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare

OURS = "(.*/)?(oxygen_node|action_player)/.*"
# What the nodes gave when the bag was recorded; instructions and questions to them are played.
GIVEN = "(.*/)?(oxygen_node/(action_chunk|joint_trajectory|text.*|cycle_report|recording)|action_player/.*)"
PLAY = ("ros2", "bag", "play", "--clock", "100", "--delay", "5", "--exclude-regex", GIVEN)
RECORD = ("ros2", "bag", "record", "--use-sim-time", "--regex", OURS, "--output")


def generate_launch_description() -> LaunchDescription:
    """Start the nodes on simulated time, the recorder, then the player; end when the bag has ended."""
    nodes = PathJoinSubstitution([FindPackageShare("oxygen_ros"), "launch", "oxygen.launch.py"])
    return LaunchDescription(
        [
            DeclareLaunchArgument("bag", description="Folder of the bag to play."),
            DeclareLaunchArgument("output", description="Folder of the bag to write; must not exist."),
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(nodes),
                launch_arguments={"use_sim_time": "true", "enable_control": "false"}.items(),
            ),
            ExecuteProcess(cmd=[*RECORD, LaunchConfiguration("output")], output="screen"),
            ExecuteProcess(
                cmd=[*PLAY, LaunchConfiguration("bag")],
                output="screen",
                on_exit=Shutdown(reason="the bag has ended"),
            ),
        ]
    )
