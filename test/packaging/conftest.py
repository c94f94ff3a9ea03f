"""Fresh environments for the tests that build the package as a user would."""

import importlib.util
import shutil
import subprocess
import venv

import pytest
from processes import ROOT, clean_environment

WORK = ROOT / "build" / "packaging"
IGNORED = shutil.ignore_patterns(
    ".git", ".venv*", "build", "install", "log", "runs", "dist", "*.egg-info", "__pycache__", ".*_cache"
)


def setup_program():
    """Return scripts/setup_environment.py as a module."""
    spec = importlib.util.spec_from_file_location(
        "setup_environment", ROOT / "scripts" / "setup_environment.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def sources():
    """A copy of the checkout, as if cloned: no environment, no build, no caches."""
    copy = WORK / "workspace" / "src" / "oxygen_ros"
    shutil.rmtree(WORK / "workspace", ignore_errors=True)
    shutil.copytree(ROOT, copy, ignore=IGNORED)
    return copy


@pytest.fixture(scope="session")
def ros_environment():
    """Variables of a shell in which a new environment is active: it has ROS and nothing of ours."""
    program = setup_program()
    setup = program.Setup(WORK / "environment", program.has_sourced_ros())
    setup.make_environment()
    limits = ROOT / "requirements" / "constraints.txt"
    if setup.system_ros:
        limits = setup.keep_system_modules(limits)
    else:
        setup.install("ros.txt")
    return clean_environment(setup.prefix) | {"PIP_CONSTRAINT": str(limits)}


@pytest.fixture(scope="session")
def colcon():
    """Path of colcon, in an environment of its own with CMake and Ninja."""
    prefix = WORK / "colcon"
    shutil.rmtree(prefix, ignore_errors=True)
    venv.create(prefix, with_pip=True, symlinks=True)
    pip = [
        str(prefix / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "-q",
        "-r",
        str(ROOT / "requirements" / "colcon.txt"),
    ]
    subprocess.run(pip, check=True, stdout=subprocess.DEVNULL, env=clean_environment(prefix))
    return prefix / "bin" / "colcon"
