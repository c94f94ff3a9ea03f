"""An sqlite3 file of rosbag2, of any schema version. Read-only; what comes before damage is read."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from oxygen_ros.replay.bag.qos import is_latched
from oxygen_ros.replay.bag.record import Stored, Topic, unique_name

MAGIC = b"SQLite format 3\x00"
MAX_BLOCK_BYTES = 1 << 20
MAX_BLOCK_MESSAGES = 512
_MESSAGES = "SELECT id, topic_id, timestamp, data FROM messages"


class Block(NamedTuple):
    """Messages whose numbers lie in this range."""

    first_id: int
    last_id: int


class SqliteFile:
    """A StorageFile."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.topics: dict[int, Topic] = {}
        self.faults: list[str] = []
        # Only a file with a write-ahead log beside it may have more to say than itself.
        has_log = path.with_name(path.name + "-wal").exists()
        flags = "mode=ro" if has_log else "mode=ro&immutable=1"
        self._connection = sqlite3.connect(f"file:{quote(str(path))}?{flags}", uri=True)
        # Without it sqlite refuses a file that was cut off, also what is whole in it. Nothing can be written.
        self._connection.execute("PRAGMA writable_schema = ON")
        self._connection.text_factory = lambda raw: raw.decode("utf-8", errors="replace")

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def scan(self) -> Iterator[tuple[Block, list[Stored]]]:
        """Every block with its messages, in the order of their numbers."""
        try:
            self._learn_topics()
        except sqlite3.DatabaseError as error:
            self.faults.append(f"{self.path.name}: no topics can be read ({error})")
            return
        num_messages, num_damaged, num_bytes, first_id, last_id = 0, 0, 0, 0, 0
        block: list[Stored] = []
        try:
            for number, topic_id, log_ns, data in self._connection.execute(f"{_MESSAGES} ORDER BY id"):
                if block and (num_bytes > MAX_BLOCK_BYTES or len(block) >= MAX_BLOCK_MESSAGES):
                    yield Block(first_id, last_id), block
                    block, num_bytes = [], 0
                first_id, last_id = (first_id if block else number), number
                if not (isinstance(log_ns, int) and isinstance(data, bytes)):
                    num_damaged += 1
                elif topic_id in self.topics:
                    block.append(Stored(log_ns, self.topics[topic_id].name, number, data))
                    num_messages += 1
                    num_bytes += len(data)
        except sqlite3.DatabaseError as error:
            self.faults.append(f"{self.path.name}: damaged after {num_messages} messages ({error})")
        if num_damaged:
            self.faults.append(f"{self.path.name}: {num_damaged} rows are no messages")
        if block:
            yield Block(first_id, last_id), block

    def load(self, block: Block, wanted: Collection[str]) -> list[Stored]:
        """Messages of one block on the wanted topics."""
        numbers = [str(number) for number, topic in self.topics.items() if topic.name in wanted]
        query = f"{_MESSAGES} WHERE id BETWEEN ? AND ? AND topic_id IN ({','.join(numbers)}) ORDER BY id"
        found = []
        with contextlib.suppress(sqlite3.DatabaseError):  # named by ``scan``: the last block ends at damage
            for number, topic_id, log_ns, data in self._connection.execute(query, block):
                if isinstance(log_ns, int) and isinstance(data, bytes):
                    found.append(Stored(log_ns, self.topics[topic_id].name, number, data))
        return found

    def _learn_topics(self) -> None:
        definitions = self._definitions()
        columns = self._columns("topics")
        offered = "offered_qos_profiles" if "offered_qos_profiles" in columns else "''"
        rows: list[tuple[Any, ...]] = self._connection.execute(
            f"SELECT id, name, type, {offered} FROM topics ORDER BY id"
        ).fetchall()
        for number, name, kind, qos in rows:
            if not (isinstance(name, str) and isinstance(kind, str)):
                self.faults.append(f"{self.path.name}: topic {number} is damaged")
                continue
            encoding, definition = definitions.get(kind, ("", ""))
            topic = Topic(name, kind, definition, encoding)
            key = unique_name(topic, self.topics.values())
            self.topics[number] = Topic(key, kind, definition, encoding, is_latched(qos))

    def _definitions(self) -> dict[str, tuple[str, str]]:
        if "encoded_message_definition" not in self._columns("message_definitions"):
            return {}
        rows = self._connection.execute(
            "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions"
        )
        return {kind: (encoding, text) for kind, encoding, text in rows if isinstance(text, str)}

    def _columns(self, table: str) -> set[str]:
        return {row[1] for row in self._connection.execute(f"PRAGMA table_info({table})")}
