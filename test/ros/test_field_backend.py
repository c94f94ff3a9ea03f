"""Field case of a compiler that does not know the device (B49), on the node's own way of being configured."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
pytest.importorskip("torch", reason="torch is not installed")

import torch
from rclpy.parameter import Parameter
from ros_bench import SMALL, bench

from oxygen_ros.tools.make_tiny_checkpoint import write_checkpoint

CAUSE = "ptxas fatal : Value 'sm_110a' is not defined for option 'gpu-name'"


def test_b49_failed_compile_fails_configure_unless_eager_is_allowed_and_then_shows_it(
    tmp_path, monkeypatch, capfd
):
    def first_call(*args):
        raise RuntimeError(f"PTXAS error: Internal Triton PTX codegen error\n`ptxas` stderr:\n{CAUSE}\n")

    monkeypatch.setattr(torch, "compile", lambda *args, **kwargs: first_call)
    write_checkpoint(tmp_path / "checkpoint", "libero", 0)
    parameters = {
        "preset": "libero",
        "model.checkpoint": str(tmp_path / "checkpoint"),
        "runner.kind": "compiled",
        "runner.warm_up_runs": 1,
        "runner.row_buckets": [1],
        "kv.num_rows": 1,
        "instruction": "open the drawer",
    }
    with bench(**dict.fromkeys(SMALL)) as b:
        b.feed = None
        node = b.brain(**parameters)
        health = b.until(lambda: (h := b.health("state")) and h.level == b"\x02" and h, "a refusal")
        for word in ("compile_failed", CAUSE, "runner.allow_eager", "runner.kind: eager"):
            assert word in health.message
        assert node.state == "unconfigured"
        assert len([line for line in capfd.readouterr().err.splitlines() if "[ERROR]" in line]) == 1
        assert node.set_parameters([Parameter("runner.allow_eager", value=True)])[0].successful
        b.executor.create_task(node.bring_up)
        b.until_state(node, "active")
        health = b.until(lambda: b.health("model"), "diagnostics of the model")
        values = {pair.key: pair.value for pair in health.values}
        assert health.level == b"\x01"
        assert health.message == f"eager, since compiling failed: RuntimeError: {CAUSE}"
        assert values["backend"].startswith("eager (")
        assert CAUSE in values["backend"]
        errors = [line for line in capfd.readouterr().err.splitlines() if "[ERROR]" in line]
        assert len(errors) == 1
        assert f"eager, since compiling failed: RuntimeError: {CAUSE}" in errors[0]
