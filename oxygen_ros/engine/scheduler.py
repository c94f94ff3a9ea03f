"""Which texts end, wait, begin and go on: a pure function from plain facts to a plain plan.

No torch, no clock: the engine makes the facts and applies the plan. Order of admission: a request is due at
the time it was submitted minus ``aging_ns`` for each unit of priority; the earliest due goes first. So a
request is only ever overtaken by one that was submitted less than ``aging_ns * (difference of priority)``
after it. When too many wait, the task with most of them gives up its last due: a flood harms its own task.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from oxygen_ros.types import FinishReason


@dataclass(frozen=True)
class SchedulerLimits:
    """What bounds the plan.

    Attributes:
        num_prefixes: prefix slots; texts hold at most all but one.
        num_rows: texts that are decoded together.
        max_waiting: requests that wait for a row.
        aging_ns: waiting time that is worth one unit of priority.
    """

    num_prefixes: int
    num_rows: int
    max_waiting: int
    aging_ns: int


@dataclass(frozen=True)
class TextEntry:
    """Facts of one living text. ``prefix_slot`` is None while it waits."""

    request_id: str
    task: str
    priority: int
    submitted_ns: int
    max_age_ns: int
    is_superseding: bool = False
    supersede_running: bool = False
    prefix_slot: int | None = None


@dataclass(frozen=True)
class Ending:
    """A text that ends without the model's doing. ``code`` is stable; ``detail`` is for people."""

    request_id: str
    reason: FinishReason
    code: str
    detail: str


@dataclass(frozen=True)
class Plan:
    """What is to be done before the next round of decode steps. Ids in order of submission.

    Attributes:
        ended: texts to be ended first; their rows and prefixes are free for the admitted ones.
        admitted: texts that begin on the current prefix, in order of admission.
        decoding: texts of the next step, the admitted ones last.
        waiting: texts that go on waiting.
    """

    ended: tuple[Ending, ...] = ()
    admitted: tuple[str, ...] = ()
    decoding: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


def plan(
    entries: Sequence[TextEntry], limits: SchedulerLimits, current_slot: int | None, now_ns: int
) -> Plan:
    """Plan the next round.

    Args:
        entries: all living texts in order of submission.
        limits: what bounds the plan.
        current_slot: slot of the newest prefix, on which texts begin; None when there is none.
        now_ns: steady time.
    """
    expired = [e for e in entries if now_ns - e.submitted_ns > e.max_age_ns]
    alive = [e for e in entries if e not in expired]
    ended = [_expired(entry, now_ns) for entry in expired]
    successors = {e.request_id: s for i, e in enumerate(alive) if (s := _successor(e, alive[i + 1 :]))}
    ended += [_superseded(request_id, successor) for request_id, successor in successors.items()]
    alive = [e for e in alive if e.request_id not in successors]

    running = [e for e in alive if e.prefix_slot is not None]
    queue = [e for e in alive if e.prefix_slot is None]
    admitted = _admit(queue, running, limits, current_slot)
    waiting = [e for e in queue if e not in admitted]
    surplus = _surplus(waiting, limits)
    num_decoding = len(running) + len(admitted)
    ended += [_overflow(entry, limits, num_decoding) for entry in surplus]
    return Plan(
        ended=tuple(ended),
        admitted=tuple(e.request_id for e in admitted),
        decoding=tuple(e.request_id for e in [*running, *admitted]),
        waiting=tuple(e.request_id for e in waiting if e not in surplus),
    )


def _admit(
    queue: list[TextEntry], running: list[TextEntry], limits: SchedulerLimits, current_slot: int | None
) -> list[TextEntry]:
    """As many of the queue as have a row, if the current prefix may be held by texts at all."""
    held = {entry.prefix_slot for entry in running} | {current_slot}
    if current_slot is None or len(held) > limits.num_prefixes - 1:
        return []
    by_due = sorted(queue, key=lambda e: _due_ns(e, limits))
    return by_due[: max(0, limits.num_rows - len(running))]


def _surplus(waiting: list[TextEntry], limits: SchedulerLimits) -> list[TextEntry]:
    """What the waiting list cannot hold: the last due of the task that has most in it, time and again."""
    kept = list(waiting)
    while len(kept) > limits.max_waiting:
        counts = Counter(entry.task for entry in kept)
        last_first = reversed(kept)
        kept.remove(max(last_first, key=lambda e: (counts[e.task], _due_ns(e, limits))))
    return [entry for entry in waiting if entry not in kept]


def _due_ns(entry: TextEntry, limits: SchedulerLimits) -> int:
    return entry.submitted_ns - entry.priority * limits.aging_ns


def _successor(entry: TextEntry, later: Sequence[TextEntry]) -> TextEntry | None:
    """The newest request that takes the place of ``entry``."""
    for other in reversed(later):
        is_taking = other.is_superseding if entry.prefix_slot is None else other.supersede_running
        if other.task == entry.task and is_taking:
            return other
    return None


def _expired(entry: TextEntry, now_ns: int) -> Ending:
    age_s, limit_s = (now_ns - entry.submitted_ns) / 1e9, entry.max_age_ns / 1e9
    stage = "waiting" if entry.prefix_slot is None else "being written"
    detail = f"{age_s:.2f} s old while {stage}, limit {limit_s:.2f} s"
    return Ending(entry.request_id, FinishReason.EXPIRED, "expired", detail)


def _superseded(request_id: str, successor: TextEntry) -> Ending:
    detail = f"replaced by {successor.request_id}"
    return Ending(request_id, FinishReason.SUPERSEDED, "superseded", detail)


def _overflow(entry: TextEntry, limits: SchedulerLimits, num_decoding: int) -> Ending:
    in_use, most = f"{num_decoding} of {limits.num_rows} rows are in use", limits.max_waiting
    detail = f"{in_use} and {most} requests wait, the most allowed"
    return Ending(entry.request_id, FinishReason.REFUSED, "queue_full", detail)
