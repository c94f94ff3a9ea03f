"""Lines in an SQLite file. A line that ``add`` has returned from is on the disk, whatever dies next.

Write-ahead log with synchronous FULL: one transaction and one sync per line. One thread at a time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from oxygen_ros.errors import ConfigError
from oxygen_ros.memory.line import Line, Query
from oxygen_ros.types import FinishReason, TextKind

VERSION = 1
BUSY_S = 1.0
CACHE_KIB = 256
"""Pages that SQLite keeps; with its 2000 KiB the process would grow by them during its first hour."""
BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
COLUMNS = "stamp_ns, received_ns, task, kind, request_id, text, finish_reason, is_whole"
SCHEMA = f"""
CREATE TABLE texts (
    id INTEGER PRIMARY KEY AUTOINCREMENT, stamp_ns INTEGER NOT NULL, received_ns INTEGER NOT NULL,
    task TEXT NOT NULL, kind INTEGER NOT NULL, request_id TEXT NOT NULL, text TEXT NOT NULL,
    finish_reason INTEGER NOT NULL, is_whole INTEGER NOT NULL, folded TEXT NOT NULL);
CREATE INDEX texts_by_stamp ON texts (stamp_ns);
CREATE INDEX texts_by_received ON texts (received_ns);
PRAGMA user_version = {VERSION};
"""


class TextStore:
    """At most ``max_rows`` lines, none older than ``max_age_ns``. A broken file is set aside, not deleted."""

    def __init__(
        self, path: Path, max_rows: int, max_age_ns: int = 0, say: Callable[[str], None] = lambda _: None
    ) -> None:
        """Open or make the file; ``say`` takes a line for people when a broken one was set aside.

        Raises:
            ConfigError: if the file cannot be opened or is something else.
        """
        self.path = path
        self.num_set_aside = 0
        self._max_rows = max_rows
        self._max_age_ns = max_age_ns
        self._say = say
        self._connection: sqlite3.Connection | None = self._open()

    def add(self, line: Line) -> None:
        """Store ``line`` for good, and let go of what is too old or too much.

        Raises:
            sqlite3.Error: if it cannot be stored: no space, no permission, locked by another process.
            ConfigError: if the file broke and none can be opened in its place. The next call tries again.
        """
        try:
            self._insert(line)
        except sqlite3.DatabaseError as error:
            if not is_broken(error):
                raise
            self.close()
            self._set_aside(str(error))
            self._insert(line)

    def find(self, query: Query) -> tuple[list[Line], int]:
        """The newest matching lines, newest first, and how many match.

        Raises:
            sqlite3.Error: if the file cannot be read.
            ConfigError: if it cannot be opened.
        """
        where, values = conditions(query)
        connection = self._opened()
        (num_matching,) = connection.execute(f"SELECT count(*) FROM texts {where}", values).fetchone()
        rows = connection.execute(
            f"SELECT {COLUMNS} FROM texts {where} ORDER BY stamp_ns DESC, id DESC LIMIT ?",
            (*values, query.max_lines),
        )
        return [_line(row) for row in rows], num_matching

    def __len__(self) -> int:
        (count,) = self._opened().execute("SELECT count(*) FROM texts").fetchone()
        return int(count)

    def close(self) -> None:
        """Fold the log into the file and let go of it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _insert(self, line: Line) -> None:
        values = (
            *(line.stamp_ns, line.received_ns, line.task, line.kind.value, line.request_id, line.text),
            *(line.finish_reason.value, line.is_whole, line.text.casefold()),
        )
        with self._opened() as connection:
            marks = ", ".join("?" * len(values))
            made = connection.execute(f"INSERT INTO texts ({COLUMNS}, folded) VALUES ({marks})", values)
            connection.execute("DELETE FROM texts WHERE id <= ?", ((made.lastrowid or 0) - self._max_rows,))
            if self._max_age_ns:
                oldest_ns = line.received_ns - self._max_age_ns
                connection.execute("DELETE FROM texts WHERE received_ns < ?", (oldest_ns,))

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                return self._connect()
            except sqlite3.DatabaseError as error:
                if not is_broken(error):
                    raise
                self._set_aside(str(error))
            return self._connect()
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_S, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                broken = sqlite3.DatabaseError(verdict)
                broken.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
                raise broken
            self._check_version(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_version(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (num_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version == 0 and num_tables == 0:
            connection.executescript(f"BEGIN;{SCHEMA}COMMIT;")
        elif version != VERSION:
            raise ConfigError(
                "not_a_memory",
                f"{self.path} is a database of another kind (version {version}, wanted {VERSION})",
                "another path",
            )

    def _set_aside(self, reason: str) -> None:
        number = 1
        try:
            while (aside := self.path.with_name(f"{self.path.name}.broken-{number}")).exists():
                number += 1
            for suffix in ("", "-wal", "-shm"):
                part = self.path.with_name(self.path.name + suffix)
                if part.exists():
                    part.rename(aside.with_name(aside.name + suffix))
        except OSError as error:
            raise self._unusable(error) from error
        self.num_set_aside += 1
        self._say(f"{self.path} is broken ({reason}); it is kept as {aside}, and a new store begins")

    def _unusable(self, error: Exception) -> ConfigError:
        return ConfigError(
            "memory_path", f"{self.path} cannot be opened: {error}", "a folder that can be written to"
        )


def is_broken(error: sqlite3.Error) -> bool:
    """True if the file is damaged or no database at all; False for lack of space, locks and the like."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in BROKEN  # the higher bits say which part of it


def conditions(query: Query) -> tuple[str, list[object]]:
    """The WHERE clause of ``query`` and its values."""
    parts: list[str] = []
    values: list[object] = []
    for condition, bound in (("stamp_ns >= ?", query.begin_ns), ("stamp_ns <= ?", query.end_ns)):
        if bound is not None:
            parts.append(condition)
            values.append(bound)
    for word in query.words:
        parts.append("instr(folded, ?) > 0")
        values.append(word.casefold())
    for column, allowed in (
        ("task", query.tasks),
        ("finish_reason", tuple(reason.value for reason in query.finish_reasons)),
    ):
        if allowed:
            parts.append(f"{column} IN ({', '.join('?' * len(allowed))})")
            values.extend(allowed)
    return (f"WHERE {' AND '.join(parts)}" if parts else ""), values


def _line(row: tuple[int, int, str, int, str, str, int, int]) -> Line:
    stamp_ns, received_ns, task, kind, request_id, text, reason, is_whole = row
    return Line(
        *(stamp_ns, received_ns, task, TextKind(kind), request_id, text, FinishReason(reason)),
        is_whole=bool(is_whole),
    )
