import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest

from oxygen_ros.errors import ConfigError
from oxygen_ros.memory.line import Line, Query
from oxygen_ros.memory.text_store import TextStore
from oxygen_ros.types import FinishReason, TextKind

LINE = Line(
    stamp_ns=10,
    received_ns=11,
    task="memory",
    kind=TextKind.MEMORY,
    request_id="memory-1",
    text="The red cup is in the bowl.",
    finish_reason=FinishReason.STOP,
)
WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from dataclasses import replace
from test_text_store import LINE
from oxygen_ros.memory.text_store import TextStore
store = TextStore(Path(sys.argv[1]), 1000000)
number = 0
while True:
    number += 1
    store.add(replace(LINE, stamp_ns=number))
    print(number, flush=True)
"""


@pytest.fixture
def store(tmp_path):
    made = TextStore(tmp_path / "memory.sqlite3", max_rows=100)
    yield made
    made.close()


def found(store, **query):
    return [line.text for line in store.find(Query(**query))[0]]


def test_line_comes_back_as_it_was_after_a_restart(tmp_path):
    line = replace(LINE, text="杯子 🍵 'quoted'; DROP TABLE texts;--", is_whole=False)
    store = TextStore(tmp_path / "sub" / "memory.sqlite3", max_rows=10)
    store.add(line)
    store.close()
    assert TextStore(tmp_path / "sub" / "memory.sqlite3", max_rows=10).find(Query()) == ([line], 1)


def test_query_by_time_takes_both_ends_and_gives_the_newest_first(store):
    for stamp in (30, 10, 40, 20):
        store.add(replace(LINE, stamp_ns=stamp, text=f"at {stamp}"))
    assert found(store) == ["at 40", "at 30", "at 20", "at 10"]
    assert found(store, begin_ns=20, end_ns=30) == ["at 30", "at 20"]
    assert found(store, begin_ns=41) == []
    lines, num_matching = store.find(Query(max_lines=2))
    assert ([line.stamp_ns for line in lines], num_matching) == ([40, 30], 4)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("red", "bowl"), ["The RED cup is in the Bowl."]),
        (("BOWL",), ["The RED cup is in the Bowl."]),
        (("red", "plate"), []),
        (("straße",), ["Die STRASSE ist frei."]),
        (("杯子",), ["红色的杯子在碗里。"]),
        (("%",), ["Done: 50 %"]),
        (("_",), []),
    ],
)
def test_query_by_words_needs_all_of_them_in_any_case(store, words, wanted):
    for text in ("The RED cup is in the Bowl.", "Die STRASSE ist frei.", "红色的杯子在碗里。", "Done: 50 %"):
        store.add(replace(LINE, text=text))
    assert found(store, words=words) == wanted


def test_query_by_task_and_reason(store):
    store.add(replace(LINE, text="one"))
    store.add(replace(LINE, text="two", task="ask"))
    store.add(replace(LINE, text="three", finish_reason=FinishReason.CANCELLED))
    assert found(store, tasks=("ask",)) == ["two"]
    assert found(store, finish_reasons=(FinishReason.CANCELLED,)) == ["three"]
    assert found(store, tasks=("ask", "memory"), finish_reasons=(FinishReason.STOP,)) == ["two", "one"]


def test_rows_above_the_limit_let_the_oldest_go(tmp_path):
    store = TextStore(tmp_path / "m.sqlite3", max_rows=3)
    for number in range(10):
        store.add(replace(LINE, stamp_ns=number, text=str(number)))
    assert found(store) == ["9", "8", "7"]
    assert len(store) == 3


def test_lines_above_the_age_go(tmp_path):
    store = TextStore(tmp_path / "m.sqlite3", max_rows=100, max_age_ns=50)
    for received in (0, 40, 60, 95):
        store.add(replace(LINE, received_ns=received, text=str(received)))
    assert sorted(found(store)) == ["60", "95"]


def test_writer_killed_at_any_moment_loses_no_line_it_has_told_of(tmp_path):
    path = tmp_path / "memory.sqlite3"
    for enough in (1, 7, 30):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER.format(tests=os.path.dirname(__file__)), str(path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        told = [writer.stdout.readline() for _ in range(enough)]
        writer.send_signal(signal.SIGKILL)
        told += writer.stdout.readlines()
        writer.wait()
        store = TextStore(path, max_rows=1000000)
        kept = {line.stamp_ns for line in store.find(Query(max_lines=1000000))[0]}
        store.close()
        assert {int(line) for line in told if line.endswith("\n")} <= kept
        assert not list(tmp_path.glob("*.broken*"))


@pytest.mark.parametrize("damage", ["not a database", "page overwritten"])
def test_broken_file_is_named_and_set_aside_and_a_new_store_begins(tmp_path, damage):
    path = tmp_path / "memory.sqlite3"
    store = TextStore(path, max_rows=10_000)
    for number in range(300):
        store.add(replace(LINE, stamp_ns=number))
    store.close()
    if damage == "not a database":
        path.write_bytes(b"garbage " * 1000)
    else:
        content = bytearray(path.read_bytes())
        content[4096:20000] = b"\xaa" * (20000 - 4096)
        path.write_bytes(content)
    broken, said = path.read_bytes(), []
    store = TextStore(path, max_rows=10, say=said.append)
    assert len(store) == 0
    store.add(LINE)
    assert found(store) == [LINE.text]
    assert (tmp_path / "memory.sqlite3.broken-1").read_bytes() == broken
    assert str(path) in said[0]
    assert "broken-1" in said[0]
    assert store.num_set_aside == 1


def test_file_of_another_kind_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "other.sqlite3"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (name TEXT)")
    with pytest.raises(ConfigError, match="another kind"):
        TextStore(path, max_rows=10)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM people").fetchone() == (0,)


def test_folder_that_cannot_be_made_is_refused_by_name(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be opened"):
        TextStore(tmp_path / "file" / "memory.sqlite3", max_rows=10)


def test_lock_of_another_process_is_told_and_does_not_count_as_damage(tmp_path):
    path = tmp_path / "memory.sqlite3"
    store = TextStore(path, max_rows=10)
    other = sqlite3.connect(path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        store.add(LINE)
    other.rollback()
    store.add(LINE)
    assert len(store) == 1
    assert store.num_set_aside == 0


def spoil_index(path):
    """The index on received_ns does not hold what its table says; a quick check does not see it."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    changed = "replace(sql, 'received_ns', 'stamp_ns')"
    connection.execute(f"UPDATE sqlite_master SET sql = {changed} WHERE name = 'texts_by_received'")
    connection.commit()
    connection.close()


def spoilt(path):
    store = TextStore(path, max_rows=3)
    for number in range(3):
        store.add(replace(LINE, stamp_ns=number))
    store.close()
    spoil_index(path)
    return TextStore(path, max_rows=3)


def test_damage_that_only_an_insert_meets_is_damage_too(tmp_path):
    store = spoilt(tmp_path / "memory.sqlite3")
    assert store.num_set_aside == 0
    store.add(replace(LINE, text="new"))
    assert found(store) == ["new"]
    assert store.num_set_aside == 1


UNMOVABLE = "m" * 247
"""A name that SQLite can add to, and nobody else."""


def test_broken_file_that_cannot_be_set_aside_is_refused_by_name(tmp_path):
    (tmp_path / UNMOVABLE).write_bytes(b"garbage " * 1000)
    with pytest.raises(ConfigError, match="cannot be opened"):
        TextStore(tmp_path / UNMOVABLE, max_rows=10)


def test_store_that_broke_and_cannot_be_set_aside_is_told_and_tried_again(tmp_path):
    store = spoilt(tmp_path / UNMOVABLE)
    for _ in range(2):
        with pytest.raises(ConfigError, match="cannot be opened"):
            store.add(LINE)
    (tmp_path / UNMOVABLE).unlink()
    store.add(replace(LINE, text="new"))
    assert found(store) == ["new"]
