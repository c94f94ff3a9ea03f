"""What a bag holds: topics, stored messages, and records in the order of time. Knows no file format."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


@dataclass(frozen=True)
class Topic:
    """One topic of a bag.

    Attributes:
        type: as in "sensor_msgs/msg/Image".
        definition: text of the type and those it uses, as stored; empty if the bag has none.
        encoding: of the definition, "ros2msg" or "ros2idl".
        is_latched: its publisher kept the last message for late joiners; None: the bag does not say.
    """

    name: str
    type: str
    definition: str = ""
    encoding: str = ""
    is_latched: bool | None = None


class Stored(NamedTuple):
    """A message as it lies in a file; ``sequence`` is the file's own number, 0 if it keeps none."""

    log_ns: int
    topic: str
    sequence: int
    data: bytes


class Record(NamedTuple):
    """A message in its place in time. Sorted by time, then topic, then sequence, then place in the bag."""

    time_ns: int
    topic: str
    sequence: int
    file: int
    place: int
    log_ns: int
    data: bytes


class StorageFile(Protocol):
    """One file of a bag. ``faults`` and ``topics`` are complete once ``scan`` has ended."""

    topics: dict[int, Topic]
    faults: list[str]

    def scan(self) -> Iterator[tuple[Any, list[Stored]]]:
        """Every block with its messages, front to back; what is damaged is left out and named."""
        ...

    def load(self, block: Any, wanted: Collection[str]) -> list[Stored]:
        """Messages of one block on the wanted topics."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


def unique_name(topic: Topic, known: Collection[Topic]) -> str:
    """Name under which ``topic`` is kept: with its type behind it if the name is taken by another type."""
    is_taken = any(other.name == topic.name and other.type != topic.type for other in known)
    return f"{topic.name} ({topic.type})" if is_taken else topic.name
