"""The installed programs, started with exactly the arguments that launch gives them."""

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="needs ROS")

from processes import ROOT, drive_nodes, shell

PROGRAMS = Path(sys.prefix) / "lib" / "oxygen_ros"


def here() -> dict[str, str]:
    """Return the variables of a shell in which this environment is active."""
    return {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}


def test_nodes_started_as_by_launch_become_active_and_end_on_interrupt():
    assert drive_nodes(here(), PROGRAMS).endswith("both nodes ran\n")


def test_drive_nodes_program_that_ends_at_once_fails(tmp_path):
    for name in ("oxygen_node", "action_player"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\nexit 3\n")
        program.chmod(0o755)
    command = f"{sys.executable} {ROOT}/test/packaging/drive_nodes.py {tmp_path} --limit 1"
    with pytest.raises(AssertionError, match=r"oxygen_node is silent.*ended with 3"):
        shell(command, here())
