"""The bag of a demonstration: from a second before the first action on, with a limit, whole when closed."""

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from rclpy.serialization import serialize_message
from std_msgs.msg import String

from oxygen_ros.replay.bag.bag import Bag
from oxygen_ros.ros.demo_recorder import MAX_NS, RunRecorder, new_run_folder

S = 1_000_000_000


def written(folder):
    """Text and time of each message."""
    with Bag(folder / "run.mcap") as bag:
        assert not bag.faults
        records = bag.records(tuple(bag.topics))
        return [(bag.types.read("std_msgs/msg/String", r.data).data, r.time_ns) for r in records]


def note(recorder, text, at_ns, **how):
    recorder.write(f"/{text}", String, serialize_message(String(data=text)), at_ns, **how)


def test_bag_begins_a_second_before_the_first_action_but_for_latched_messages(tmp_path):
    recorder = RunRecorder(tmp_path / "run", checkpoint="none")
    note(recorder, "told", S // 2, is_latched=True)
    note(recorder, "told", S, is_latched=True)
    note(recorder, "long_before", 2 * S)
    note(recorder, "before", 9 * S + S // 2)
    recorder.begin(10 * S)
    recorder.begin(20 * S)
    note(recorder, "first", 10 * S)
    note(recorder, "last", 10 * S + MAX_NS)
    assert not recorder.is_full
    note(recorder, "after", 10 * S + MAX_NS + 1)
    assert recorder.is_full
    recorder.close()
    assert written(tmp_path / "run") == [
        ("told", 9 * S + S // 2 - 1),
        ("before", 9 * S + S // 2),
        ("first", 10 * S),
        ("last", 10 * S + MAX_NS),
    ]
    assert "oxygen_ros.checkpoint" in (tmp_path / "run" / "metadata.yaml").read_text()
    with Bag(tmp_path / "run") as bag:
        assert bag.num_messages == 4


def test_run_that_never_moved_keeps_its_last_second(tmp_path):
    recorder = RunRecorder(tmp_path / "run")
    for second in range(5):
        note(recorder, f"at_{second}", second * S)
    recorder.close()
    assert written(tmp_path / "run") == [("at_3", 3 * S), ("at_4", 4 * S)]


def test_run_folders_have_names_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = set()
    for _ in range(3):
        folder = new_run_folder()
        folder.mkdir(parents=True)
        names.add(folder)
    assert len(names) == 3
    assert {folder.parent.name for folder in names} == {"runs"}
