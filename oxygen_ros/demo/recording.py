"""What a run's bag holds, sorted for the summary: cycles, texts, control ticks, truths, pictures.

Topics are found by type and last name, so that a namespace or a renamed node does not matter. Times are
log times of the recorder; births and truths also have their ROS stamps, which are of the same clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oxygen_ros.errors import ContractError
from oxygen_ros.replay.bag.bag import Bag
from oxygen_ros.runtime.stamps import S
from oxygen_ros.sim.scorer import ASK, MEMORY, NEXT
from oxygen_ros.sim.truth_message import TruthMessage, from_json

CYCLES, TEXTS, CHUNKS = "oxygen_ros/msg/CycleReport", "oxygen_ros/msg/TextDelta", "oxygen_ros/msg/ActionChunk"
PLAYER, QUESTIONS = "oxygen_ros/msg/PlayerState", "oxygen_ros/msg/TextRequest"
STRING, PICTURE = "std_msgs/msg/String", "sensor_msgs/msg/CompressedImage"
ACTED = 0
KINDS = (ASK, NEXT, MEMORY)
"""Kinds of text as ``sim/scorer.py`` names them, by number in TextDelta; others are not judged."""
FINISH_REASONS = ("", "stop", "length", "cancelled", "superseded", "expired", "refused", "error")
COMPLETE = ("stop", "length")
SHOW_HZ = 10.0
"""Pictures of the show view that are kept; the GIF needs no more."""


@dataclass(frozen=True)
class Cycle:
    """One control cycle. ``end_ns`` is when its report was logged, the rest in milliseconds as reported."""

    end_ns: int
    has_acted: bool
    is_late: bool
    period_ms: float
    observe_ms: float
    prefill_ms: float
    act_ms: float
    publish_ms: float
    decode_ms: float
    slack_ms: float
    action_latency_ms: float
    decode_steps: int
    text_rows: int
    text_tokens: int

    @property
    def work_ms(self) -> float:
        """Time that its sections took together."""
        return self.observe_ms + self.prefill_ms + self.act_ms + self.publish_ms + self.decode_ms

    @property
    def begin_ns(self) -> int:
        """When its work began."""
        return self.end_ns - round(self.work_ms * 1e6)


@dataclass
class Text:
    """One text request from birth to its last piece.

    Attributes:
        kind: one of KINDS, or empty.
        name: task and running number within the task, such as "memory#1".
        stamp_ns: of the observation it is about; 0 if it never started.
        pieces: (log time, what was written) of each delta.
        reason: how it ended; empty if the bag ends before it does.
    """

    request_id: str
    task: str
    kind: str
    name: str = ""
    stamp_ns: int = 0
    pieces: list[tuple[int, str]] = field(default_factory=list)
    num_tokens: int = 0
    reason: str = ""
    detail: str = ""

    @property
    def text(self) -> str:
        """All that was written."""
        return "".join(words for _, words in self.pieces)

    @property
    def born_ns(self) -> int:
        """Stamp of its observation, or its first delta if it never started."""
        return self.stamp_ns or self.pieces[0][0]

    @property
    def end_ns(self) -> int:
        """Log time of its last delta."""
        return self.pieces[-1][0]

    @property
    def is_complete(self) -> bool:
        """True when it came to its own end."""
        return self.reason in COMPLETE


@dataclass
class RunRecording:
    """Everything that the pictures and the summary are made of.

    Attributes:
        prompts: question by request id.
        loose_prompts: questions whose request id is the node's own, in the order they were asked.
        ticks: log times at which the player sent a command.
        player: (ticks missed, steps clamped) since the first state of the bag.
        show: (stamp, JPEG) of the show view, thinned to SHOW_HZ.
        faults: damage of the bag, and messages that could not be read, one sentence each.
    """

    span_ns: tuple[int, int] = (0, 0)
    topics: dict[str, int] = field(default_factory=dict)
    cycles: list[Cycle] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    prompts: dict[str, str] = field(default_factory=dict)
    loose_prompts: list[str] = field(default_factory=list)
    num_chunks: int = 0
    ticks: list[int] = field(default_factory=list)
    player: tuple[int, int] | None = None
    truths: list[TruthMessage] = field(default_factory=list)
    show: list[tuple[int, bytes]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def duration_s(self) -> float:
        """From the first to the last message."""
        return (self.span_ns[1] - self.span_ns[0]) / S


def read_run(path: Path) -> RunRecording:
    """Read the bag at ``path``, file or folder. What is missing or damaged is left out and named.

    Raises:
        ContractError: ``bag.missing``, ``bag.empty``: nothing can be read.
    """
    with Bag(path) as bag:
        reader = _Reader(bag)
        for record in bag.records(tuple(bag.topics)):
            reader.take(record.topic, record.time_ns, record.data)
        return reader.finish()


class _Reader:
    """Takes messages in the order of time."""

    def __init__(self, bag: Bag) -> None:
        self._bag = bag
        self._run = RunRecording(
            topics={name: survey.num_messages for name, survey in sorted(bag.surveys.items())},
            faults=list(bag.faults),
        )
        self._times: list[int] = []
        self._growing: dict[str, Text] = {}
        self._counts: dict[str, int] = {}
        self._first_player: tuple[int, int] | None = None
        self._unread: dict[str, int] = {}

    def take(self, topic: str, time_ns: int, data: bytes) -> None:
        """One message. Those that nothing here needs are passed over unread."""
        kind = self._bag.topics[topic].type
        self._times = [*self._times[:1], time_ns]
        if topic.endswith("/joint_command"):
            self._run.ticks.append(time_ns)
            return
        take = self._taker(topic, kind)
        if take is None:
            return
        try:
            take(time_ns, self._bag.types.read(kind, data))
        except ContractError:
            self._unread[topic] = self._unread.get(topic, 0) + 1

    def finish(self) -> RunRecording:
        """All that was taken."""
        run = self._run
        if self._times:
            run.span_ns = (self._times[0], self._times[-1])
        run.texts.sort(key=lambda text: text.born_ns)
        for text in run.texts:
            self._counts[text.task] = self._counts.get(text.task, 0) + 1
            text.name = f"{text.task or 'text'}#{self._counts[text.task]}"
        run.faults += [f"{topic}: {num} messages cannot be read" for topic, num in self._unread.items()]
        return run

    def _taker(self, topic: str, kind: str) -> Any:
        by_type = {
            CYCLES: self._cycle,
            TEXTS: self._delta,
            CHUNKS: self._chunk,
            PLAYER: self._player,
            QUESTIONS: self._question,
        }
        if kind == STRING:
            by_name = {"truth": self._truth, "ask_text": self._asked}
            return by_name.get(topic.rpartition("/")[2])
        if kind == PICTURE and topic.endswith("/show/compressed"):
            return self._picture
        return by_type.get(kind)

    def _cycle(self, time_ns: int, message: Any) -> None:
        names = Cycle.__dataclass_fields__.keys() - {"end_ns", "has_acted"}
        fields = {name: getattr(message, name) for name in names}
        self._run.cycles.append(Cycle(end_ns=time_ns, has_acted=message.status == ACTED, **fields))

    def _chunk(self, time_ns: int, message: Any) -> None:
        self._run.num_chunks += message.horizon > 0

    def _delta(self, time_ns: int, message: Any) -> None:
        text = self._growing.get(message.request_id)
        if text is None:
            kind = KINDS[message.kind] if message.kind < len(KINDS) else ""
            text = Text(message.request_id, message.task, kind)
            self._growing[message.request_id] = text
            self._run.texts.append(text)
        text.stamp_ns = text.stamp_ns or _ns(message.header.stamp)
        text.pieces.append((time_ns, message.text))
        text.num_tokens = message.num_tokens
        if message.is_final:
            text.reason, text.detail = FINISH_REASONS[message.finish_reason], message.detail
            del self._growing[message.request_id]

    def _player(self, time_ns: int, message: Any) -> None:
        now = (int(message.ticks_missed), int(message.steps_clamped))
        first = self._first_player = self._first_player or now
        self._run.player = (now[0] - first[0], now[1] - first[1])

    def _question(self, time_ns: int, message: Any) -> None:
        if message.request_id and message.prompt:
            self._run.prompts[message.request_id] = message.prompt
        elif message.prompt:
            self._run.loose_prompts.append(message.prompt)

    def _asked(self, time_ns: int, message: Any) -> None:
        self._run.loose_prompts.append(message.data)

    def _truth(self, time_ns: int, message: Any) -> None:
        self._run.truths.append(from_json(message.data))

    def _picture(self, time_ns: int, message: Any) -> None:
        show, stamp_ns = self._run.show, _ns(message.header.stamp) or time_ns
        if not show or stamp_ns - show[-1][0] >= 0.95 * S / SHOW_HZ:
            show.append((stamp_ns, bytes(message.data)))


def _ns(stamp: Any) -> int:
    return int(stamp.sec) * S + int(stamp.nanosec)
