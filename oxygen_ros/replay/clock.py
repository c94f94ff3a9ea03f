"""The time of a replay: bag time. Whatever lets time pass also lets happen what is due by then."""

from __future__ import annotations

from typing import Protocol

from oxygen_ros.clock import Clock


class Agenda(Protocol):
    """What happens beside the control cycle: messages arrive, the player ticks."""

    def next_ns(self) -> int | None:
        """Bag time of the next event; None when there are no more."""
        ...

    def happen(self) -> None:
        """Let the next event happen."""
        ...


class ReplayClock:
    """A Clock on bag time, over a simulated or the machine's steady clock. One thread.

    It stands in for the threads of the live nodes: while a model call takes its time, messages that come
    meanwhile are stored, and the player ticks, each at its own time.
    """

    def __init__(self, base: Clock) -> None:
        self._base = base
        self._shift_ns = 0
        self._agenda: Agenda | None = None
        self._event_ns: int | None = None
        self.limit_ns: int | None = None
        """No later than this gets it by sleeping: the next recorded cycle began then."""

    def set_ns(self, time_ns: int) -> None:
        """Let it be ``time_ns`` now. For the start."""
        self._shift_ns = time_ns - self._base.now_ns()

    def attach(self, agenda: Agenda) -> None:
        """Let the events of ``agenda`` happen from now on."""
        self._agenda = agenda

    def now_ns(self) -> int:
        """Bag time; within an event, the time of the event."""
        if self._event_ns is not None:
            return self._event_ns
        self._catch_up(self._base.now_ns() + self._shift_ns)
        return self._base.now_ns() + self._shift_ns

    def sleep_until_ns(self, deadline_ns: int) -> None:
        """Let time pass until ``deadline_ns`` and everything happen that is due."""
        if self.limit_ns is not None:
            deadline_ns = min(deadline_ns, self.limit_ns)
        while (due_ns := self._next_ns()) is not None and due_ns <= deadline_ns:
            self._base.sleep_until_ns(due_ns - self._shift_ns)
            self._catch_up(due_ns)
        self._base.sleep_until_ns(deadline_ns - self._shift_ns)

    def _next_ns(self) -> int | None:
        return self._agenda.next_ns() if self._agenda is not None else None

    def _catch_up(self, until_ns: int) -> None:
        if self._agenda is None:
            return
        while (due_ns := self._agenda.next_ns()) is not None and due_ns <= until_ns:
            self._event_ns = due_ns
            try:
                self._agenda.happen()
            finally:
                self._event_ns = None


class RosTime:
    """ROS time of a replay: bag time, or the bag's own /clock from its first message on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told_ns: int | None = None
        self._told_at_ns = 0

    def now_ns(self) -> int:
        """Nanoseconds of ROS time."""
        if self._told_ns is None:
            return self._clock.now_ns()
        return self._told_ns + self._clock.now_ns() - self._told_at_ns

    def tell(self, ros_ns: int) -> int:
        """Take in a /clock message. How far time has jumped back by it, 0 if it has not."""
        before_ns = self._told_ns
        self._told_ns, self._told_at_ns = ros_ns, self._clock.now_ns()
        return max(0, before_ns - ros_ns) if before_ns is not None else 0
