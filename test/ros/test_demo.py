"""The demonstration as a user starts it: what it prints, and what its exit code stands for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "FASTRTPS_DEFAULT_PROFILES_FILE"}
DEMO = [sys.executable, "-m", "oxygen_ros.ros.demo", "--plain"]


def _start(*flags: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*DEMO, *flags], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_demo_shows_actions_text_and_slack_then_a_table_and_code_0():
    demo = _start("--forever")
    lines: list[str] = []
    assert demo.stdout is not None
    wanted = {"acted": 10, "speech:": 2, "memory:": 2}
    for line in demo.stdout:
        lines.append(line)
        if all(sum(word in line for line in lines) >= count for word, count in wanted.items()):
            demo.send_signal(signal.SIGINT)
            break
    rest, _ = demo.communicate(timeout=60)
    output = "".join(lines) + rest
    assert demo.returncode == 0, output
    assert output.count("stand-in") >= 2, "it says so at its begin and at its end"
    cycles = [line for line in lines if line.startswith("cycle ") and "acted" in line]
    assert all("chunk" in line and "slack" in line and "text" in line for line in cycles)
    assert any("+'" in line or '+"' in line for line in cycles), "text grows"
    for word in ("actions", "sentence", "stream", "report", "diagnostics", "Everything arrived"):
        assert word in rest
    assert "\x1b[" not in output
    assert "Traceback" not in output


def test_demo_that_saw_nothing_says_what_is_missing_and_fails():
    demo = _start("--seconds", "0")
    output, _ = demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert "Nothing arrived of: actions" in output
    assert "Traceback" not in output


def test_demo_of_an_unknown_preset_names_it():
    demo = _start("--preset", "librao")
    output, _ = demo.communicate(timeout=60)
    assert demo.returncode == 2
    assert "librao" in output
    assert "libero" in output
    assert "Traceback" not in output
