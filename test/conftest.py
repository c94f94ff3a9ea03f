"""What all tests share: helper modules beside the tests, and runs without ROS or without torch."""

import importlib.abc
import importlib.util
import os
import re
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROS_TESTS = (TESTS / "ros", TESTS / "launch", TESTS / "packaging" / "test_messages.py")
ROS_MODULES = re.compile(
    r"rclpy|\w+_msgs|\w+_srvs|builtin_interfaces|cv_bridge|launch|launch_ros|ament_index_python|rosidl_\w+"
)

# ROS tests of one process meet each other and nobody else: not even those of another worker of the same run.
os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
os.environ.setdefault("ROS_DOMAIN_ID", str(10 + os.getpid() % 80))
if worker := os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw"):
    os.environ["ROS_DOMAIN_ID"] = str((int(os.environ["ROS_DOMAIN_ID"]) + 1 + int(worker)) % 102)

# Helper modules are imported by their own name from the tests beside them. Last on the path: they hide none.
sys.path.extend(str(folder) for folder in (*sorted(TESTS.iterdir()), TESTS) if folder.is_dir())


class BlockRos(importlib.abc.MetaPathFinder):
    """Makes every ROS module look as if it were not installed."""

    def find_spec(self, fullname, path=None, target=None):
        """Refuse ROS modules and our generated messages."""
        top, _, rest = fullname.partition(".")
        if ROS_MODULES.fullmatch(top) or (top == "oxygen_ros" and rest.partition(".")[0] in ("msg", "srv")):
            raise ModuleNotFoundError(f"No module named {fullname!r} (blocked by --no-ros)", name=fullname)
        return None


def pytest_addoption(parser):
    parser.addoption(
        "--no-ros",
        action="store_true",
        help="run as on a machine without ROS: block its modules, leave out its tests",
    )


def pytest_configure(config):
    if config.getoption("--no-ros"):
        sys.meta_path.insert(0, BlockRos())


def pytest_ignore_collect(collection_path, config):
    return True if config.getoption("--no-ros") and collection_path in ROS_TESTS else None


def is_missing_torch(excinfo):
    """Tell whether a test or a test module failed because torch is not installed here."""
    error = getattr(excinfo, "value", None)
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            return importlib.util.find_spec("torch") is None
        error = error.__cause__ or error.__context__
    return False


def skip_report(report, path):
    """Turn a report into a skip that says why."""
    report.outcome = "skipped"
    report.longrepr = (str(path), None, "Skipped: torch is not installed in this environment")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Skip test modules that need torch where there is none."""
    report = yield
    if report.failed and is_missing_torch(getattr(report, "call", None) and report.call.excinfo):
        skip_report(report, collector.path)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Skip tests that import torch while they run, where there is none."""
    report = yield
    if report.failed and is_missing_torch(call.excinfo):
        skip_report(report, item.path)
    return report
