"""What a node's process makes of its command line: sources by name, and params files that rcl cannot read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

PROGRAM = """
import json, sys, rclpy
from rclpy.lifecycle import LifecycleNode
from oxygen_ros.errors import ConfigError
from oxygen_ros.ros.arguments import start_ros
from oxygen_ros.ros.parameters import NodeParameters
arguments = start_ros(sys.argv)
node = LifecycleNode("oxygen_node")
parameters = NodeParameters(node, arguments)
try:
    loaded = parameters.load()
    answer = {"sources": dict(loaded.sources), "rate": loaded.config.cycle.action_rate_hz}
except ConfigError as error:
    answer = {"code": error.code, "text": str(error)}
print("ANSWER" + json.dumps(answer))
node.destroy_node()
rclpy.try_shutdown()
"""


def _run(*arguments: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "--ros-args", *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("ANSWER"))
    return json.loads(line.removeprefix("ANSWER"))


def test_command_line_and_files_are_named_as_sources(tmp_path: Path) -> None:
    first, launch = tmp_path / "first.yaml", tmp_path / "launch_params_x1"
    first.write_text("/**: {ros__parameters: {preset: libero, kv.num_rows: 3, kv.num_prefixes: 3}}\n")
    launch.write_text("/**: {ros__parameters: {kv.num_rows: 4}}\n")
    answer = _run("--params-file", str(first), "--params-file", str(launch), "-p", "cycle.action_rate_hz:=20")
    sources = answer["sources"]
    assert isinstance(sources, dict)
    assert sources["kv.num_prefixes"] == f"params file {first}"
    assert sources["kv.num_rows"] == "launch arguments"
    assert sources["cycle.action_rate_hz"] == "command line"
    assert answer["rate"] == 20.0


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, "missing_file"),
        ("preset: libero\ncycle.action_rate_hz: [\n", "bad_yaml"),
        ("/**: {ros__parameters: {preset: libero, runner.row_buckets: [1, a]}}\n", "wrong_type"),
        ("/**: {ros__parameters: {preset: libero, cycle.action_rate_hz: }}\n", "wrong_type"),
    ],
)
def test_params_file_that_rcl_cannot_read_is_refused_by_us_and_the_process_lives(
    text: str | None, code: str, tmp_path: Path
) -> None:
    path = tmp_path / "p.yaml"
    if text is not None:
        path.write_text(text)
    answer = _run("--params-file", str(path))
    assert answer["code"] == code
    assert str(path) in str(answer["text"])


def test_params_file_in_plain_yaml_is_taken_though_rcl_cannot_read_it(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("preset: libero\ncycle: {action_rate_hz: 21}\n")
    assert _run("--params-file", str(path), "-p", "kv.num_rows:=3")["rate"] == 21.0
