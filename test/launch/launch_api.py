"""What our launch files use of launch 3.4 and launch_ros 0.26: names by module, keywords by class.

Stands in for the libraries where they are not installed: a launch file may use nothing but this.
"""

NAMES = {
    "launch": {"LaunchContext", "LaunchDescription"},
    "launch.actions": {
        "DeclareLaunchArgument",
        "ExecuteProcess",
        "IncludeLaunchDescription",
        "OpaqueFunction",
        "SetEnvironmentVariable",
        "Shutdown",
    },
    "launch.launch_description_sources": {"PythonLaunchDescriptionSource"},
    "launch.substitutions": {"EnvironmentVariable", "LaunchConfiguration", "PathJoinSubstitution"},
    "launch_ros.actions": {"LifecycleNode", "Node"},
    "launch_ros.parameter_descriptions": {"ParameterValue"},
    "launch_ros.substitutions": {"FindPackageShare"},
}

_PROCESS = {"output", "emulate_tty", "on_exit", "condition", "additional_env", "name", "sigterm_timeout"}
_NODE = _PROCESS | {"package", "executable", "namespace", "parameters", "remappings", "arguments"}

KEYWORDS = {
    "DeclareLaunchArgument": {"default_value", "description", "choices"},
    "EnvironmentVariable": {"default_value"},
    "ExecuteProcess": _PROCESS | {"cmd"},
    "FindPackageShare": set(),
    "IncludeLaunchDescription": {"launch_arguments"},
    "LaunchConfiguration": {"default"},
    "LaunchDescription": set(),
    "LifecycleNode": _NODE,
    "Node": _NODE,
    "OpaqueFunction": {"function", "args", "kwargs"},
    "ParameterValue": {"value_type"},
    "PathJoinSubstitution": set(),
    "PythonLaunchDescriptionSource": set(),
    "SetEnvironmentVariable": {"condition"},
    "Shutdown": {"reason"},
}
REQUIRED = {
    "LifecycleNode": {"package", "executable", "name", "namespace"},
    "Node": {"package", "executable"},
}
