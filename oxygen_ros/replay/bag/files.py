"""Which files make up a bag, and what each one is: told by its first bytes, never by what metadata claims."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import yaml

from oxygen_ros.errors import ContractError
from oxygen_ros.replay.bag import compression, mcap_file, sqlite_file
from oxygen_ros.replay.bag.mcap_file import McapFile
from oxygen_ros.replay.bag.record import StorageFile
from oxygen_ros.replay.bag.sqlite_file import SqliteFile

METADATA = "metadata.yaml"
SUFFIXES = (".mcap", ".db3", ".mcap.zstd", ".db3.zstd")


def is_bag(path: Path) -> bool:
    """Whether ``path`` is a bag's file, or a folder that directly holds some."""
    return bool(storage_files(path)) if path.is_dir() else path.name.endswith(SUFFIXES)


def storage_files(folder: Path) -> list[Path]:
    """Storage files in ``folder``, part 2 before part 10."""
    found = [path for path in folder.iterdir() if path.name.endswith(SUFFIXES) and path.is_file()]
    return sorted(found, key=lambda path: [int(n) if n else w for w, n in _pieces(path.name)])


def find_files(path: Path) -> tuple[list[Path], list[str]]:
    """Files of a bag in order, and notes on its metadata.

    Raises:
        ContractError: ``bag.missing``, if there is no bag.
    """
    if not path.exists():
        raise ContractError("bag.missing", f"there is no {path}")
    if path.is_file():
        return [path], []
    found = storage_files(path)
    notes: list[str] = []
    if not (path / METADATA).exists():
        notes.append(f"{METADATA} is missing: all storage files of the folder are read")
        named: list[str] = []
    else:
        named = _named_files(path / METADATA, notes)
    if lost := [name for name in named if not (path / name).exists()]:
        notes.append(f"{METADATA} names files that are not there: {', '.join(lost)}")
    if not found:
        raise ContractError("bag.missing", f"{path} holds no {' or '.join(SUFFIXES[:2])} file")
    return found, notes


def open_file(path: Path, folder: Path) -> tuple[StorageFile | None, list[str]]:
    """A storage file, told by its first bytes, and its faults; ``folder`` takes what must be unpacked."""
    faults: list[str] = []
    if _head(path).startswith(compression.ZSTD_MAGIC):
        path, is_whole = compression.unpack_file(path, folder)
        if not is_whole:
            faults.append(f"{path.name}: the compressed file is damaged or truncated")
    head = _head(path)
    try:
        if head.startswith(mcap_file.MAGIC):
            return McapFile(path), faults
        if head.startswith(sqlite_file.MAGIC):
            return SqliteFile(path), faults
    except sqlite3.DatabaseError as error:
        return None, [*faults, f"{path.name}: {error}"]
    what = f"begins with {head[:8]!r}, neither MCAP nor sqlite3" if head else "is empty (0 bytes)"
    return None, [*faults, f"{path.name} {what}"]


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(16)


def _pieces(name: str) -> list[tuple[str, str]]:
    return re.findall(r"(\D+)|(\d+)", name)


def _named_files(path: Path, notes: list[str]) -> list[str]:
    """File names that metadata gives; what is wrong with it is noted."""
    try:
        information = yaml.safe_load(path.read_text(encoding="utf-8", errors="replace"))
        information = information["rosbag2_bagfile_information"]
        names = [Path(str(name)).name for name in information["relative_file_paths"]]
    except (yaml.YAMLError, KeyError, TypeError):
        notes.append(f"{METADATA} cannot be read: it is passed over")
        return []
    if not information.get("storage_identifier"):
        notes.append(f"{METADATA} does not name the storage: told by the files' first bytes")
    return names
