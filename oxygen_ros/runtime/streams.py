"""One input stream: order of its stamps, freshness of its newest sample, arrival rate.

Knows stamps and arrival times, not what the messages hold. Two clocks, never mixed: arrival is steady time,
stamps are ROS time. Written by one thread at a time; ``Sample`` values are safe to hand to another thread.
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass
from typing import Any

SET_BACK_AFTER = 10
RATE_WINDOW = 60
RATE_SPAN_NS = 2_000_000_000
MAX_PARTS = 16
PLAUSIBLE_DELAY_NS = 1_000_000_000


class StampUse(enum.Enum):
    """Which time counts for freshness or synchrony. Values equal the parameters'."""

    RECEIVE = "receive"
    """Time of arrival: right when the clocks of two machines disagree."""
    HEADER = "header"
    """Stamp of the header: right when stamps can be trusted."""


class Judgement(enum.Enum):
    """What is wrong with a message's stamp. Values are the kinds that refusals are counted by."""

    OUT_OF_ORDER = "out_of_order"
    FUTURE = "future_stamp"


@dataclass(frozen=True)
class StreamRule:
    """How one stream is judged.

    Attributes:
        name: as people know it, e.g. "camera front".
        topic: where it comes from.
        stale_ns: age above which a sample is not used any more.
        stale_clock: which age that is.
        future_ns: how far a stamp may lie ahead of ROS time.
        frozen_after: equal stamps in a row that make a frozen stamp.
        is_required: False if the robot acts on without it.
        expected_rate_hz: diagnostics warn below half of it; 0: not checked.
    """

    name: str
    topic: str
    stale_ns: int
    stale_clock: StampUse = StampUse.RECEIVE
    future_ns: int = 1_000_000_000
    frozen_after: int = 10
    is_required: bool = True
    expected_rate_hz: float = 0.0


@dataclass(frozen=True)
class Sample:
    """One accepted message.

    Attributes:
        payload: what came, untouched.
        stamp_ns: ROS time of its header; 0 if unstamped.
        received_ns: steady time of arrival.
        received_ros_ns: ROS time of arrival.
        is_frozen: the stamp has stood still for a while.
    """

    payload: Any
    stamp_ns: int
    received_ns: int
    received_ros_ns: int
    is_frozen: bool = False

    def age_ns(self, use: StampUse, now_ns: int, ros_now_ns: int) -> int:
        """Age by arrival (steady time) or by header (ROS time)."""
        return now_ns - self.received_ns if use is StampUse.RECEIVE else ros_now_ns - self.stamp_ns

    def time_ns(self, use: StampUse) -> int:
        """ROS time this sample belongs to: its stamp where that makes sense, else its arrival."""
        is_plausible = abs(self.received_ros_ns - self.stamp_ns) <= PLAUSIBLE_DELAY_NS
        if use is StampUse.HEADER or (self.stamp_ns and is_plausible and not self.is_frozen):
            return self.stamp_ns
        return self.received_ros_ns


class StreamWatch:
    """Judges each message of one stream by its stamp and remembers what it needs for that. One thread.

    Invariant: the newest accepted stamp never goes back, unless the stream has been stale and a whole run of
    messages agrees on an earlier time (a source whose clock was set back).
    """

    def __init__(self, rule: StreamRule) -> None:
        self.rule = rule
        self._newest_ns = 0
        self._accepted_ns = 0
        self._same = 0
        self._behind: deque[int] = deque(maxlen=SET_BACK_AFTER)
        self._arrivals: deque[int] = deque(maxlen=RATE_WINDOW)
        self._parts: dict[frozenset[str], StreamWatch] = {}

    def of(self, part: frozenset[str]) -> StreamWatch:
        """The watch over those messages that carry ``part``: each publisher has its own order."""
        watch = self._parts.pop(part, None) or StreamWatch(self.rule)
        self._parts[part] = watch  # the last one is the newest
        if len(self._parts) > MAX_PARTS:
            del self._parts[next(iter(self._parts))]
        return watch

    def note(self, now_ns: int) -> None:
        """Take note that a message arrived, whatever it holds."""
        self._arrivals.append(now_ns)

    def judge(self, stamp_ns: int, now_ns: int, ros_now_ns: int) -> Judgement | None:
        """Why the message that arrived now must not be used, or None: then it is the newest."""
        if stamp_ns and ros_now_ns and stamp_ns > ros_now_ns + self.rule.future_ns:
            return Judgement.FUTURE
        if stamp_ns and stamp_ns < self._newest_ns and not self._is_set_back(stamp_ns, now_ns):
            return Judgement.OUT_OF_ORDER
        self._same = self._same + 1 if stamp_ns and stamp_ns == self._newest_ns else 1
        self._newest_ns = stamp_ns or self._newest_ns
        self._accepted_ns = now_ns
        self._behind.clear()
        return None

    def _is_set_back(self, stamp_ns: int, now_ns: int) -> bool:
        if self._behind and stamp_ns <= self._behind[-1]:
            self._behind.clear()
        self._behind.append(stamp_ns)
        return len(self._behind) == SET_BACK_AFTER and now_ns - self._accepted_ns > self.rule.stale_ns

    @property
    def is_frozen(self) -> bool:
        """True while at least ``frozen_after`` stamps in a row were one and the same."""
        return self._same >= self.rule.frozen_after

    def rate_hz(self, now_ns: int) -> float:
        """Arrivals per second of late, used or refused; 0 when silent for two seconds."""
        recent = [t for t in tuple(self._arrivals) if now_ns - t <= RATE_SPAN_NS]
        if len(recent) < 2:
            return 0.0
        return (len(recent) - 1) * 1e9 / max(recent[-1] - recent[0], 1)

    def reset(self) -> None:
        """Forget all stamps and arrivals: ROS time has jumped."""
        self._newest_ns = self._same = 0
        self._behind.clear()
        self._arrivals.clear()
        self._parts.clear()
