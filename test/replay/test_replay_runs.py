"""Whole replays: the same twice, the right inputs, the right figures.

Size: all tests look at the same few replays, which are made once.
"""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from bag_factory import (
    COMMAND,
    INSTRUCTION,
    JOINTS,
    MS,
    START_NS,
    Sheet,
    cycles_of,
    digests,
    job,
    make_bag,
    replay,
)

from oxygen_ros.replay.bag.bag import Bag
from oxygen_ros.replay.unit import Progress, replay_bag


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    return make_bag(tmp_path_factory.mktemp("bag"), seconds=3.0)


@pytest.fixture(scope="module")
def run(bag, tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    return out, replay(bag, out)


def test_bag_replayed_twice_gives_the_same_bytes(bag, run, tmp_path):
    replay(bag, tmp_path / "again")
    assert digests(tmp_path / "again") == digests(run[0])


def test_both_storages_give_the_same_actions_and_texts(run, tmp_path):
    report = replay(make_bag(tmp_path, storage="sqlite3", seconds=3.0), tmp_path / "out")
    assert report["fingerprints"] == run[1]["fingerprints"]


def test_another_seed_gives_other_actions(bag, run, tmp_path):
    report = replay(bag, tmp_path, settings=(("model.seed", 5),))
    assert report["fingerprints"]["actions"] != run[1]["fingerprints"]["actions"]
    assert report["fingerprints"]["inputs"] == run[1]["fingerprints"]["inputs"]


def test_report_counts_what_happened(run):
    measures = run[1]["measures"]
    cycles = cycles_of(run[0])
    # Cycles of 200 ms in 3 s; nothing has been received at the first one.
    assert measures["cycles"] == {"all": 15, "acted": 14, "waiting": 1}
    assert len(cycles) == 15
    assert [row["status"] for row in cycles] == ["waiting"] + ["acted"] * 14
    assert measures["latency_ms"] == {"p50": 70.0, "p95": 70.0, "p99": 70.0, "max": 70.0}
    assert measures["misses"] == 0
    assert measures["decode"]["tokens"] == sum(int(row["text_tokens"]) for row in cycles) > 0
    assert measures["decode"]["steps"] == sum(int(row["decode_steps"]) for row in cycles)
    assert measures["texts"]["all"] == len(run[1]["texts"])
    by_task = {text["task"] for text in run[1]["texts"]}
    assert by_task == {"subtask", "memory", "ask"}
    assert run[1]["verdict"]["exit_code"] == 0


def test_run_bag_holds_actions_texts_and_reports(run):
    with Bag(run[0] / "run.mcap") as made:
        counts = {name: survey.num_messages for name, survey in made.surveys.items()}
        chunks = [
            made.types.read("oxygen_ros/msg/ActionChunk", r.data)
            for r in made.records(("/oxygen_node/action_chunk",))
        ]
    acted = [chunk for chunk in chunks if chunk.horizon]
    assert len(acted) == 14
    assert counts["/oxygen_node/cycle_report"] == 15
    assert counts["/oxygen_node/text"] == run[1]["measures"]["texts"]["completed"]
    assert counts["/action_player/joint_command"] > 40
    assert list(acted[0].joint_names) == ["arm_left", "arm_right", "hand"]


def test_errors_are_those_of_the_recorded_commands(tmp_path):
    # Commands stand still at 0.25, chunks begin where the joints are: the error can be worked out by hand.
    sheet = Sheet()
    sheet.add(INSTRUCTION, sheet.make.text("hold"), START_NS)
    picture = np.full((8, 8, 3), 90, np.uint8)
    for i in range(40):
        at_ns = START_NS + i * 50 * MS
        sheet.add("/front/image", sheet.make.image(picture, at_ns), at_ns)
        sheet.add(JOINTS, sheet.make.joints(["hand", "arm_left", "arm_right"], [0.1, 0.2, 0.3], at_ns), at_ns)
        sheet.add(COMMAND, sheet.make.array([0.25, 0.25, 0.25]), at_ns)
    report = replay(sheet.write(tmp_path / "bag"), tmp_path / "out")
    with Bag(tmp_path / "out" / "run.mcap") as made:
        chunks = [
            made.types.read("oxygen_ros/msg/ActionChunk", r.data)
            for r in made.records(("/oxygen_node/action_chunk",))
        ]
    rows = np.concatenate([c.actions.reshape(8, 3)[:4] for c in chunks if c.horizon])
    assert rows[0, 2] == pytest.approx(0.1, abs=0.05)
    for column, name in enumerate(["arm_left", "arm_right", "hand"]):
        expected = np.abs(rows[:, column] - 0.25)
        assert report["measures"]["mae"]["joints"][name] == pytest.approx(expected.mean(), abs=1e-6)
        assert report["measures"]["max_error"]["joints"][name] == pytest.approx(expected.max(), abs=1e-6)
    assert len(report["error_by_step"]) == 8
    assert report["setup"]["compared_with"] == f"commands on {COMMAND}"


def test_bag_without_commands_compares_with_joints_and_says_so(tmp_path):
    report = replay(make_bag(tmp_path, has_commands=False), tmp_path / "out")
    assert report["setup"]["compared_with"] == "joint positions: the bag has no commands"
    assert report["measures"]["mae"]["all"] is not None


def test_slow_model_is_late_and_counted(bag, tmp_path):
    costs = tmp_path / "costs.json"
    costs.write_text('{"prefill_ms": 180, "act_ms": 60, "decode_step_ms": 5, "decode_row_ms": 0}')
    report = replay(bag, tmp_path / "out", costs=str(costs))
    assert report["measures"]["latency_ms"]["p50"] == 240.0
    assert report["measures"]["misses"] == report["measures"]["cycles"]["acted"] > 0
    assert report["measures"]["decode"]["steps"] == 0


def test_realtime_measures_this_machine_and_gives_costs(tmp_path):
    path = make_bag(tmp_path, seconds=1.0)
    patient = (("robot.cameras.front.max_age_s", 60.0), ("robot.joint_topics.joints.max_age_s", 60.0))
    report = replay(path, tmp_path / "out", clock="realtime", settings=patient)
    assert report["measures"]["cycles"]["acted"] >= 1
    costs = json.loads((tmp_path / "out" / "costs.json").read_text())
    assert costs["prefill_ms"] >= 40.0
    again = replay(path, tmp_path / "again", costs=str(tmp_path / "out"))
    assert again["measures"]["latency_ms"]["p50"] == pytest.approx(
        costs["prefill_ms"] + costs["act_ms"], abs=1e-3
    )


def test_interrupted_replay_leaves_a_whole_report_of_its_part(bag, tmp_path):
    seen = []
    progress = Progress(reach=seen.append, is_interrupted=lambda: len(seen) == 6)
    report = replay_bag(job(bag, tmp_path), progress)
    assert report["complete"] is False
    assert report["verdict"]["exit_code"] == 3
    assert report["measures"]["cycles"]["all"] == 6
    with Bag(tmp_path / "run.mcap") as made:
        assert made.faults == []
    assert all(text["reason"] for text in report["texts"])


def test_cameras_are_written_on_request(bag, tmp_path):
    replay(bag, tmp_path, cameras=True, duration_s=1.0)
    with Bag(tmp_path / "run.mcap") as made:
        assert made.surveys["/replay/camera/front"].num_messages == 5


def test_pictures_are_drawn(bag, tmp_path):
    report = replay(bag, tmp_path, pictures=True)
    names = ("actions", "horizon", "seams", "timeline", "latency", "texts")
    assert {path.name for path in tmp_path.glob("*.png")} == {f"picture_{name}.png" for name in names}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in tmp_path.glob("*.png"))
    assert "![Control cycles and texts](picture_timeline.png)" in (tmp_path / "report.md").read_text()
    assert report["measures"]["seam_jump"]["seams"] >= 12


def test_job_can_be_sent_to_another_process(bag, tmp_path):
    import pickle

    made = job(bag, tmp_path)
    assert pickle.loads(pickle.dumps(made)) == made
    assert dataclasses.is_dataclass(made)
