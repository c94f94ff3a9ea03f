"""Writes bags: messages in CDR, as MCAP or sqlite3, with types and quality of service. One thread."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from rosbags.interfaces import Connection
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

from oxygen_ros.errors import ContractError
from oxygen_ros.replay.bag.message_types import MessageTypes
from oxygen_ros.replay.bag.qos import profile

STORAGES = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}
COMPRESSIONS = {
    "none": CompressionMode.NONE,
    "chunk": CompressionMode.STORAGE,
    "message": CompressionMode.MESSAGE,
    "file": CompressionMode.FILE,
}


class BagWriter:
    """A bag in a folder that did not exist before. What is written depends on the messages alone."""

    def __init__(
        self,
        path: Path,
        types: MessageTypes,
        *,
        storage: str = "mcap",
        compression: str = "none",
        custom: Mapping[str, str] | None = None,
    ) -> None:
        """Begin.

        Args:
            path: folder to make.
            types: of the messages.
            storage: "mcap" or "sqlite3".
            compression: "none", "chunk" (MCAP only), "message" or "file".
            custom: notes for the bag's metadata.

        Raises:
            ContractError: ``bag.exists``.
        """
        if path.exists():
            raise ContractError("bag.exists", f"{path} is there already", "another folder")
        self.types = types
        self._writer = Writer(path, version=9, storage_plugin=STORAGES[storage])
        self._writer.set_compression(COMPRESSIONS[compression], CompressionFormat.ZSTD)
        for key, value in (custom or {}).items():
            self._writer.set_custom_data(key, value)
        self._writer.open()
        self._connections: dict[str, Connection] = {}
        self.num_messages = 0

    def __enter__(self) -> BagWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add_topic(
        self,
        topic: str,
        message_type: str,
        *,
        latched: bool = False,
        reliable: bool = True,
        has_qos: bool = True,
    ) -> None:
        """Announce a topic; ``write`` does it by itself for topics without special quality of service."""
        offered = [profile(latched=latched, reliable=reliable)] if has_qos else []
        self._connections[topic] = self._writer.add_connection(
            topic, message_type, typestore=self.types.store, offered_qos_profiles=offered
        )

    def write(self, topic: str, message: Any, time_ns: int) -> None:
        """Write a message made by ``types``."""
        self.write_raw(topic, message.__msgtype__, self.types.write(message), time_ns)

    def write_raw(self, topic: str, message_type: str, data: bytes, time_ns: int) -> None:
        """Write a message that is CDR already."""
        if topic not in self._connections:
            self.add_topic(topic, message_type)
        self._writer.write(self._connections[topic], time_ns, data)
        self.num_messages += 1

    def close(self) -> None:
        """Write index and metadata. The bag is whole then. May be called again."""
        if self._writer.storage is not None:
            self._writer.close()
