"""When control cycles run: by a timer as in the live node, or as a recorded run had them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from oxygen_ros.clock import Clock
from oxygen_ros.replay.clock import ReplayClock
from oxygen_ros.replay.recording import RecordedCycle


def every_period(clock: Clock, start_ns: int, end_ns: int, period_ns: int) -> Iterator[tuple[int, int]]:
    """(begin, due) of each cycle. Ticks that come while a cycle runs start one more, not a burst."""
    due_ns = start_ns
    while due_ns <= end_ns:
        yield due_ns, due_ns
        late_periods = max(0, clock.now_ns() - due_ns) // period_ns
        due_ns += max(1, late_periods) * period_ns


def recorded(
    clock: ReplayClock, cycles: Sequence[RecordedCycle], start_ns: int, end_ns: int
) -> Iterator[tuple[int, int]]:
    """(begin, due) of each recorded cycle within the span; none lasts longer than until the next began."""
    within = [cycle for cycle in cycles if start_ns <= cycle.begin_ns <= end_ns]
    for cycle, following in zip_longest(within, within[1:]):
        clock.limit_ns = None
        clock.sleep_until_ns(cycle.begin_ns)
        clock.limit_ns = following.begin_ns - 1 if following is not None else None
        yield cycle.begin_ns, cycle.due_ns
    clock.limit_ns = None
