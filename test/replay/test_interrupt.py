"""Ctrl-C: the signal itself, to the program in the middle of its bags."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import yaml
from bag_factory import ROBOT, cut, make_bag

from oxygen_ros.replay.bag.bag import Bag

LIMIT_S = 300
LONG_S = 20.0
"""Length of a bag in real time: nobody waits for its end."""


@contextmanager
def replaying(bags, folder, *arguments):
    """The program in a process group of its own, as a terminal has it. Ended with the test."""
    params = folder / "robot.yaml"
    params.write_text(yaml.safe_dump({"oxygen_node": {"ros__parameters": ROBOT}}))
    command = [sys.executable, "-m", "oxygen_ros.tools.replay", *map(str, bags), "--clock", "realtime"]
    command += ["--params-file", str(params), "--out", str(folder / "out"), "--no-pictures", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=LIMIT_S)


def interrupt_after(process, words):
    """Press Ctrl-C when ``words`` have been printed on stderr; all of stderr."""
    lines = []
    for line in process.stderr:
        lines.append(line)
        if words in line:
            break
    assert process.poll() is None, "".join(lines)
    os.killpg(process.pid, signal.SIGINT)
    _, rest = process.communicate(timeout=LIMIT_S)
    return "".join(lines) + rest


def check_partial(folder):
    """A whole report of a part of the bag."""
    report = json.loads((folder / "report.json").read_text())
    assert report["complete"] is False
    assert report["verdict"]["exit_code"] == 3
    assert "interrupted: the report covers the part up to then" in report["verdict"]["warnings"]
    assert report["measures"]["cycles"]["all"] < LONG_S / 0.2
    with Bag(folder / "run.mcap") as made:
        assert made.faults == []
    assert not list(folder.glob("run.partial*"))
    assert "interrupted" in (folder / "report.md").read_text()
    return report


def test_sigint_in_the_middle_of_a_bag_leaves_a_whole_report_of_its_part(tmp_path):
    with replaying([make_bag(tmp_path, seconds=LONG_S, camera_hz=5.0, joint_hz=10.0)], tmp_path) as process:
        said = interrupt_after(process, " left")
    assert process.returncode == 3, said
    assert "Traceback" not in said
    assert check_partial(tmp_path / "out")["measures"]["cycles"]["acted"] > 0


def test_sigint_to_several_workers_leaves_whole_reports_and_no_traceback(tmp_path):
    bags = [cut(make_bag(tmp_path, "a_cut", seconds=1.0), 0.6)]
    bags += [
        make_bag(tmp_path, name, seconds=LONG_S, camera_hz=5.0, joint_hz=10.0) for name in ("b", "c", "d")
    ]
    with replaying(bags, tmp_path, "--workers", "2") as process:
        said = interrupt_after(process, "a_cut: warning")
    assert process.returncode == 3, said
    assert "Traceback" not in said
    assert "KeyboardInterrupt" not in said
    out = tmp_path / "out"
    (rows,) = json.loads((out / "summary.json").read_text()).values()
    names = [row["bag"] for row in rows]
    assert names[0] == "a_cut"
    assert "d" not in names, "both workers were busy"
    for name in names[1:]:
        check_partial(out / name)
    assert {path.parent.name for path in out.glob("*/report.json")} == set(names)
