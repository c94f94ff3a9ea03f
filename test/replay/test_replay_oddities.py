"""Bags and folders that are nearly right: taken as far as they go, with a word, and nothing is lost."""

from __future__ import annotations

import json

import pytest
from bag_factory import MS, START_NS, Sheet, job, make_bag, replay

from oxygen_ros.errors import ContractError
from oxygen_ros.replay.unit import Progress, replay_bag
from oxygen_ros.types import CycleReport, CycleStatus

RECORDING = "/oxygen_node/recording"
WAVE = (("instruction", "wave"),)


def with_recording(tmp_path, *lines):
    sheet = Sheet.of(make_bag(tmp_path))
    for number, line in enumerate(lines):
        sheet.add(RECORDING, sheet.make.text(json.dumps(line)), START_NS + 1 + number)
    return sheet.write(tmp_path / "told")


@pytest.mark.parametrize(
    ("lines", "note"),
    [
        ([{"kind": "begin", "format": 1, "config": {}}, {"kind": "cycle"}], "KeyError: 'cycle'"),
        ([{"kind": "begin", "format": 1, "config": 7}], "not understood (TypeError"),
        ([{"kind": "begin", "format": 1}, {"kind": "decoded", "cycle": "x", "steps": ""}], "not understood"),
        ([{"kind": "begin", "format": 2, "frames": []}, {"kind": "cycle"}], "format 2, known is 1"),
        ([{"kind": "cycle"}], "format none, known is 1"),
    ],
)
def test_recording_that_is_not_understood_is_replayed_as_any_other_bag(lines, note, tmp_path):
    """It was a KeyError out of the program."""
    report = replay(with_recording(tmp_path, *lines), tmp_path / "out")
    assert report["setup"]["reproduces_recording"] is False
    assert report["measures"]["cycles"]["acted"] > 5
    assert any(note in text for text in report["bag"]["notes"])


def test_report_with_a_time_that_is_none_costs_nothing(tmp_path):
    """It was a ValueError out of the program."""
    sheet = Sheet.of(make_bag(tmp_path))
    told = CycleReport(cycle_id=1, status=CycleStatus.ACTED, prefill_ns=float("nan"), act_ns=30 * MS)
    sheet.add("/oxygen_node/cycle_report", sheet.make.report(told, START_NS), START_NS + 1)
    report = replay(sheet.write(tmp_path / "told"), tmp_path / "out", costs="recorded")
    assert report["verdict"]["exit_code"] == 0
    assert report["measures"]["latency_ms"]["p50"] == 0.0, "no cycle with a prefill: nothing to take costs of"


def test_commands_of_another_type_are_left_out_with_a_note(tmp_path):
    """They are there to compare with: a replay does without them."""
    path = make_bag(tmp_path)
    other = (("topics.joint_command", "/oxygen_node/instruction_echo"),)
    sheet = Sheet.of(path)
    sheet.add("/oxygen_node/instruction_echo", sheet.make.text("go"), START_NS + 5)
    report = replay(sheet.write(tmp_path / "odd"), tmp_path / "out", settings=other)
    assert report["setup"]["compared_with"] == "joint positions: the bag has no commands"
    assert any("are not compared: they are std_msgs/msg/String" in note for note in report["bag"]["notes"])
    asked = replay(tmp_path / "odd", tmp_path / "asked", commands="/oxygen_node/instruction_echo")
    assert asked["verdict"]["exit_code"] == 2


def test_report_does_not_take_the_place_of_its_bag_or_its_baseline(tmp_path):
    """Both were deleted before they were read."""
    first = tmp_path / "first"
    replay(make_bag(tmp_path), first)
    before = {path.name: path.read_bytes() for path in first.iterdir()}
    for changes in ({"bag": first / "run.mcap"}, {"bag": first}, {"baseline": str(first)}):
        bag = changes.pop("bag", tmp_path / "bag")
        with pytest.raises(ContractError) as caught:
            replay(bag, tmp_path / "x" / ".." / "first", **changes)
        assert caught.value.code == "out"
        assert {path.name: path.read_bytes() for path in first.iterdir()} == before


def test_interrupted_replay_counts_its_rates_over_the_part_it_covered(tmp_path):
    """They were spread over the whole bag."""
    bag = make_bag(tmp_path, seconds=4.0)
    seen = []
    progress = Progress(reach=seen.append, is_interrupted=lambda: len(seen) == 6)
    part = replay_bag(job(bag, tmp_path / "part"), progress)["measures"]["decode"]
    same = replay(bag, tmp_path / "same", duration_s=(seen[-1] - START_NS) / 1e9)["measures"]["decode"]
    assert part["tokens"] > 0
    assert part["tokens_per_s"] == pytest.approx(same["tokens_per_s"], rel=0.35)


def with_clock_set(tmp_path):
    """A robot without a clock of its own: 1970 until the network told it the time, 1 s into the recording."""
    sheet = Sheet.of(make_bag(tmp_path, seconds=3.0))
    shifted = Sheet()
    for topic, message_type, data, log_ns in sheet.lines:
        shift_ns = START_NS if log_ns < START_NS + 1000 * MS else 0
        if shift_ns and data[4:8] == (START_NS // 10**9).to_bytes(4, "little"):
            data = data[:4] + bytes(4) + data[8:]
        shifted.add_raw(topic, message_type, data, log_ns - shift_ns + 12 * 10**9)
    return shifted.write(tmp_path / "set")


@pytest.mark.parametrize("time", ["log", "header"])
def test_bag_whose_clock_was_set_is_refused_with_its_parts(time, tmp_path):
    """A replay would have run through the years between."""
    path = with_clock_set(tmp_path)
    report = replay(path, tmp_path / "out", time=time)
    assert report["verdict"]["exit_code"] == 2
    assert report["error"]["code"] == "bag.gap"
    words = report["error"]["suggestion"].replace(",", "").split()
    duration_s, start_s = (float(words[words.index(word) + 1]) for word in ("--duration", "--start"))
    before = replay(path, tmp_path / "before", time=time, duration_s=duration_s, settings=WAVE)
    after = replay(path, tmp_path / "after", time=time, start_s=start_s, settings=WAVE)
    assert before["measures"]["cycles"]["acted"] >= 3
    assert after["measures"]["cycles"]["acted"] >= 8
    assert 0 < before["setup"]["duration_s"] < 1.01
    assert 1.9 < after["setup"]["duration_s"] < 2.01
