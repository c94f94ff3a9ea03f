"""Message types by name: those of ROS 2 Jazzy, our own, and what a bag brings with it."""

from __future__ import annotations

import struct
from typing import Any

from rosbags.serde import SerdeError
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.base import TypesysError

from oxygen_ros.errors import ContractError
from oxygen_ros.replay.bag.compression import PackedError, message_bytes
from oxygen_ros.replay.bag.definitions import DEFINITIONS
from oxygen_ros.replay.bag.record import Topic
from oxygen_ros.runtime.stamps import S

HEADER = "std_msgs/msg/Header"
_STAMP = {True: struct.Struct("<iI"), False: struct.Struct(">iI")}
_STAMP_END = 12


class MessageTypes:
    """Reads and writes messages in CDR. One bag's own types never reach another bag."""

    def __init__(self) -> None:
        self.store: Any = get_typestore(Stores.ROS2_JAZZY)
        for name, text in DEFINITIONS.items():
            self.store.register(get_types_from_msg(text, name))
        self._is_stamped: dict[str, bool] = {}

    def learn(self, topic: Topic) -> bool:
        """Take in the definition of a topic's type, if it brings one. Whether the type is known then."""
        if topic.type not in self.store.fielddefs and topic.definition:
            is_idl = topic.encoding == "ros2idl"
            try:
                found = (
                    get_types_from_idl(topic.definition)
                    if is_idl
                    else get_types_from_msg(topic.definition, topic.type)
                )
                new = {name: fields for name, fields in found.items() if name not in self.store.fielddefs}
                self.store.register(new)
            except (TypesysError, ValueError, KeyError):
                return False
        return topic.type in self.store.fielddefs

    def is_stamped(self, message_type: str) -> bool:
        """Whether messages of this type begin with a header."""
        if message_type not in self._is_stamped:
            fields = self.store.fielddefs.get(message_type, ((), ()))[1]
            first = fields[0][1] if fields else None
            self._is_stamped[message_type] = first is not None and first[1] == HEADER
        return self._is_stamped[message_type]

    @staticmethod
    def header_ns(data: bytes) -> int:
        """Stamp of a message that begins with a header; 0 if it has none, or cannot be unpacked."""
        try:
            head = message_bytes(data) if data[:1] == b"\x28" else data
        except PackedError:
            return 0
        if len(head) < _STAMP_END:
            return 0
        sec, nanosec = _STAMP[bool(head[1] & 1)].unpack_from(head, 4)
        return max(int(sec) * S + int(nanosec), 0)

    def read(self, message_type: str, data: bytes) -> Any:
        """The message in ``data``.

        Raises:
            ContractError: code ``bag.message``, if the bytes are no such message.
        """
        try:
            return self.store.deserialize_cdr(message_bytes(data), message_type)
        except (SerdeError, AssertionError, UnicodeDecodeError, PackedError) as error:
            detail = f"{len(data)} bytes are no {message_type} ({type(error).__name__}: {error})"
            raise ContractError("bag.message", detail) from error

    def write(self, message: Any) -> bytes:
        """``message`` in CDR."""
        return bytes(self.store.serialize_cdr(message, message.__msgtype__))

    def make(self, message_type: str, **fields: Any) -> Any:
        """A message of this type."""
        return self.store.types[message_type](**fields)
