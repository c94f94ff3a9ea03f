"""The life of one text request: WAITING, DECODING, FINISHED. Plain state; the engine moves it on."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from oxygen_ros.engine.scheduler import TextEntry
from oxygen_ros.engine.writer import TextWriter
from oxygen_ros.kv.ledger import Lease
from oxygen_ros.runners.protocol import BatchRow
from oxygen_ros.types import FinishReason, TextDelta, TextRequest


class RequestStatus(enum.Enum):
    """Where a text request is in its life."""

    WAITING = enum.auto()
    """Holds no memory; is not yet about any observation."""
    DECODING = enum.auto()
    """Holds one row and one lease on the prefix it was born on."""
    FINISHED = enum.auto()
    """Holds nothing; its final delta has been made."""


@dataclass(frozen=True)
class Prefix:
    """What one prefill left in memory. Each holder has a lease of its own on the same slot."""

    observation_id: int
    stamp_ns: int
    lease: Lease
    num_tokens: int


@dataclass(frozen=True)
class Seat:
    """What a text holds while it decodes: its row, and its lease on the prefix it is about."""

    row: Lease
    prefix: Prefix


@dataclass
class RequestState:
    """One living request. ``num_steps`` counts decode steps it was in: tokens written, read back or not."""

    request: TextRequest
    submitted_ns: int
    prompt_ids: tuple[int, ...]
    writer: TextWriter
    seat: Seat | None = None
    observation_id: int = 0
    stamp_ns: int = 0
    num_steps: int = 0
    next_seq: int = 0
    finish_reason: FinishReason | None = None

    @property
    def status(self) -> RequestStatus:
        """Where it is in its life."""
        if self.finish_reason is not None:
            return RequestStatus.FINISHED
        return RequestStatus.WAITING if self.seat is None else RequestStatus.DECODING

    def entry(self) -> TextEntry:
        """What the scheduler needs to know of it."""
        return TextEntry(
            request_id=self.request.request_id,
            task=self.request.task,
            priority=self.request.priority,
            submitted_ns=self.submitted_ns,
            max_age_ns=self.request.max_age_ns,
            is_superseding=self.request.is_superseding,
            supersede_running=self.request.supersede_running,
            prefix_slot=None if self.seat is None else self.seat.prefix.lease.slot,
        )

    def begin(self, seat: Seat) -> None:
        """WAITING to DECODING: the text is about the seat's observation from now on."""
        self.seat = seat
        self.observation_id, self.stamp_ns = seat.prefix.observation_id, seat.prefix.stamp_ns

    def can_step(self) -> bool:
        """True while it holds a row and may write one more token."""
        return self.seat is not None and self.num_steps < self.request.sampling.max_tokens

    def batch_row(self) -> BatchRow:
        """Its place in the next decode step; it must hold a row."""
        assert self.seat is not None
        seat, is_first = self.seat, self.num_steps == 0
        return BatchRow(
            row=seat.row.slot,
            prefix_slot=seat.prefix.lease.slot,
            prefix_tokens=seat.prefix.num_tokens,
            suffix_tokens=0 if is_first else len(self.prompt_ids) + self.num_steps - 1,
            new_token_ids=self.prompt_ids if is_first else (),
            tokens_written=self.num_steps,
            sampling=self.request.sampling,
        )

    def tokens_fed(self) -> int:
        """Tokens that its next step puts through the model."""
        return max(1, len(self.prompt_ids)) if self.num_steps == 0 else 1

    def finish(self, reason: FinishReason, detail: str, rest: str) -> TextDelta:
        """To FINISHED, by the final delta with the ``rest`` of its text."""
        self.finish_reason = reason
        return self.delta(rest, reason, detail)

    def delta(self, text: str, reason: FinishReason | None = None, detail: str = "") -> TextDelta:
        """Its next delta."""
        self.next_seq += 1
        return TextDelta(
            request_id=self.request.request_id,
            task=self.request.task,
            kind=self.request.kind,
            observation_id=self.observation_id,
            stamp_ns=self.stamp_ns,
            seq=self.next_seq - 1,
            text=text,
            num_tokens=self.writer.num_tokens,
            finish_reason=reason,
            detail=detail,
        )
