"""Writes the messages of a demonstration to a bag, as they came. One thread.

While it grows it is the folder RUN/run.partial; ``close`` makes RUN/run.mcap and RUN/metadata.yaml of it, so
that the run folder is a bag that ROS can play.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.clock import Clock

from oxygen_ros.replay.bag.message_types import MessageTypes
from oxygen_ros.replay.bag.writer import BagWriter

_Message = tuple[str, str, bytes, int]
BAG, PARTIAL, METADATA = "run.mcap", "run.partial", "metadata.yaml"
MAX_NS = 600 * 1_000_000_000
"""A run without end is recorded for so long: about 10 MB a minute."""
BEFORE_NS = 1_000_000_000


class RunRecorder:
    """A bag in a run folder."""

    def __init__(self, folder: Path, **notes: str) -> None:
        """Begin; ``notes`` go into the bag's metadata.

        Raises:
            OSError: if the folder cannot be made.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._begin_ns = 0
        self._before: deque[_Message] = deque()
        self._latched: dict[str, _Message] = {}
        self.is_full = False
        custom = {f"oxygen_ros.{key}": value for key, value in notes.items()}
        self._writer = BagWriter(folder / PARTIAL, MessageTypes(), custom=custom)

    def begin(self, now_ns: int) -> None:
        """From here on everything is kept, and what came in the second before."""
        if not self._begin_ns:
            self._begin_ns = now_ns
            self._flush()

    def write(
        self, topic: str, message_type: Any, data: bytes, now_ns: int, *, is_latched: bool = False
    ) -> None:
        """One message in CDR, of the class ``message_type``, at ROS time.

        Of a latched topic the newest message is kept, as one that subscribes later would get it.
        """
        package, kind = message_type.__module__.partition(".")[0], message_type.__name__
        message = (topic, f"{package}/msg/{kind}", data, now_ns)
        if self._begin_ns and now_ns - self._begin_ns > MAX_NS:
            self.is_full = True
        elif self._begin_ns:
            self._writer.write_raw(*message)
        elif is_latched:
            self._latched[topic] = message
        else:
            self._before.append(message)
            while now_ns - self._before[0][-1] > BEFORE_NS:
                self._before.popleft()

    def close(self) -> None:
        """Finish the bag and give it its name."""
        self._flush()
        self._writer.close()
        partial = self._folder / PARTIAL
        (partial / f"{PARTIAL}.mcap").rename(self._folder / BAG)
        text = (partial / METADATA).read_text(encoding="utf-8").replace(f"{PARTIAL}.mcap", BAG)
        (self._folder / METADATA).write_text(text, encoding="utf-8")
        (partial / METADATA).unlink()
        partial.rmdir()

    def _flush(self) -> None:
        before_ns = self._before[0][-1] - 1 if self._before else 0
        for topic, kind, data, at_ns in self._latched.values():
            self._writer.write_raw(topic, kind, data, max(at_ns, before_ns))
        for message in self._before:
            self._writer.write_raw(*message)
        self._latched.clear()
        self._before.clear()


def new_run_folder() -> Path:
    """A name under ``runs`` that is not taken, by the time of day (UTC)."""
    now = np.datetime64(Clock().now().nanoseconds // 1_000_000_000, "s")
    base = Path("runs") / str(now).replace("-", "").replace(":", "")
    number, path = 1, base
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}_{number}")
    return path
