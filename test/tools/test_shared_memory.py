"""Shared memory that killed processes leave behind, and ports that processes write to in vain."""

import fcntl
import subprocess
import sys
from contextlib import contextmanager

import pytest

from oxygen_ros.tools.examination import shared_memory
from oxygen_ros.tools.examination.findings import Level
from oxygen_ros.tools.examination.shared_memory import examine_shared_memory, lost_ports

SEGMENT = "fastrtps_0123456789abcdef"
PORT = "fastrtps_port7411"
KEEPS_IT_OPEN = """
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    view = mmap.mmap(file.fileno(), 0)
print("open", flush=True)
sys.stdin.read()
"""


@contextmanager
def process_with(path):
    """Another process that has mapped ``path``."""
    words = [sys.executable, "-c", KEEPS_IT_OPEN, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"open\n"
        yield process
        process.stdin.close()


def segment(folder, num_bytes=1000):
    (folder / SEGMENT).write_bytes(bytes(num_bytes))
    lock = folder / f"{SEGMENT}_el"
    lock.touch()
    return lock


def test_segment_of_a_living_process_is_none_left_behind(tmp_path):
    with segment(tmp_path).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert (
            "0 of 1 segments were left by dead processes" in examine_shared_memory(tmp_path).findings[0].text
        )
    assert "1 of 1 segments were left by dead processes" in examine_shared_memory(tmp_path).findings[0].text


@pytest.mark.parametrize(("capacity", "level"), [(10_000_000, Level.OK), (9_000, Level.WARNING)])
def test_segments_left_behind_are_warned_about_where_they_fill_the_memory(
    tmp_path, monkeypatch, capacity, level
):
    segment(tmp_path)
    monkeypatch.setattr(shared_memory, "_capacity", lambda _: capacity)
    section = examine_shared_memory(tmp_path)
    assert section.level is level
    assert level is Level.OK or section.findings[0].suggestion == "fastdds shm clean"


def test_process_that_writes_to_a_port_of_the_dead_is_named(tmp_path):
    (tmp_path / PORT).write_bytes(bytes(4096))
    with process_with(tmp_path / PORT) as process:
        assert lost_ports(tmp_path) == []
        (tmp_path / PORT).unlink()
        assert lost_ports(tmp_path) == [], "nobody has the port now"
        (tmp_path / PORT).write_bytes(bytes(4096))
        (lost,) = lost_ports(tmp_path)
        assert (lost.pid, lost.port) == (process.pid, PORT)
        warning = examine_shared_memory(tmp_path).findings[-1]
        assert (warning.code, warning.suggestion) == ("lost_port", "restart that process")
        assert f"process {process.pid} ({lost.program}) sends to {PORT}" in warning.text
    assert lost_ports(tmp_path) == []


def test_folder_and_proc_that_are_not_there_say_nothing(tmp_path):
    section = examine_shared_memory(tmp_path / "shm", tmp_path / "proc")
    assert section.level is Level.OK
    assert lost_ports(tmp_path / "shm", tmp_path / "proc") == []
