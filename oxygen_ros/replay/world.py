"""Robot and people of a replay: what the bag's messages do to the live code, each at its time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from oxygen_ros.config import OxygenConfig
from oxygen_ros.errors import ContractError
from oxygen_ros.replay.bag.message_types import MessageTypes
from oxygen_ros.replay.bag.record import Record
from oxygen_ros.replay.clock import RosTime
from oxygen_ros.replay.figures import Figures
from oxygen_ros.replay.intakes import Intakes
from oxygen_ros.replay.measures.reference import Reference
from oxygen_ros.replay.outlet import Outlet
from oxygen_ros.replay.recording import HALT, RESET, WISHES, parse_line
from oxygen_ros.replay.topics import Feed, Feeds, Kind
from oxygen_ros.runtime.mailbox import Mailbox
from oxygen_ros.runtime.player import ChunkPlayer
from oxygen_ros.runtime.question_desk import QuestionDesk
from oxygen_ros.runtime.stamps import from_time
from oxygen_ros.runtime.text_intake import Question


@dataclass(frozen=True)
class Parts:
    """The live code that a replay drives."""

    config: OxygenConfig
    mailbox: Mailbox
    desk: QuestionDesk
    player: ChunkPlayer
    outlet: Outlet
    figures: Figures
    ros_time: RosTime
    reference: Reference | None


class World:
    """An Agenda: records of the bag and ticks of the player, in the order of time; records first."""

    def __init__(
        self,
        parts: Parts,
        feeds: Feeds,
        types: MessageTypes,
        records: Iterator[Record],
        start_ns: int,
        intakes: Intakes | None = None,
    ) -> None:
        """Begin at ``start_ns``. In a reproduction questions and cancels come by way of ``intakes``."""
        self._intakes = intakes
        self._parts = parts
        self._feeds = feeds
        self._types = types
        self._records = records
        self._record = next(records, None)
        self._tick_ns = parts.config.cycle.action_dt_ns
        self._next_tick_ns = start_ns
        self._told_every = max(1, round(250_000_000 / self._tick_ns))
        self._num_ticks = 0
        self.halts: list[str] = []
        self.num_records = 0
        self.newest_ns = start_ns
        robot = parts.config.robot
        self._prefixes = {name: robot.joint_topics[name].name_prefix for name in robot.joint_topic_names}
        self._handlers: dict[Kind, Callable[[Feed, Record], None]] = {
            Kind.PICTURE: self._on_picture,
            Kind.JOINTS: self._on_joints,
            Kind.INSTRUCTION: self._on_instruction,
            Kind.QUESTION: self._on_question,
            Kind.QUESTION_TEXT: self._on_question_text,
            Kind.VOICE: self._on_voice,
            Kind.CLOCK: self._on_clock,
            Kind.COMMANDS: self._on_commands,
            Kind.RECORDING: self._on_recording,
        }
        if intakes is not None:
            for kind in (Kind.QUESTION, Kind.QUESTION_TEXT, Kind.VOICE):
                del self._handlers[kind]

    @property
    def has_ended(self) -> bool:
        """True once the bag has no more records."""
        return self._record is None

    def next_ns(self) -> int | None:
        """Time of the next event: the player ticks on after the bag has ended."""
        if self._record is None:
            return self._next_tick_ns
        return min(self._record.time_ns, self._next_tick_ns)

    def happen(self) -> None:
        """Let the next event happen."""
        record = self._record
        if record is not None and record.time_ns <= self._next_tick_ns:
            self._record = next(self._records, None)
            self.num_records += 1
            self.newest_ns = record.time_ns
            self.apply(record)
            return
        self._next_tick_ns += self._tick_ns
        self._num_ticks += 1
        self._parts.outlet.publish_command()
        self._parts.mailbox.put_actions_played(self._parts.player.status().actions_played)
        if self._num_ticks % self._told_every == 0:
            self._parts.outlet.publish_player()

    def apply(self, record: Record) -> None:
        """Give one message to those who take it; one that cannot be read is counted."""
        for feed in self._feeds.by_topic[record.topic]:
            handler = self._handlers.get(feed.kind)
            if handler is None:
                continue
            try:
                handler(feed, record)
            except ContractError as error:
                self._parts.figures.undecodable[record.topic] += 1
                if self._parts.figures.undecodable[record.topic] == 1:
                    self._say(f"{record.topic}: {error}")

    def _say(self, text: str) -> None:
        self._parts.figures.say(self.newest_ns, text)

    def _on_picture(self, feed: Feed, record: Record) -> None:
        message = self._types.read(feed.type, record.data)
        self._parts.mailbox.put_picture(feed.key, from_time(message.header.stamp), message)

    def _on_joints(self, feed: Feed, record: Record) -> None:
        message = self._types.read(feed.type, record.data)
        stamp_ns = from_time(message.header.stamp)
        positions = message.position.tolist()
        self._parts.mailbox.put_joints(feed.key, stamp_ns, message.name, positions)
        prefix = self._prefixes[feed.key]
        names = [prefix + name for name in message.name] if prefix else message.name
        self._parts.player.put_measured(names, positions)
        reference = self._parts.reference
        if reference is not None and not self._feeds.of(Kind.COMMANDS):
            reference.put(self._parts.ros_time.now_ns(), names, positions)

    def _on_instruction(self, feed: Feed, record: Record) -> None:
        self._parts.mailbox.put_instruction(self._types.read(feed.type, record.data).data.strip())

    def _on_question(self, feed: Feed, record: Record) -> None:
        question = Question.of(self._types.read(feed.type, record.data))
        self._parts.desk.ask(question, feed.topic)

    def _on_question_text(self, feed: Feed, record: Record) -> None:
        question = Question(prompt=self._types.read(feed.type, record.data).data.strip())
        self._parts.desk.ask(question, feed.topic)

    def _on_voice(self, feed: Feed, record: Record) -> None:
        self._parts.desk.hear(self._types.read(feed.type, record.data).data, feed.topic)

    def _on_commands(self, feed: Feed, record: Record) -> None:
        message = self._types.read(feed.type, record.data)
        if self._parts.reference is not None:
            order = self._parts.config.robot.command_joint_names
            self._parts.reference.put_message(self._parts.ros_time.now_ns(), message, order)

    def _on_clock(self, feed: Feed, record: Record) -> None:
        back_ns = self._parts.ros_time.tell(from_time(self._types.read(feed.type, record.data).clock))
        if back_ns:
            reason = f"clock jumped back {back_ns / 1e9:.1f} s"
            self._begin_anew(reason)
            self.halts.append(reason)

    def _on_recording(self, feed: Feed, record: Record) -> None:
        line = parse_line(self._types.read(feed.type, record.data).data)
        if line.get("kind") == RESET:
            self._begin_anew(str(line.get("reason", "reset")))  # its halt has a line of its own
        elif line.get("kind") in WISHES and self._intakes is not None:
            self._intakes.arrive()
        elif line.get("kind") == HALT:
            self.halts.append(str(line.get("reason", "halt")))

    def _begin_anew(self, reason: str) -> None:
        """What both live nodes do when time jumps or a reset is asked for."""
        parts = self._parts
        self._say(reason)
        parts.mailbox.reset()
        parts.outlet.bar(parts.mailbox.last_id)
        parts.player.rest(reason)
        parts.figures.errors.finish()
        if parts.reference is not None:
            parts.reference.reset()
