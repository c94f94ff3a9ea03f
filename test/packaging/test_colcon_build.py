"""`colcon build` of a workspace with this package alone, then new shells that source it."""

import os

import pytest
from processes import drive_nodes, exchange, shell

from oxygen_ros import __version__

pytestmark = pytest.mark.packaging
BUILD_LIMIT_S = 1500  # a minute on two idle cores


@pytest.fixture(scope="module")
def workspace(sources, ros_environment, colcon):
    """A built workspace: the shell command that enters it, and its folder."""
    folder = sources.parents[1]
    shell("pip install PyYAML numpy", ros_environment)  # what rosdep installs by the keys of package.xml
    flags = (
        ""
        if os.environ.get("ROS_DISTRO")
        else (
            f"-DPython3_EXECUTABLE=$VIRTUAL_ENV/bin/python"
            f" -DCMAKE_PROJECT_oxygen_ros_INCLUDE={sources}/cmake/wheel_prefix.cmake"
        )
    )
    tools = f"PATH=$PATH:{colcon.parent}"
    command = f"{tools} {colcon} build --cmake-args -G Ninja -DBUILD_TESTING=ON {flags}"
    shell(command, ros_environment, BUILD_LIMIT_S, folder)
    return folder


def entering(workspace):
    return f". {workspace}/install/setup.sh"


def test_colcon_lists_one_cmake_package(workspace, ros_environment, colcon):
    assert shell(f"{colcon} list", ros_environment, folder=workspace).split() == [
        "oxygen_ros",
        "src/oxygen_ros",
        "(ros.ament_cmake)",
    ]


def test_colcon_build_new_shell_imports_messages_and_modules(workspace, ros_environment):
    program = (
        "import oxygen_ros, oxygen_ros.types, oxygen_ros.config; from oxygen_ros.msg import ActionChunk;"
        "print(oxygen_ros.__file__, oxygen_ros.__version__, ActionChunk(horizon=3).horizon)"
    )
    file, version, horizon = shell(f'{entering(workspace)} && python -c "{program}"', ros_environment).split()
    assert file.startswith(str(workspace / "install"))
    assert (version, horizon) == (__version__, "3")


def test_colcon_build_second_process_receives_messages(workspace, ros_environment):
    assert exchange(ros_environment, entering(workspace)).startswith("received chunk")


def test_colcon_build_nodes_run(workspace, ros_environment):
    programs = workspace / "install" / "oxygen_ros" / "lib" / "oxygen_ros"
    assert drive_nodes(ros_environment, programs, entering(workspace)).endswith("both nodes ran\n")


def test_colcon_build_installs_launch_config_and_programs(workspace, sources):
    prefix = workspace / "install" / "oxygen_ros"
    for folder in ("launch", "config"):
        wanted = {path.relative_to(sources) for path in (sources / folder).rglob("*") if path.is_file()}
        share = prefix / "share" / "oxygen_ros"
        assert {path.relative_to(share) for path in (share / folder).rglob("*") if path.is_file()} == wanted
    listed = (sources / "cmake" / "programs.txt").read_text(encoding="utf-8").splitlines()
    names = {line.split()[0] for line in listed if not line.startswith("#")}
    programs = list((prefix / "lib" / "oxygen_ros").iterdir())
    assert {path.name for path in programs} == names
    assert all(os.access(path, os.X_OK) for path in programs)


def test_colcon_test_passes(workspace, ros_environment, colcon):
    shell(f"PATH=$PATH:{colcon.parent} {colcon} test", ros_environment, BUILD_LIMIT_S, workspace)
    assert "0 errors, 0 failures" in shell(f"{colcon} test-result", ros_environment, folder=workspace)
