"""Whole replays: the same twice, the right inputs, the right figures."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json

import numpy as np
import pytest
from bag_factory import (
    COMMAND,
    FRONT,
    INSTRUCTION,
    JOINTS,
    MS,
    START_NS,
    S,
    Sheet,
    cut,
    job,
    make_bag,
    replay,
)

from oxygen_ros.replay.bag.bag import Bag
from oxygen_ros.replay.unit import Progress, replay_bag

SAME = ("report.json", "report.md", "run.mcap", "cycles.csv")


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    return make_bag(tmp_path_factory.mktemp("bag"), seconds=3.0)


@pytest.fixture(scope="module")
def run(bag, tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    return out, replay(bag, out)


def digests(folder):
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in SAME}


def cycles_of(folder):
    with (folder / "cycles.csv").open(newline="") as file:
        return list(csv.DictReader(file))


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


def test_b74_header_and_log_time_pair_inputs_differently_each_the_same_twice(tmp_path):
    sheet = Sheet.of(make_bag(tmp_path, seconds=2.0))
    late = Sheet()
    # Joints reach the recorder 0.4 s late: by log time pictures meet older joints than by header time.
    for topic, message_type, data, log_ns in sheet.lines:
        late.add_raw(topic, message_type, data, log_ns + (400 * MS if topic == JOINTS else 0))
    late.latched = sheet.latched
    path = late.write(tmp_path / "late")
    runs = {}
    for name, time in (("log", "log"), ("log2", "log"), ("header", "header"), ("header2", "header")):
        runs[name] = replay(path, tmp_path / name, time=time)
    assert digests(tmp_path / "log") == digests(tmp_path / "log2")
    assert digests(tmp_path / "header") == digests(tmp_path / "header2")
    assert runs["log"]["fingerprints"]["inputs"] != runs["header"]["fingerprints"]["inputs"]
    assert any("397 ms" in note or "400 ms" in note for note in runs["log"]["bag"]["notes"])


def test_b75_latched_instruction_before_the_start_is_heard(tmp_path):
    path = make_bag(tmp_path, seconds=3.0)
    report = replay(path, tmp_path / "out", start_s=1.5)
    assert report["measures"]["cycles"]["acted"] >= 6
    assert report["setup"]["duration_s"] == pytest.approx(1.5, abs=0.1)


def test_b75_instruction_without_qos_is_volatile_and_said(tmp_path):
    sheet = Sheet.of(make_bag(tmp_path, seconds=2.0))
    sheet.without_qos = {INSTRUCTION}
    report = replay(sheet.write(tmp_path / "unknown"), tmp_path / "out", start_s=1.0)
    assert report["measures"]["cycles"].get("acted", 0) == 0
    assert "waiting: instruction" in " ".join(report["reasons"])
    assert any("taken as volatile" in note for note in report["bag"]["notes"])
    assert report["verdict"]["exit_code"] == 3


def test_b70_clock_that_jumps_back_begins_anew_once_and_acts_again(tmp_path):
    sheet = Sheet()
    sheet.latched = {INSTRUCTION}
    sheet.add(INSTRUCTION, sheet.make.text("wave"), START_NS)
    picture = np.full((8, 8, 3), 90, np.uint8)
    for i in range(202):  # 10 s of recording: bag time 10 to 15 s, twice
        log_ns, sim_ns = START_NS + i * 50 * MS, 10 * S + (i % 101) * 50 * MS
        sheet.add("/clock", sheet.make.clock(sim_ns), log_ns)
        sheet.add("/front/image", sheet.make.image(picture, sim_ns), log_ns + 1)
        sheet.add(JOINTS, sheet.make.joints(["arm_left", "arm_right", "hand"], [0, 0, 0], sim_ns), log_ns + 2)
    report = replay(sheet.write(tmp_path / "bag"), tmp_path / "out")
    jumps = [line for line in report["log"] if "jumped" in line["text"]]
    assert [line["text"] for line in jumps] == ["clock jumped back 5.0 s"]
    at_s = jumps[0]["time_s"]
    rows = [row for row in cycles_of(tmp_path / "out") if row["status"] == "acted"]
    acted = [(int(row["start_ns"]) - START_NS) / S for row in rows]
    assert any(at_s < time_s < at_s + 1.0 for time_s in acted)
    assert report["measures"]["refusals"].get("out_of_order", 0) == 0


def test_b71_truncated_bag_is_replayed_and_gives_3(tmp_path):
    path = cut(make_bag(tmp_path, seconds=3.0, width=160, height=120), 0.6)
    report = replay(path, tmp_path / "out")
    assert report["verdict"]["exit_code"] == 3
    assert report["verdict"]["warnings"] == [
        f"bag.mcap: truncated after {report['bag']['messages']} messages"
    ]
    assert report["measures"]["cycles"]["acted"] > 3
    assert "truncated after" in (tmp_path / "out" / "report.md").read_text()


def test_b71_empty_file_gives_2_and_a_report_that_says_so(tmp_path):
    (tmp_path / "bag.mcap").touch()
    report = replay(tmp_path / "bag.mcap", tmp_path / "out")
    assert report["verdict"]["exit_code"] == 2
    written = json.loads((tmp_path / "out" / "report.json").read_text())
    assert "bag.mcap is empty (0 bytes)" in written["error"]["message"]
    assert "bag.mcap is empty" in (tmp_path / "out" / "report.md").read_text()


def test_b76_unknown_type_on_an_unused_topic_is_skipped_with_a_count(tmp_path):
    sheet = Sheet.of(make_bag(tmp_path))
    custom = Sheet()
    custom.latched = sheet.latched
    custom.lines = sheet.lines + [("/extra", "std_msgs/msg/String", b"\0\1\0\0\2\0\0\0x\0", START_NS + 5)] * 7
    path = custom.write(tmp_path / "custom", storage="sqlite3")
    forget_type(path, "/extra", "maker_msgs/msg/Grip")
    report = replay(path, tmp_path / "out")
    assert report["verdict"]["exit_code"] == 0
    assert report["bag"]["unknown_types"] == {"/extra": {"type": "maker_msgs/msg/Grip", "messages": 7}}


def test_b76_unknown_type_on_a_needed_topic_names_the_package(tmp_path):
    path = make_bag(tmp_path, storage="sqlite3")
    forget_type(path, JOINTS, "maker_msgs/msg/Joints")
    report = replay(path, tmp_path / "out")
    assert report["verdict"]["exit_code"] == 2
    assert "maker_msgs" in report["error"]["message"]
    assert JOINTS in report["error"]["message"]


def forget_type(path, topic, message_type):
    """Give a topic a type that nobody knows, without a definition."""
    import sqlite3

    with sqlite3.connect(path / f"{path.name}.db3") as connection:
        connection.execute("UPDATE topics SET type = ? WHERE name = ?", (message_type, topic))


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ((("robot.cameras.front.topic", "rear/image"),), "camera front: no topic rear/image"),
        ((("robot.joint_topics.joints.topic", "arm/states"),), "joints joints: no topic arm/states"),
    ],
)
def test_bag_without_a_needed_topic_says_which_and_what_there_is(settings, named, tmp_path):
    report = replay(make_bag(tmp_path), tmp_path / "out", settings=settings)
    assert report["verdict"]["exit_code"] == 2
    assert named in report["error"]["message"]
    assert f"{JOINTS} (sensor_msgs/msg/JointState, 100)" in report["error"]["suggestion"]


def test_bag_of_two_clocks_says_so_and_is_replayed(tmp_path):
    report = replay(make_bag(tmp_path, delay_ns=7200 * S), tmp_path / "out", start_s=7199.9)
    assert any(note.startswith("two clocks") and FRONT in note for note in report["bag"]["notes"])
    assert report["measures"]["cycles"]["acted"] >= 9


def test_unreadable_messages_are_counted_and_passed_over(tmp_path):
    sheet = Sheet.of(make_bag(tmp_path))
    broken = Sheet()
    broken.latched = sheet.latched
    number = 0
    for topic, message_type, data, log_ns in sheet.lines:
        number += topic == JOINTS
        is_bad = topic == JOINTS and number % 10 == 0
        broken.add_raw(topic, message_type, data[:20] if is_bad else data, log_ns)
    report = replay(broken.write(tmp_path / "broken"), tmp_path / "out")
    assert report["measures"]["unreadable"] == {"all": 10, JOINTS: 10}
    assert report["verdict"]["exit_code"] == 3
    assert report["measures"]["cycles"]["acted"] == 9


def test_slow_model_is_late_and_counted(bag, tmp_path):
    costs = tmp_path / "costs.json"
    costs.write_text('{"prefill_ms": 180, "act_ms": 60, "decode_step_ms": 5, "decode_row_ms": 0}')
    report = replay(bag, tmp_path / "out", costs=str(costs))
    assert report["measures"]["latency_ms"]["p50"] == 240.0
    assert report["measures"]["misses"] == report["measures"]["cycles"]["acted"] > 0
    assert report["measures"]["decode"]["steps"] == 0


def test_realtime_measures_this_machine_and_gives_costs(tmp_path):
    path = make_bag(tmp_path, seconds=1.0)
    report = replay(path, tmp_path / "out", clock="realtime")
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
