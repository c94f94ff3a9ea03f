"""Remembers what the brain wrote: every ended text as a line in an SQLite file, found by time and words.

An example of a consumer to copy: see docs/consumers.md. Subscribed: the stream of pieces. Service: ~/query.
Published: /diagnostics.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from std_msgs.msg import Header

from oxygen_ros.errors import ConfigError, ContractError, OxygenError
from oxygen_ros.memory.growing_texts import GrowingTexts
from oxygen_ros.memory.line import Line, Query
from oxygen_ros.memory.settings import MemorySettings
from oxygen_ros.memory.text_store import TextStore
from oxygen_ros.msg import StoredText, TextDelta
from oxygen_ros.ros import qos
from oxygen_ros.ros.consumer_node import ConsumerNode, run_consumer
from oxygen_ros.ros.conversions import to_time
from oxygen_ros.ros.diagnostics import ERROR, OK, status
from oxygen_ros.ros.text_inlet import from_delta_message
from oxygen_ros.runtime.stamps import from_time
from oxygen_ros.srv import QueryMemory
from oxygen_ros.types import FinishReason

FILE_NAME = "oxygen_memory.sqlite3"
DEFAULT_TEXTS = 100
MAX_TEXTS = 1000


class MemoryNode(ConsumerNode):
    """Topics around a TextStore. A line is on the disk before the next message is looked at."""

    def __init__(self, name: str = "memory_node", **kwargs: Any) -> None:
        """See ``ConsumerNode``.

        Raises:
            ConfigError: if the store cannot be opened.
        """
        super().__init__(name, **kwargs)
        settings = self.settings(MemorySettings)
        self._tasks = settings.tasks
        self._growing = GrowingTexts()
        self._num_stored = 0
        self._failure = ""
        path = Path(settings.path).expanduser() if settings.path else default_path()
        log = self.get_logger()
        self._store = TextStore(path, settings.max_rows, settings.max_age_ns, log.error)
        log.info(f"{len(self._store)} texts in {path}")
        self.create_subscription(TextDelta, settings.text_stream, self._on_delta, qos.pieces())
        self.create_service(QueryMemory, "~/query", self._on_query)

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def health_line(self) -> DiagnosticStatus:
        """Whether lines can be stored, and how many were."""
        level, message = (ERROR, self._failure) if self._failure else (OK, "ready")
        values: dict[str, object] = {
            "path": self._store.path,
            "stored": self._num_stored,
            "growing": len(self._growing),
            "set_aside": self._store.num_set_aside,
        }
        values |= {f"refused_{kind}": count for kind, count in sorted(self.refusals.counts().items())}
        return status(f"{self.get_fully_qualified_name().strip('/')}: memory", level, message, values)

    def _on_delta(self, message: TextDelta) -> None:
        if self._tasks and message.task not in self._tasks:
            return
        try:
            line = self._growing.add(from_delta_message(message), self.now_ns())
        except ContractError as error:
            self.refusals.add(error.code, "text_stream", error.message)
            return
        if line is not None and line.text.strip():
            self._keep(line)

    def _keep(self, line: Line) -> None:
        try:
            self._store.add(line)
        except (ConfigError, sqlite3.Error) as error:
            self._failure = f"text {line.request_id} is lost: {error}"
            self.refusals.add("memory_failed", "store", self._failure)
            return
        self._num_stored += 1
        self._failure = ""

    def _on_query(self, request: QueryMemory.Request, response: QueryMemory.Response) -> QueryMemory.Response:
        try:
            lines, response.num_matching = self._store.find(to_query(request))
        except (OxygenError, sqlite3.Error) as error:
            response.message = str(error)
            return response
        response.texts = [to_stored_text(line) for line in lines]
        response.success = True
        response.message = f"{len(lines)} of {response.num_matching} matching texts"
        return response


def to_query(request: QueryMemory.Request) -> Query:
    """What is asked for.

    Raises:
        ContractError: if a finish reason is unknown.
    """
    try:
        reasons = tuple(FinishReason(reason) for reason in request.finish_reasons)
    except ValueError as error:
        raise ContractError("malformed_query", str(error)) from error
    return Query(
        begin_ns=from_time(request.begin) or None,
        end_ns=from_time(request.end) or None,
        words=tuple(request.words.split()),
        tasks=tuple(request.tasks),
        finish_reasons=reasons,
        max_lines=min(request.max_texts or DEFAULT_TEXTS, MAX_TEXTS),
    )


def to_stored_text(line: Line) -> StoredText:
    """One line as a message."""
    received: Time = to_time(line.received_ns)
    return StoredText(
        header=Header(stamp=to_time(line.stamp_ns)),
        received=received,
        task=line.task,
        kind=line.kind.value,
        request_id=line.request_id,
        text=line.text,
        finish_reason=line.finish_reason.value,
        is_whole=line.is_whole,
    )


def default_path() -> Path:
    """The file that is used when none is named."""
    home = os.environ.get("ROS_HOME", "")
    return (Path(home) if home else Path.home() / ".ros") / FILE_NAME


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the memory node until a signal ends it."""
    return run_consumer(lambda options: MemoryNode(arguments=options), arguments)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(main())
