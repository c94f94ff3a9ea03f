"""The core imports on a machine without ROS, and its torch-free levels on one without torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

IMPORT_ALL = """
import importlib, pkgutil, re, sys
import oxygen_ros

blocked, folders = re.compile(sys.argv[1]), sys.argv[2].split(",")

class Absent:
    def find_spec(self, name, path=None, target=None):
        if blocked.fullmatch(name.partition(".")[0]) or name in ("oxygen_ros.msg", "oxygen_ros.srv"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
count = 0
for module in pkgutil.walk_packages(oxygen_ros.__path__[:1], "oxygen_ros."):
    top = module.name.split(".")[1]
    if top in ("ros", "msg", "srv") or (folders != [""] and top not in folders):
        continue
    importlib.import_module(module.name)
    count += 1
print(count)
"""
ROS = r"rclpy|\w+_msgs|\w+_srvs|builtin_interfaces|rosidl_\w+|ament_\w+|launch|launch_ros|cv_bridge|tensorrt"
TORCH_FREE = "types,errors,clock,config,robots,text,engine,runtime"


def import_all(blocked: str, folders: str = "") -> subprocess.CompletedProcess[str]:
    """Import every module of some folders in a new process where some libraries seem not to be installed."""
    command = [sys.executable, "-c", IMPORT_ALL, blocked, folders]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd="/", env=env, capture_output=True, text=True, timeout=120, check=False)


def test_core_without_ros_imports_every_module():
    pytest.importorskip("torch", reason="torch is not installed in this environment")
    assert_imports(ROS)


def test_torch_free_levels_without_ros_and_torch_import_every_module():
    assert_imports(ROS + "|torch", TORCH_FREE)


def assert_imports(blocked: str, folders: str = "") -> None:
    """Every module imports, and there are many."""
    done = import_all(blocked, folders)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 30


def test_import_all_blocked_library_fails():
    done = import_all("numpy")
    assert "No module named 'numpy'" in done.stderr
