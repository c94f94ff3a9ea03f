"""Every robot preset on real topics with a tiny checkpoint: pictures and joints in, chunks and text out."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
pytest.importorskip("torch", reason="torch is not installed")

from node_process import NodeProcess
from ros_bench import bench

from oxygen_ros.config import load_config
from oxygen_ros.ros.simulated_robot import SimulatedRobot
from oxygen_ros.tools import make_lerobot_checkpoint, make_tiny_checkpoint

CASES = [
    ("libero", "lerobot"),
    ("droid", "lerobot"),
    ("aloha", "lerobot"),
    ("humanoid", "lerobot"),
    ("aloha", "openpi"),
]
WITHIN_S = 300.0
WRITERS = {"lerobot": make_lerobot_checkpoint.main, "openpi": make_tiny_checkpoint.main}


def parameters(preset, checkpoint, robot):
    """Parameters of a node on a slow, busy machine."""
    return {
        "preset": preset,
        "model.checkpoint": str(checkpoint),
        "runner.warm_up_runs": 1,
        "runner.row_buckets": [1, 4],
        "kv.num_rows": 4,
        "instruction": "open_the drawer",
        "robot.sync.max_skew_s": 5.0,
        "robot.sync.max_reuse": 100_000,
        **{f"robot.cameras.{role}.max_age_s": 10.0 for role in robot.camera_roles},
        **{f"robot.joint_topics.{name}.max_age_s": 10.0 for name in robot.joint_topic_names},
        "cycle.action_rate_hz": 1.0,
        "cycle.execute_horizon": 4,
        "text.tasks.subtask.every_cycles": 2,
        "text.tasks.memory.max_tokens": 8,
        "text.tasks.subtask.max_tokens": 8,
    }


@pytest.mark.parametrize(("preset", "layout"), CASES)
def test_preset_acts_and_writes_with_a_tiny_checkpoint(tmp_path, preset, layout):
    config = load_config(preset=preset).config
    robot = config.robot
    folder = tmp_path / "checkpoint"
    assert WRITERS[layout]([str(folder), "--preset", preset]) == 0
    with contextlib.ExitStack() as stack:
        b = stack.enter_context(bench())
        b.feed = None
        simulated = SimulatedRobot(
            config, camera_hz=5.0, joint_hz=20.0, context=b.context, namespace=b.namespace
        )
        b.executor.add_node(simulated)
        stack.callback(simulated.destroy_node)
        node = NodeProcess("oxygen_node", b.namespace, parameters(preset, folder, robot))
        stack.callback(node.close)
        stack.callback(lambda: print(node.output))  # pytest shows it when the test fails
        chunks = b.until(lambda: [c for c in b.got("action_chunk") if c.horizon], limit_s=WITHIN_S)
        ended = b.until(
            lambda: [d for d in b.got("text_stream") if d.is_final and d.num_tokens], limit_s=WITHIN_S
        )
        assert chunks[0].joint_names == list(robot.command_joint_names)
        assert chunks[0].horizon == config.model.horizon
        assert np.isfinite(chunks[0].actions).all()
        assert len(chunks[0].actions) == config.model.horizon * robot.action_dim
        assert chunks[0].instruction == "open_the drawer"
        assert all(delta.observation_id > 0 and delta.finish_reason for delta in ended)
        code, _ = node.end()
        assert code == 0, node.output
        assert "Traceback" not in node.output
        assert f"dialect {'openpi' if layout == 'openpi' else 'lerobot_0_5_plus'}" in node.output
