"""The size report: what it measures, refuses, and lets pass with a reason."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LONG_FILE = "x = 1\n" * 300
LONG_FUNCTION = "def f():\n" + "    x = 1\n" * 50
REASON = '"""Text.\n\nSize: one table, easier to read whole.\n"""\n'


def report(root: Path, name: str, source: str) -> subprocess.CompletedProcess[str]:
    """Run the report over a folder with one file."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    command = [sys.executable, str(ROOT / "scripts" / "size_report.py"), "--root", str(root)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["oxygen_ros/a.py", "test/b.py", "setup.py"])
@pytest.mark.parametrize("source", ["x = 1\n" + LONG_FILE, LONG_FUNCTION, '"""Size:"""\n' + LONG_FUNCTION])
def test_report_too_long_without_reason_refused(tmp_path, name, source):
    done = report(tmp_path, name, source)
    assert done.returncode == 1
    assert name in done.stdout


@pytest.mark.parametrize("source", [LONG_FILE, LONG_FUNCTION.removesuffix("    x = 1\n")])
def test_report_at_the_limit_passes(tmp_path, source):
    assert report(tmp_path, "oxygen_ros/a.py", source).returncode == 0


def test_report_too_long_with_reason_passes(tmp_path):
    done = report(tmp_path, "oxygen_ros/a.py", REASON + LONG_FILE + LONG_FUNCTION)
    assert done.returncode == 0
    assert "too long: 0" in done.stdout


def test_report_script_without_suffix_measured(tmp_path):
    assert report(tmp_path, "scripts/tool", "#!/usr/bin/env python3\n" + LONG_FILE).returncode == 1
    assert report(tmp_path, "scripts/tool", "#!/bin/sh\n" + "true\n" * 400).returncode == 0
