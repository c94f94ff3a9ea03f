"""Shared memory of Fast DDS: what killed processes left in it, and senders that a restarted node cannot hear.

Fast DDS (2.14, ROS 2 Jazzy) gives each participant a segment and each listener a port, files in /dev/shm, and
marks the living by file locks. After SIGKILL the segment stays, and now and then a sender goes on writing to
the port of the dead, whose name belongs to the restarted node by then (Fast DDS pull requests 4728 and 4737).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from oxygen_ros.tools.examination.findings import Section

FOLDER = Path("/dev/shm")
PROC = Path("/proc")
MAX_DEAD_SHARE = 0.1
"""Of the file system: more than this held by dead processes is worth a warning."""
_SEGMENT = re.compile(r"(fastrtps|fastdds)_[0-9a-f]{16}")
_INODE = re.compile(r"\b[0-9a-f]+:[0-9a-f]+:(\d+)\b")
_LOST_PORT = re.compile(r"/((?:fastrtps|fastdds)_port\d+) \(deleted\)$")


@dataclass(frozen=True)
class LostPort:
    """A port that a process has open although its name belongs to another file now."""

    pid: int
    program: str
    port: str


def examine_shared_memory(folder: Path = FOLDER, proc: Path = PROC) -> Section:
    """What Fast DDS has in ``folder``; ``proc`` tells of locks and processes."""
    section = Section("shared memory of Fast DDS")
    segments = [path for path in _files(folder) if _SEGMENT.fullmatch(path.name)]
    locked = _locked_inodes(proc)
    dead = [path for path in segments if not _is_held(path, locked)]
    num_bytes, total = sum(_size(path) for path in dead), _capacity(folder)
    left = f"{len(dead)} of {len(segments)} segments were left by dead processes, {num_bytes / 1e6:.0f} MB"
    if num_bytes > MAX_DEAD_SHARE * total:
        section.warn(
            f"{left} of {total / 1e6:.0f} MB in {folder}: where it is full, no message gets through",
            code="dead_segments",
            suggestion="fastdds shm clean",
            num_bytes=num_bytes,
        )
    else:
        section.fact(left, num_bytes=num_bytes)
    for lost in lost_ports(folder, proc):
        section.warn(
            f"process {lost.pid} ({lost.program}) sends to {lost.port} of a process that was killed: "
            "the node that has this port now does not hear it",
            code="lost_port",
            suggestion="restart that process",
            pid=lost.pid,
        )
    return section


def lost_ports(folder: Path = FOLDER, proc: Path = PROC) -> list[LostPort]:
    """Ports that processes write to in vain, as far as their maps may be read."""
    found = []
    for maps in sorted(proc.glob("[0-9]*/maps"), key=lambda path: int(path.parent.name)):
        names = {match[1] for match in map(_LOST_PORT.search, _lines(maps)) if match}
        lost = sorted(name for name in names if (folder / name).exists())
        pid, program = int(maps.parent.name), _program(maps.parent)
        found += [LostPort(pid, program, name) for name in lost]
    return found


def _files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _lines(path: Path) -> Iterator[str]:
    """Lines of a file of /proc; none if it may not be read or its process has ended."""
    try:
        yield from path.read_text(errors="replace").splitlines()
    except OSError:
        return


def _locked_inodes(proc: Path) -> frozenset[int]:
    return frozenset(int(match[1]) for match in map(_INODE.search, _lines(proc / "locks")) if match)


def _is_held(segment: Path, locked: frozenset[int]) -> bool:
    try:
        return segment.with_name(f"{segment.name}_el").stat().st_ino in locked
    except OSError:
        return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _capacity(folder: Path) -> int:
    if not folder.is_dir():
        return 0
    held = os.statvfs(folder)
    return held.f_blocks * held.f_frsize


def _program(process: Path) -> str:
    words = next(_lines(process / "cmdline"), "").split("\0")
    return " ".join(word for word in words[:3] if word) or "?"
