"""The memory node on real topics: what it keeps, what it finds, what a kill leaves."""

from __future__ import annotations

import itertools
import signal
import sqlite3

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from consumer_bench import add_senders, consumer, delta, until_connected
from node_process import NodeProcess
from ros_bench import Bench, bench

from oxygen_ros.errors import ConfigError
from oxygen_ros.memory.line import Line
from oxygen_ros.memory.text_store import TextStore
from oxygen_ros.msg import TextDelta, TextRequest
from oxygen_ros.ros.conversions import from_time, to_time
from oxygen_ros.ros.diagnostics import ERROR, OK
from oxygen_ros.ros.memory_node import MemoryNode
from oxygen_ros.srv import QueryMemory
from oxygen_ros.types import FinishReason, TextKind

STOP, CANCELLED = TextDelta.FINISH_STOP, TextDelta.FINISH_CANCELLED
END_WITHIN_S = 3.0


@pytest.fixture
def b():
    with bench() as made:
        made.feed = None
        yield made


def ask(b: Bench, node: str = "memory_node", **facts) -> QueryMemory.Response:
    return b.call(QueryMemory, f"{node}/query", QueryMemory.Request(**facts))


def texts(b: Bench, **facts) -> list[str]:
    return [found.text for found in ask(b, **facts).texts]


def tell(b: Bench, name: str, text: str, reason: int = STOP, **facts) -> None:
    b.probe.send("delta", delta(name, 0, text[:3], **facts))
    b.probe.send("delta", delta(name, 1, text[3:], reason, **facts))


def until_stored(b: Bench, count: int) -> None:
    b.until(lambda: ask(b, max_texts=1).num_matching >= count, f"{count} texts")


def test_texts_are_found_by_time_words_task_and_reason(b, tmp_path):
    with consumer(b, MemoryNode, path=str(tmp_path / "m.sqlite3")):
        tell(b, "a", "The red cup is here.", stamp_ns=10 * 10**9)
        tell(b, "b", "The BLUE cup is gone.", stamp_ns=20 * 10**9, task="memory")
        tell(b, "c", "杯子在碗里。", stamp_ns=30 * 10**9)
        tell(b, "d", "I will take the cu", CANCELLED, stamp_ns=40 * 10**9)
        until_stored(b, 4)
        assert texts(b, words="CUP blue") == ["The BLUE cup is gone."]
        assert texts(b, words="杯子") == ["杯子在碗里。"]
        assert texts(b, begin=to_time(20 * 10**9), end=to_time(30 * 10**9)) == [
            "杯子在碗里。",
            "The BLUE cup is gone.",
        ]
        assert texts(b, tasks=["memory"]) == ["The BLUE cup is gone."]
        assert texts(b, finish_reasons=[CANCELLED]) == ["I will take the cu"]
        newest = ask(b, max_texts=1)
        assert (len(newest.texts), newest.num_matching, newest.success) == (1, 4, True)
        found = newest.texts[0]
        assert (found.request_id, found.task, found.finish_reason) == ("d", "ask", CANCELLED)
        assert from_time(found.header.stamp) == 40 * 10**9
        assert 0 < from_time(found.received) <= b.probe.now_ns()
        assert found.is_whole


def test_what_the_brain_wrote_is_kept_with_its_observation(b, tmp_path):
    with consumer(b, MemoryNode, path=str(tmp_path / "m.sqlite3")):
        brain = b.brain(**{"text.tasks.subtask.every_cycles": 2})
        b.feed = b.probe.feed
        b.until_state(brain, "active")
        b.probe.send("ask", TextRequest(request_id="my question", prompt="What do you see?"))
        b.until(
            lambda: [m for m in b.got("text_stream") if m.is_final and m.request_id == "my question"],
            "answer",
        )
        b.until(
            lambda: len([m for m in b.got("text_stream") if m.is_final and m.task == "subtask"]) >= 3, "texts"
        )
        ended = {m.request_id: m for m in b.got("text_stream") if m.is_final}
        whole = {
            name: "".join(m.text for m in b.got("text_stream") if m.request_id == name) for name in ended
        }
        until_stored(b, len([text for text in whole.values() if text.strip()]))
        kept = {found.request_id: found for found in ask(b).texts}
        assert "my question" in kept
        for name in kept.keys() & ended.keys():
            assert kept[name].text == whole[name]
            assert kept[name].header.stamp == ended[name].header.stamp
            assert kept[name].finish_reason == ended[name].finish_reason
            assert (kept[name].task, kept[name].kind) == (ended[name].task, ended[name].kind)


def test_pieces_of_a_whole_cycle_at_once_become_a_whole_text(b, tmp_path):
    with consumer(b, MemoryNode, path=str(tmp_path / "m.sqlite3")):
        for seq in range(1500):
            b.probe.send("delta", delta("long", seq, "on "))
        b.probe.send("delta", delta("long", 1500, "end", STOP))
        until_stored(b, 1)
        (found,) = ask(b).texts
        assert (found.is_whole, found.text) == (True, "on " * 1500 + "end")


def test_only_tasks_that_are_asked_for_are_kept(b, tmp_path):
    with consumer(b, MemoryNode, path=str(tmp_path / "m.sqlite3"), tasks=["memory"]):
        tell(b, "a", "An answer.", task="ask")
        tell(b, "b", "A memory.", task="memory")
        until_stored(b, 1)
        assert texts(b) == ["A memory."]


def test_damaged_pieces_are_counted_and_the_rest_is_kept(b, tmp_path):
    with consumer(b, MemoryNode, path=str(tmp_path / "m.sqlite3")):
        b.probe.send("delta", TextDelta(request_id="x", finish_reason=99, is_final=True, text="no"))
        b.probe.send("delta", TextDelta(request_id="y", kind=77, text="no"))
        b.probe.send("delta", delta("joined late", 5, "the end.", STOP))
        tell(b, "refused", "", TextDelta.FINISH_REFUSED)
        until_stored(b, 1)
        (found,) = ask(b).texts
        assert (found.text, found.is_whole) == ("the end.", False)
        refused = ask(b, finish_reasons=[200])
        assert (refused.success, refused.texts) == (False, [])
        assert "200" in refused.message
        b.until(
            lambda: (
                (h := b.health("memory_node: memory"))
                and {v.key: v.value for v in h.values}.get("refused_malformed_delta") == "2"
            ),
            "two refused",
        )


def test_broken_store_is_set_aside_and_the_node_works(b, tmp_path):
    path = tmp_path / "m.sqlite3"
    path.write_bytes(b"not a database at all " * 500)
    with consumer(b, MemoryNode, path=str(path)):
        tell(b, "a", "A new beginning.")
        until_stored(b, 1)
        assert texts(b) == ["A new beginning."]
        assert (tmp_path / "m.sqlite3.broken-1").exists()
        b.until(lambda: (h := b.health("memory_node: memory")) and h.level == OK, "health")


def test_store_that_breaks_and_cannot_be_set_aside_is_reported_and_works_once_it_can(b, tmp_path):
    path = tmp_path / ("m" * 247)  # SQLite can still add to such a name, a rename cannot
    store = TextStore(path, max_rows=1)
    store.add(Line(1, 2, "ask", TextKind.ASK, "old", "An old text.", FinishReason.STOP))
    store.close()
    spoil_index(path)
    with consumer(b, MemoryNode, path=str(path), max_rows=1):
        tell(b, "a", "This one is lost.")
        b.until(lambda: (h := b.health("memory_node: memory")) and h.level == ERROR, "an error")
        assert "text a is lost" in b.health("memory_node: memory").message
        path.unlink()
        tell(b, "b", "A new beginning.")
        until_stored(b, 1)
        assert texts(b) == ["A new beginning."]
        b.until(lambda: b.health("memory_node: memory").level == OK, "recovered")


def spoil_index(path):
    """The index on received_ns does not hold what its table says; only an insert meets it."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    changed = "replace(sql, 'received_ns', 'stamp_ns')"
    connection.execute(f"UPDATE sqlite_master SET sql = {changed} WHERE name = 'texts_by_received'")
    connection.commit()
    connection.close()


def test_file_of_somebody_else_is_refused_by_name(b, tmp_path):
    (tmp_path / "folder").mkdir()
    with (
        pytest.raises(ConfigError, match=r"\[memory_path\] .*folder"),
        consumer(b, MemoryNode, path=str(tmp_path / "folder")),
    ):
        pass


def test_process_killed_loses_no_line_that_could_be_found(b, tmp_path):
    """Each life has a name of its own: the middleware takes long to see that the last one is dead."""
    add_senders(b)
    kept: set[str] = set()
    for life in range(2):
        name = f"memory_{life}"
        node = NodeProcess(
            "memory_node", b.namespace, {"path": str(tmp_path / "m.sqlite3")}, "-r", f"__node:={name}"
        )
        try:
            before = ask(b, name, max_texts=1000)
            assert kept <= {found.text for found in before.texts}, f"life {life}"
            numbers = itertools.count()

            def is_stored(name=name, life=life, numbers=numbers, enough=before.num_matching + 5):
                number = next(numbers)
                tell(b, f"{life}-{number}", f"Text {number} of life {life}.")
                return ask(b, name, max_texts=1).num_matching >= enough

            b.until(is_stored, "texts")
            kept |= {found.text for found in ask(b, name, max_texts=1000).texts}
            node.end(signal.SIGKILL)
        finally:
            node.close()
    assert len(kept) >= 10


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_process_ends_in_time_without_traceback(b, tmp_path, number):
    node = NodeProcess("memory_node", b.namespace, {"path": str(tmp_path / "m.sqlite3")})
    try:
        add_senders(b)
        until_connected(b, "delta")
        tell(b, "a", "The last words.")
        until_stored(b, 1)
        code, seconds = node.end(number)
        assert (code, "Traceback" in node.output) == (0, False), node.output
        assert seconds < END_WITHIN_S
    finally:
        node.close()
