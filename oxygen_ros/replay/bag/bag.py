"""One bag: a folder with its files, or a single file. Looked through once, then read in the order of time."""

from __future__ import annotations

import enum
import heapq
import shutil
import tempfile
from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from oxygen_ros.errors import ContractError
from oxygen_ros.replay.bag.files import find_files, open_file
from oxygen_ros.replay.bag.message_types import MessageTypes
from oxygen_ros.replay.bag.record import Record, StorageFile, Stored, Topic
from oxygen_ros.replay.bag.survey import TopicSurvey, clock_notes
from oxygen_ros.runtime.stamps import S

LONG_GAP_NS = 3600 * S
"""Nobody records silence for so long: a clock was set, or a stamp is wrong."""


class TimeUse(enum.Enum):
    """Which time orders the messages. Values equal the option's."""

    LOG = "log"
    """When the recorder got them: the order a node saw."""
    HEADER = "header"
    """The stamp of the header; messages without one keep their place among the others."""


class _Block(NamedTuple):
    first_log_ns: int
    first_header_ns: int | None
    first_unstamped_ns: int | None
    file: int
    place: int
    inside: Any


class Bag:
    """Open it with ``with``. Memory does not grow with its length: one block per overlap is held.

    Attributes:
        topics, surveys: by topic name.
        faults: damage, one sentence each: what was left out and where.
        notes: what is odd but harms nothing.
        num_messages: that can be read.
    """

    def __init__(self, path: Path) -> None:
        """Look through all files.

        Raises:
            ContractError: ``bag.missing``, ``bag.empty``, ``bag.format``: nothing can be read.
        """
        self.path = path
        self.name = path.name
        self.types = MessageTypes()
        self.topics: dict[str, Topic] = {}
        self.surveys: dict[str, TopicSurvey] = {}
        self.faults: list[str] = []
        self.notes: list[str] = []
        self.num_messages = 0
        self._folder = Path(tempfile.mkdtemp(prefix="oxygen_bag_"))
        self._files: list[StorageFile] = []
        self._blocks: list[_Block] = []
        try:
            self._look_through()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Bag:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of all files."""
        for file in self._files:
            file.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def span_ns(self, order: TimeUse, topics: Collection[str]) -> tuple[int, int]:
        """First and last time of the messages on ``topics``, in the time that orders them."""
        surveys = [self.surveys[name] for name in topics if self.surveys[name].num_messages]
        if order is TimeUse.LOG:
            return min(s.first_ns for s in surveys), max(s.last_ns for s in surveys)
        offset_ns = self.clock_offset_ns()
        spans = [s.header_span_ns or (s.first_ns - offset_ns, s.last_ns - offset_ns) for s in surveys]
        return max(0, min(first for first, _ in spans)), max(0, *(last for _, last in spans))

    def long_gap_ns(
        self, order: TimeUse, topics: Collection[str], first_ns: int, last_ns: int
    ) -> tuple[int, int] | None:
        """Times of the messages before and after the first stretch of hours without any, if there is one."""
        offset_ns = self.clock_offset_ns()
        begins = (self._first_ns(block, order, offset_ns) for block in self._blocks)
        times = sorted({first_ns, last_ns, *(at for at in begins if first_ns < at < last_ns)})
        if all(after - before <= LONG_GAP_NS for before, after in pairwise(times)):
            return None
        told = (record.time_ns for record in self.records(topics, order, first_ns, last_ns))
        pairs = pairwise(told)
        return next((pair for pair in pairs if pair[1] - pair[0] > LONG_GAP_NS), None)

    def records(
        self,
        wanted: Collection[str],
        order: TimeUse = TimeUse.LOG,
        from_ns: int | None = None,
        to_ns: int | None = None,
    ) -> Iterator[Record]:
        """Messages on the wanted topics in the order of time, ties by topic, sequence and place."""
        offset_ns = self.clock_offset_ns()
        pending = [(self._first_ns(block, order, offset_ns), block) for block in self._blocks]
        pending.sort(key=lambda entry: (entry[0], entry[1].file, entry[1].place), reverse=True)
        heap: list[Record] = []
        while heap or pending:
            while pending and (not heap or pending[-1][0] <= heap[0].time_ns):
                _, block = pending.pop()
                for record in self._load(block, wanted, order, offset_ns):
                    heapq.heappush(heap, record)
            if not heap:
                continue
            record = heapq.heappop(heap)
            if to_ns is not None and record.time_ns > to_ns:
                return
            if from_ns is None or record.time_ns >= from_ns:
                yield record

    def clock_offset_ns(self) -> int:
        """Log time minus header time for messages without a stamp: the median of the topics that have one."""
        offsets = sorted(o for s in self.surveys.values() if (o := s.header_offset_ns) is not None)
        return offsets[len(offsets) // 2] if offsets else 0

    def last_before(self, topic: str, time_ns: int, order: TimeUse) -> Record | None:
        """Newest message of ``topic`` before ``time_ns``."""
        found = None
        for record in self.records((topic,), order, to_ns=time_ns - 1):
            found = record
        return found

    def _look_through(self) -> None:
        paths, notes = find_files(self.path)
        self.notes += notes
        for path in paths:
            file, faults = open_file(path, self._folder)
            self.faults += faults
            if file is None:
                continue
            self._files.append(file)
            self._scan(len(self._files) - 1, file)
            self.faults += file.faults
        if not self.num_messages:
            reason = "; ".join(self.faults) or "it holds no message"
            raise ContractError("bag.empty", f"nothing can be read from {self.name}: {reason}")
        disorder = {n: s.num_disordered for n, s in sorted(self.surveys.items()) if s.num_disordered}
        if disorder:
            shown = ", ".join(f"{name}: {count}" for name, count in disorder.items())
            self.notes.append(f"messages lie out of the order of time in the file and were sorted: {shown}")
        self.notes += clock_notes(self.surveys)

    def _scan(self, number: int, file: StorageFile) -> None:
        for place, (inside, messages) in enumerate(file.scan()):
            for topic in file.topics.values():
                if topic.name not in self.topics:
                    self.topics[topic.name] = topic
                    self.surveys[topic.name] = TopicSurvey()
                    self.types.learn(topic)
            if not messages:
                continue
            self.num_messages += len(messages)
            stamps = [self._header_ns(message) for message in messages]
            for message, header_ns in zip(messages, stamps, strict=True):
                self.surveys[message.topic].note(message.log_ns, header_ns)
            unstamped = [m.log_ns for m, stamp in zip(messages, stamps, strict=True) if not stamp]
            first_log_ns = min(message.log_ns for message in messages)
            first_header_ns = min((stamp for stamp in stamps if stamp), default=None)
            first_unstamped_ns = min(unstamped, default=None)
            self._blocks.append(
                _Block(first_log_ns, first_header_ns, first_unstamped_ns, number, place, inside)
            )

    def _header_ns(self, message: Stored) -> int:
        is_stamped = self.types.is_stamped(self.topics[message.topic].type)
        return self.types.header_ns(message.data) if is_stamped else 0

    @staticmethod
    def _first_ns(block: _Block, order: TimeUse, offset_ns: int) -> int:
        if order is TimeUse.LOG:
            return block.first_log_ns
        times = []
        if block.first_header_ns is not None:
            times.append(block.first_header_ns)
        if block.first_unstamped_ns is not None:
            times.append(max(0, block.first_unstamped_ns - offset_ns))
        return min(times)

    def _load(
        self, block: _Block, wanted: Collection[str], order: TimeUse, offset_ns: int
    ) -> Iterator[Record]:
        for index, stored in enumerate(self._files[block.file].load(block.inside, wanted)):
            time_ns = stored.log_ns
            if order is TimeUse.HEADER:
                time_ns = self._header_ns(stored) or max(0, stored.log_ns - offset_ns)
            place = (block.place << 32) + index
            yield Record(
                time_ns, stored.topic, stored.sequence, block.file, place, stored.log_ns, stored.data
            )
