"""Records a run of the brain as a bag: its inputs as they came, its cycles, what it gave. For replay.

The nodes' threads only note; a thread of its own serialises and writes. What is noted while the disk cannot
keep up, or once it has failed, is dropped and counted. Stamps are steady time laid on ROS time: in the bag,
events keep their order.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rclpy.serialization import serialize_message

from oxygen_ros.config import OxygenConfig
from oxygen_ros.replay.bag.message_types import MessageTypes
from oxygen_ros.replay.bag.writer import BagWriter
from oxygen_ros.replay.messages import MessageMaker
from oxygen_ros.replay.recorded_delays import NotedDelays
from oxygen_ros.replay.recorded_steps import NotedSteps
from oxygen_ros.replay.recording import (
    DECODED,
    HALT,
    RESET,
    RecordedCycle,
    begin_line,
    cycle_line,
    event_line,
)
from oxygen_ros.replay.topics import BRAIN, RECORDING, STRING
from oxygen_ros.ros.managed_node import ManagedNode
from oxygen_ros.runtime.digest import observation_digest
from oxygen_ros.runtime.mailbox import Mailbox
from oxygen_ros.runtime.ports import NotReady, ReportSink, TextSink
from oxygen_ros.types import ActionChunk, CycleReport, Observation, TextDelta

MAX_NOTED = 512
WRITTEN_WITHIN_S = 10.0


class Recorder:
    """A bag that grows while the node lives. All methods may be called from any thread."""

    def __init__(self, node: ManagedNode, config: OxygenConfig) -> None:
        """Begin a new bag in ``record_dir``."""
        self._node = node
        self._config = config
        self._namespace = node.get_namespace().strip("/")
        self._types = MessageTypes()
        self._make = MessageMaker(self._types)
        self._base_ns = node.now_ns() - node.steady.now_ns()
        self._lock = threading.Lock()
        self._last_ns = 0
        self._due_ns = self._cycle_id = 0
        self.num_dropped = 0
        self.delays = NotedDelays()
        self.path = self._new_path()
        self._writer = BagWriter(
            self.path, self._types, custom={"oxygen_ros.recorded_by": node.get_fully_qualified_name()}
        )
        self._notes: queue.Queue[tuple[str, int, Callable[[], tuple[str, bytes]]] | None]
        self._notes = queue.Queue(MAX_NOTED)
        self._writer.add_topic(self.topic(config.topics.instruction), STRING, latched=True)
        self._thread = threading.Thread(target=self._write, name="recorder", daemon=True)
        self._thread.start()
        self.line(begin_line(config))
        node.get_logger().info(f"Recording to {self.path}")

    def now_ns(self) -> int:
        """Time of an event, later than that of every event before."""
        with self._lock:
            self._last_ns = max(self._last_ns + 1, self._base_ns + self._node.steady.now_ns())
            return self._last_ns

    def topic(self, name: str) -> str:
        """Name in the bag: as configured, whatever it is remapped to here."""
        if name.startswith("/"):
            return name
        return "/".join(["", *filter(None, (self._namespace, name.replace("~", BRAIN, 1)))])

    def line(self, text: str, at_ns: int | None = None) -> None:
        """One line about the run itself."""
        self.make_later(RECORDING, lambda: self._make.text(text), at_ns)

    def begin_cycle(self, cycle_id: int, due_ns: int) -> None:
        """A cycle that was due at this steady time begins. Control thread."""
        self._cycle_id, self._due_ns = cycle_id, self._base_ns + due_ns

    def end_cycle(self, steps: object) -> None:
        """A cycle has ended; ``steps`` is the engine's rule for decode steps. Control thread."""
        if isinstance(steps, NotedSteps):
            self.line(
                event_line(DECODED, cycle=self._cycle_id, steps=steps.take(), delays=self.delays.take())
            )

    def end_take(self, begin_ns: int, taken: Observation | NotReady) -> None:
        """The cycle has taken its inputs. Control thread."""
        cycle_id, due_ns = self._cycle_id, self._due_ns

        def written() -> Any:
            if isinstance(taken, NotReady):
                return self._make.text(cycle_line(RecordedCycle(cycle_id, due_ns, begin_ns)))
            digest, played = observation_digest(taken), taken.actions_played
            cycle = RecordedCycle(cycle_id, due_ns, begin_ns, taken.observation_id, digest, played)
            return self._make.text(cycle_line(cycle))

        self.make_later(RECORDING, written, begin_ns)

    def message_later(self, topic: str, message: Any, message_type: str) -> None:
        """Write a ROS message; it must not change any more."""
        self._note(topic, self.now_ns(), lambda: (message_type, serialize_message(message)))

    def make_later(self, topic: str, make: Callable[[], Any], at_ns: int | None = None) -> None:
        """Write what ``make`` gives, a message of the recorder's own types."""

        def written() -> tuple[str, bytes]:
            message = make()
            return message.__msgtype__, self._types.write(message)

        self._note(topic, at_ns or self.now_ns(), written)

    def chunk(self, chunk: ActionChunk) -> None:
        """A chunk that got out."""
        self.make_later(self._config.topics.action_chunk, lambda: self._make.chunk(chunk))

    def texts(self, sink: TextSink) -> TextSink:
        """``sink``, with its texts written down."""
        return _Texts(self, sink, self._config.topics.text_stream)

    def reports(self, sink: ReportSink) -> ReportSink:
        """``sink``, with its reports written down."""
        return _Reports(self, sink, self._config.topics.cycle_report)

    @property
    def make(self) -> MessageMaker:
        """Makes messages for ``make_later``."""
        return self._make

    def close(self) -> None:
        """Write what is noted and finish the bag."""
        self._notes.put(None)
        self._thread.join(WRITTEN_WITHIN_S)
        dropped = f", {self.num_dropped} messages dropped" if self.num_dropped else ""
        self._node.get_logger().info(f"Recorded {self._writer.num_messages} messages{dropped}: {self.path}")

    def _note(self, topic: str, at_ns: int, written: Callable[[], tuple[str, bytes]]) -> None:
        try:
            self._notes.put_nowait((self.topic(topic), at_ns, written))
        except queue.Full:
            self.num_dropped += 1
            self._node.refusals.add("record_dropped", topic, "the disk does not keep up")

    def _write(self) -> None:
        try:
            while (note := self._notes.get()) is not None:
                topic, at_ns, written = note
                message_type, data = written()
                self._writer.write_raw(topic, message_type, data, at_ns)
            self._writer.close()
        # The thread's own boundary: a full disk, for one, ends the recording and nothing else.
        except Exception as error:
            detail = f"nothing more is recorded: {type(error).__name__}: {error}"
            self._node.refusals.add("record_failed", str(self.path), detail)
            while note is not None and (note := self._notes.get()) is not None:
                self.num_dropped += 1

    def _new_path(self) -> Path:
        seconds = self._node.now_ns() // 10**9
        base = Path(self._config.record_dir).expanduser() / f"{self._config.robot.name or 'robot'}_{seconds}"
        number = 0
        path = base
        while path.exists():
            number += 1
            path = base.with_name(f"{base.name}_{number}")
        return path


class RecordedMailbox(Mailbox):
    """A mailbox whose messages and cycles are written down as they come.

    What is written and what is stored go together: a message never stands before a cycle that did not see it.
    The price is that messages wait while a cycle reads its pictures.
    """

    def __init__(self, recorder: Recorder, config: OxygenConfig, *args: Any) -> None:
        """As a Mailbox."""
        self._order = threading.RLock()
        self._recorder = recorder
        self._config = config
        super().__init__(*args)

    def put_picture(self, role: str, stamp_ns: int, payload: Any) -> None:
        """As the mailbox."""
        camera = self._config.robot.cameras[role]
        with self._order:
            self._recorder.message_later(camera.topic, payload, f"sensor_msgs/msg/{camera.type}")
            super().put_picture(role, stamp_ns, payload)

    def put_joints(self, source: str, stamp_ns: int, names: Any, positions: Any) -> None:
        """As the mailbox."""
        topic = self._config.robot.joint_topics[source].topic
        make = self._recorder.make
        with self._order:
            self._recorder.make_later(topic, lambda: make.joints(names, positions, stamp_ns))
            super().put_joints(source, stamp_ns, names, positions)

    def put_instruction(self, instruction: str) -> None:
        """As the mailbox."""
        make = self._recorder.make
        with self._order:
            self._recorder.make_later(self._config.topics.instruction, lambda: make.text(instruction))
            super().put_instruction(instruction)

    def reset(self) -> int:
        """As the mailbox."""
        with self._order:
            self._recorder.line(event_line(RESET))
            return super().reset()

    def take(self) -> Observation | NotReady:
        """As the mailbox."""
        with self._order:
            begin_ns = self._recorder.now_ns()
            taken = super().take()
        self._recorder.end_take(begin_ns, taken)
        return taken


class _Texts:
    def __init__(self, recorder: Recorder, sink: TextSink, topic: str) -> None:
        self._recorder, self._sink, self._topic = recorder, sink, topic

    def publish_text(self, delta: TextDelta) -> None:
        self._sink.publish_text(delta)
        self._recorder.make_later(self._topic, lambda: self._recorder.make.delta(delta))


class _Reports:
    def __init__(self, recorder: Recorder, sink: ReportSink, topic: str) -> None:
        self._recorder, self._sink, self._topic = recorder, sink, topic

    def publish_report(self, report: CycleReport) -> None:
        self._sink.publish_report(report)
        now_ns = self._recorder.now_ns()
        self._recorder.make_later(self._topic, lambda: self._recorder.make.report(report, now_ns), now_ns)


def halt_line(reason: str) -> str:
    """The line of a halt."""
    return event_line(HALT, reason=reason)
