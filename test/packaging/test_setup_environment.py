"""The set-up program and the shell scripts around it: nothing twice, one line for what is missing."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ("test", "demo", "check")


@pytest.fixture
def program():
    spec = importlib.util.spec_from_file_location(
        "setup_environment", ROOT / "scripts" / "setup_environment.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def setup(program, tmp_path):
    """A set-up whose environment looks usable."""
    setup = program.Setup(tmp_path / "venv", system_ros=False)
    setup.python.parent.mkdir(parents=True)
    setup.python.touch()
    return setup


def test_step_same_key_done_once(setup):
    done = []
    for key in ("1", "1", "2", "2"):
        setup.step("tools", "tools", key, lambda key=key: done.append(key))
    assert done == ["1", "2"]


def test_step_that_fails_is_done_again(setup, program):
    def fail():
        raise program.MissingError("no network")

    with pytest.raises(program.MissingError):
        setup.step("tools", "tools", "1", fail)
    assert setup.keys() == {}


def test_keys_other_place_or_python_forgotten(setup, program):
    setup.step("tools", "tools", "1", lambda: None)
    assert setup.keys()["tools"] == "1"
    stamp = json.loads(setup.stamp.read_text())
    setup.stamp.write_text(json.dumps(stamp | {"base": stamp["base"].replace(str(ROOT), "/elsewhere")}))
    assert setup.keys() == {}


def test_keys_unreadable_stamp_forgotten(setup):
    setup.stamp.write_text("{")
    assert setup.keys() == {}


def test_hash_changes_with_content_and_name(program, tmp_path, monkeypatch):
    monkeypatch.setattr(program, "ROOT", tmp_path)
    folder = tmp_path / "msg"
    folder.mkdir()
    hashes = []
    for name, text in (("A.msg", "int8 a"), ("A.msg", "int8 b"), ("B.msg", "int8 b")):
        (folder / name).write_text(text)
        hashes.append(program.hash_files(folder))
    assert len(set(hashes)) == 3
    assert program.hash_files(folder) == hashes[-1]


def test_machine_without_compiler_named(program, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(program.MissingError, match="a C and C\\+\\+ compiler is missing"):
        program.check_machine(needs_messages=True, needs_wheels=True)


def test_machine_of_another_kind_named(program, monkeypatch):
    monkeypatch.setattr(program.platform, "machine", lambda: "aarch64")
    with pytest.raises(program.MissingError, match="no ROS wheels for linux aarch64"):
        program.check_machine(needs_messages=True, needs_wheels=True)


def test_machine_without_headers_named(program, monkeypatch, tmp_path):
    monkeypatch.setattr(program.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(program.MissingError, match=r"headers are missing: apt install python3\.\d+-dev"):
        program.check_machine(needs_messages=True, needs_wheels=False)


def test_machine_core_needs_no_compiler(program, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    program.check_machine(needs_messages=False, needs_wheels=False)


def test_sourced_ros_without_rclpy_named(program, monkeypatch):
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    monkeypatch.setenv("AMENT_PREFIX_PATH", "/opt/ros/jazzy")
    monkeypatch.setattr(program.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(program.MissingError, match=r"ROS 2 jazzy is sourced, but .* cannot import rclpy"):
        program.has_sourced_ros()


def test_sourced_ros_keeps_its_own_modules(program, tmp_path):
    setup = program.Setup(tmp_path, system_ros=True)
    kept = setup.keep_system_modules(ROOT / "requirements" / "core.txt").read_text()
    assert "tokenizers==" in kept
    assert "numpy==" not in kept


def test_folder_in_the_way_kept(program, tmp_path):
    (tmp_path / "work.txt").touch()
    with pytest.raises(program.MissingError, match="is in the way"):
        program.Setup(tmp_path, system_ros=False).make_environment()
    assert (tmp_path / "work.txt").exists()


def run_script(name: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", str(ROOT / "scripts" / name), *arguments]
    return subprocess.run(
        command, env=os.environ | env, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_help_explains_itself(name):
    done = run_script(name, "--help")
    assert done.returncode == 0
    assert f"usage: scripts/{name}" in done.stdout


def test_demo_help_names_every_flag():
    source = (ROOT / "oxygen_ros" / "ros" / "demo.py").read_text(encoding="utf-8")
    flags = re.findall(r"add_argument\(\"(--\w+)\"", source)
    assert flags
    assert [flag for flag in flags if flag not in run_script("demo", "--help").stdout] == []


def test_script_unknown_argument_refused():
    done = run_script("test", "--quick")
    assert (done.returncode, "unknown argument --quick" in done.stderr) == (2, True)


def test_script_without_python_says_so(tmp_path):
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = run_script("demo", PYTHON=str(old))
    assert done.returncode == 1
    assert done.stderr == (
        f"Python 3.11 or 3.12 is missing (tried: {old}): install one, or set PYTHON=/path/to/python\n"
    )


def test_ci_runs_the_test_command_and_nothing_else():
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert [line for line in lines if line and line[0] != "#"] == [
        'exec "$(dirname -- "$0")/../scripts/test" "$@"'
    ]
    assert all(
        os.access(ROOT / path, os.X_OK)
        for path in (".ci/run", "scripts/test", "scripts/demo", "scripts/check")
    )


def test_module_needs_only_the_standard_library():
    source = ROOT / "scripts" / "setup_environment.py"
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(source), "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
