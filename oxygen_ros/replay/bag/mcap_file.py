"""An MCAP file, whole or cut off: read record by record, without its index.

One way for all files: the index is missing exactly when a bag needs help. Source of the format: the MCAP
specification, mcap.dev/spec.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from oxygen_ros.replay.bag.compression import inflate
from oxygen_ros.replay.bag.qos import is_latched
from oxygen_ros.replay.bag.record import Stored, Topic, unique_name

MAGIC = b"\x89MCAP0\r\n"
MAX_RUN_BYTES = 1 << 20
_FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 2, 3, 4, 5, 6, 15
_KNOWN_OPCODES = 0x80
_HEAD = struct.Struct("<BQ")
_MESSAGE_HEAD = struct.Struct("<HIQQ")
_CHUNK_HEAD = struct.Struct("<QQQI")
_U16, _U32, _U64 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<Q")


class Block(NamedTuple):
    """Bytes of the file that hold records: the inside of a chunk, or a run of messages outside chunks."""

    offset: int
    length: int
    compression: str = ""
    inflated: int = 0
    checksum: int = 0
    is_cut: bool = False


class McapFile:
    """A StorageFile. Whatever comes before the first damage is read; damaged chunks are left out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.topics: dict[int, Topic] = {}
        self.faults: list[str] = []
        self._file = path.open("rb")
        self._size = path.stat().st_size
        self._schemas: dict[int, tuple[str, str, str]] = {}

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def scan(self) -> Iterator[tuple[Block, list[Stored]]]:
        """Every block with its messages, front to back."""
        num_messages = 0
        for block in self._blocks():
            messages, is_whole = self._read(block, None)
            num_messages += len(messages)
            yield block, messages
            if not is_whole and not block.is_cut:
                self.faults.append(f"{self.path.name}: chunk at byte {block.offset} is damaged")
        self._check_end(num_messages)

    def load(self, block: Block, wanted: Collection[str]) -> list[Stored]:
        """Messages of one block on the wanted topics."""
        return self._read(block, wanted)[0]

    def _check_end(self, num_messages: int) -> None:
        self._file.seek(max(0, self._size - len(MAGIC)))
        if self._size < 2 * len(MAGIC) or self._file.read() != MAGIC:
            self.faults.append(f"{self.path.name}: truncated after {num_messages} messages")

    def _blocks(self) -> Iterator[Block]:
        """Places of records up to the end of the data, or of what can be read."""
        at, run_start = len(MAGIC), None
        while True:
            self._file.seek(at)
            head = self._file.read(_HEAD.size)
            opcode, length = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
            end = at + _HEAD.size + length
            is_message = opcode == _MESSAGE and end <= self._size
            if run_start is not None and (not is_message or end - run_start > MAX_RUN_BYTES):
                yield Block(run_start, at - run_start)
                run_start = None
            if is_message:
                run_start = at if run_start is None else run_start
            elif opcode == _CHUNK and length > _CHUNK_HEAD.size:
                if (block := self._chunk(at + _HEAD.size, end)) is not None:
                    yield block
            elif opcode in (_SCHEMA, _CHANNEL) and end <= self._size:
                is_learnt = self._learn(opcode, self._file.read(length))
                self.faults += (
                    [] if is_learnt else [f"{self.path.name}: byte {at}: a damaged schema or channel"]
                )
            if opcode in (_DATA_END, _FOOTER) or end > self._size or len(head) < _HEAD.size:
                return
            if not 0 < opcode < _KNOWN_OPCODES:
                self.faults.append(f"{self.path.name}: byte {at} begins no record: what follows is left out")
                return
            at = end

    def _chunk(self, at: int, end: int) -> Block | None:
        """The inside of the chunk whose content lies from ``at`` to ``end``; None if its head is cut."""
        self._file.seek(at)
        head = self._file.read(_CHUNK_HEAD.size + _U32.size)
        if len(head) < _CHUNK_HEAD.size + _U32.size:
            return None
        inflated, checksum = _CHUNK_HEAD.unpack_from(head)[2:]
        (name_length,) = _U32.unpack_from(head, _CHUNK_HEAD.size)
        tail = self._file.read(name_length + _U64.size) if name_length < 64 else b""
        if len(tail) < name_length + _U64.size:
            return None
        offset = self._file.tell()
        length = min(_U64.unpack_from(tail, name_length)[0], end - offset, self._size - offset)
        compression = tail[:name_length].decode(errors="replace")
        return Block(offset, length, compression, inflated, checksum, end > self._size)

    def _read(self, block: Block, wanted: Collection[str] | None) -> tuple[list[Stored], bool]:
        """Messages of a block, and whether all of it could be read."""
        self._file.seek(block.offset)
        raw = self._file.read(block.length)
        content, is_sound = inflate(raw, block.compression, block.inflated, block.checksum, block.is_cut)
        found: list[Stored] = []
        at, size, are_learnt = 0, len(content), True
        while at + _HEAD.size <= size:
            opcode, length = _HEAD.unpack_from(content, at)
            start = at + _HEAD.size
            at = start + length
            if at > size:
                return found, False
            if opcode == _MESSAGE and length >= _MESSAGE_HEAD.size:
                channel, sequence, log_ns, _ = _MESSAGE_HEAD.unpack_from(content, start)
                topic = self.topics.get(channel)
                if topic is not None and (wanted is None or topic.name in wanted):
                    data = content[start + _MESSAGE_HEAD.size : at]
                    found.append(Stored(log_ns, topic.name, sequence, data))
            elif opcode in (_SCHEMA, _CHANNEL):
                are_learnt &= self._learn(opcode, content[start:at])
        return found, is_sound and are_learnt and at == size

    def _learn(self, opcode: int, content: bytes) -> bool:
        """Take in a schema or a channel; the first one of a number counts. False if it is damaged."""
        try:
            self._take_in(opcode, _Fields(content))
        except struct.error:
            return False
        return True

    def _take_in(self, opcode: int, reader: _Fields) -> None:
        number = reader.u16()
        if opcode == _SCHEMA:
            self._schemas.setdefault(number, (reader.text(), reader.text(), reader.text()))
        elif number not in self.topics:
            name, encoding, definition = self._schemas.get(reader.u16(), ("", "", ""))
            topic = Topic(reader.text(), name, definition, encoding)
            reader.text()
            qos = reader.texts().get("offered_qos_profiles", "")
            known = self.topics.values()
            self.topics[number] = Topic(
                unique_name(topic, known), name, definition, encoding, is_latched(qos)
            )


class _Fields:
    """Reads the fields of one record in order."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def u16(self) -> int:
        self._at += 2
        return int(_U16.unpack_from(self._content, self._at - 2)[0])

    def text(self) -> str:
        (length,) = _U32.unpack_from(self._content, self._at)
        start = self._at + _U32.size
        self._at = start + length
        return self._content[start : self._at].decode("utf-8", errors="replace")

    def texts(self) -> dict[str, str]:
        (length,) = _U32.unpack_from(self._content, self._at)
        end = self._at + _U32.size + length
        self._at += _U32.size
        found = {}
        while self._at < end:
            key = self.text()
            found[key] = self.text()
        return found
