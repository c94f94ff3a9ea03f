"""Replays of bags as they come from the field."""

from __future__ import annotations

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
    cycles_of,
    digests,
    make_bag,
    replay,
)

from oxygen_ros.replay.bag.bag import Bag


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


def test_b36_model_slower_than_an_action_leaves_no_gap_between_actions(tmp_path):
    """B36 (b): 86 ms per chunk at 50 actions a second, in exact time."""
    fast = (
        ("cycle.action_rate_hz", 50.0),
        ("model.horizon", 50),
        ("cycle.execute_horizon", 10),
        ("runner.fake.prefill_ms", 50.0),
        ("runner.fake.act_ms", 36.0),
    )
    report = replay(make_bag(tmp_path), tmp_path / "out", settings=fast)
    with Bag(tmp_path / "out" / "run.mcap") as made:
        sent_ns = [record.time_ns for record in made.records((COMMAND,))]
    assert report["measures"]["latency_ms"]["p50"] == 86.0
    assert len(sent_ns) > 80
    assert set(np.diff(sent_ns)) == {20 * MS}
    assert report["measures"]["player"] == {
        "actions_played": len(sent_ns),
        "ticks_missed": 0,
        "steps_clamped": report["measures"]["player"]["steps_clamped"],
        "holds": 0,
    }
