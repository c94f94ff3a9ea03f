"""Realtime replays: the machine's times where they belong, and what does not depend on them the same twice.

Size: one tiny checkpoint and its bag serve all tests; each replay lasts as long as the bag.
"""

from __future__ import annotations

import json
import platform
import re
import statistics

import pytest
from bag_factory import digests, make_bag, replay

from oxygen_ros.config import load_config
from oxygen_ros.replay.bag.bag import Bag
from oxygen_ros.replay.job import Job
from oxygen_ros.replay.simulated_bag import BagPlan, write_simulated_bag
from oxygen_ros.replay.unit import replay_bag

MEASURED = {"measures", "error_by_step", "reasons", "texts", "fingerprints", "log", "log_lines"}
"""What follows from how fast the machine is: the measure itself, and what was done with the time."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A bag of the libero robot, and replays of it with a tiny checkpoint."""
    pytest.importorskip("torch", reason="torch is not installed in this environment")
    from oxygen_ros.tools.make_tiny_checkpoint import write_checkpoint

    folder = tmp_path_factory.mktemp("tiny")
    write_checkpoint(folder / "checkpoint", "libero")
    robot = load_config(preset="libero", device="cpu", overrides={"runner.kind": "fake"}).config
    write_simulated_bag(folder / "bag", robot, BagPlan(seconds=2.0))
    patient = [(f"robot.cameras.{role}.max_age_s", 60.0) for role in robot.robot.camera_roles]
    patient += [(f"robot.joint_topics.{name}.max_age_s", 60.0) for name in robot.robot.joint_topic_names]

    def run(name, **changes):
        values = {
            "preset": "libero",
            "device": "cpu",
            "checkpoint": str(folder / "checkpoint"),
            "settings": (("robot.sync.max_reuse", 1000), *patient),
            "pictures": False,
        }
        report = replay_bag(Job(bag=str(folder / "bag"), out=str(folder / name), **(values | changes)))
        assert report.get("error") is None
        return folder / name, report

    return run


def test_checkpoint_in_realtime_gives_a_report_and_keeps_the_machines_facts_apart(tiny):
    runs = [tiny(name, clock="realtime") for name in ("one", "two")]
    (folder, one), (_, two) = runs
    assert one["setup"]["stand_in"] is False
    assert one["measures"]["cycles"]["acted"] >= 1
    assert one["measures"]["latency_ms"]["p50"] > 0
    machine = json.loads((folder / "machine.json").read_text())
    assert 0 < machine["times_real_time"] <= 1, "not faster than the bag"
    assert machine["pictures"] == "not asked for"
    assert "prefill" in machine["warm_up"]
    assert json.loads((folder / "costs.json").read_text())["prefill_ms"] > 0
    changed = {key for key in one if one[key] != two[key]}
    assert changed <= MEASURED
    told = "".join((folder / name).read_text() for name in ("report.json", "report.md", "cycles.csv"))
    words = [platform.node(), platform.machine(), platform.python_version(), "load_s", "run_s", "warm_up"]
    words += ["peak_memory_mb", "times_real_time"]
    assert {word for word in words if word in machine}, "they are in that file"
    assert [word for word in words if re.search(rf"\b{re.escape(word)}\b", told)] == []


def test_checkpoint_in_simulated_time_gives_the_same_bytes_twice(tiny):
    costs = (("runner.fake.prefill_ms", 60.0), ("runner.fake.act_ms", 40.0))
    runs = [tiny(name, settings=costs) for name in ("three", "four")]
    assert runs[0][1]["measures"]["latency_ms"]["p50"] == 100.0
    assert digests(runs[0][0]) == digests(runs[1][0])
    assert json.loads((runs[0][0] / "machine.json").read_text())["warm_up"] == "costs are set"


def test_costs_of_several_experts_are_those_of_one_chunk(tmp_path):
    """``costs.json`` gave the sum of all experts as the cost of each."""
    two = (
        ("model.experts", ["left", "right"]),
        ("robot.cameras.front.max_age_s", 60.0),
        ("robot.joint_topics.joints.max_age_s", 60.0),
    )
    replay(make_bag(tmp_path, seconds=1.0), tmp_path / "out", clock="realtime", settings=two)
    with Bag(tmp_path / "out" / "run.mcap") as made:
        kind = "oxygen_ros/msg/CycleReport"
        reports = [made.types.read(kind, r.data) for r in made.records(("/oxygen_node/cycle_report",))]
    together = statistics.median(report.act_ms for report in reports if report.prefill_ms)
    costs = json.loads((tmp_path / "out" / "costs.json").read_text())
    assert costs["act_ms"] == pytest.approx(together / 2)
