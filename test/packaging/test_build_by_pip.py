"""`pip install .` into a new environment that holds the ROS wheels, then programs run from elsewhere."""

import sys
from pathlib import Path

import pytest
from processes import clean_environment, drive_nodes, exchange, shell

from oxygen_ros import __version__

pytestmark = pytest.mark.packaging
BUILD_LIMIT_S = 1500  # a minute on two idle cores


@pytest.fixture(scope="module")
def installed(sources, ros_environment):
    """The prefix of an environment into which the package was installed, and the sources left behind."""
    shell(f"pip install {sources}", ros_environment, BUILD_LIMIT_S)
    return Path(ros_environment["VIRTUAL_ENV"])


def test_pip_install_imports_messages_and_modules(installed, ros_environment):
    program = (
        "import oxygen_ros, oxygen_ros.types, oxygen_ros.config; from oxygen_ros.srv import CancelText;"
        "print(oxygen_ros.__file__, oxygen_ros.__version__, CancelText.Request(task='x').task)"
    )
    file, version, task = shell(f'python -c "{program}"', ros_environment).split()
    assert file.startswith(str(installed))
    assert (version, task) == (__version__, "x")


def test_pip_install_second_process_receives_messages(installed, ros_environment):
    assert exchange(ros_environment).startswith("received chunk")


def test_pip_install_nodes_run(installed, ros_environment):
    assert drive_nodes(ros_environment, installed / "lib" / "oxygen_ros").endswith("both nodes ran\n")


def test_pip_install_needs_nothing_else(installed, ros_environment):
    assert "No broken requirements" in shell("pip check", ros_environment)


def test_pip_install_has_launch_config_programs_and_index_entry(installed):
    for name in (
        "share/oxygen_ros/launch/oxygen.launch.py",
        "share/oxygen_ros/config/fastdds_shm.xml",
        "share/oxygen_ros/config/oxygen.yaml",
        "share/oxygen_ros/package.xml",
        "share/ament_index/resource_index/packages/oxygen_ros",
        "lib/oxygen_ros/oxygen_node",
        "bin/oxygen_node",
        "bin/action_player",
        "lib/oxygen_ros/doctor",
        "bin/oxygen-doctor",
    ):
        assert (installed / name).is_file(), name


def test_pip_uninstall_leaves_nothing(installed, ros_environment):
    shell("pip uninstall -y oxygen_ros", ros_environment)
    left = [path for path in installed.rglob("*oxygen_ros*") if path.is_file()]
    assert left == []


def core_install(colcon, folder, flag):
    """Return the command that installs into a folder, from an environment that has no ROS."""
    return f"{flag} {colcon.parent}/python -m pip install --no-deps --no-build-isolation --target {folder}"


def test_pip_install_without_ros_says_what_is_missing(sources, colcon, tmp_path):
    env = {
        key: value
        for key, value in clean_environment(colcon.parents[1]).items()
        if not key.endswith("PREFIX_PATH")
    }
    with pytest.raises(AssertionError, match="ROS 2 is missing: source an installation, or"):
        shell(f"{core_install(colcon, tmp_path, '')} {sources}", env)


def test_pip_install_core_only_needs_no_ros(sources, colcon, tmp_path):
    env = {
        key: value
        for key, value in clean_environment(colcon.parents[1]).items()
        if not key.endswith("PREFIX_PATH")
    }
    shell(f"{core_install(colcon, tmp_path, 'OXYGEN_ROS_NO_MESSAGES=1')} {sources}", env)
    file = shell(
        f"PYTHONPATH={tmp_path} {sys.executable} -c 'import oxygen_ros.errors as e; print(e.__file__)'", env
    )
    assert file.startswith(str(tmp_path))
