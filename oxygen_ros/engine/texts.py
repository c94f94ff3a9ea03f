"""The living texts: taken in, begun on a prefix, advanced by tokens, ended; and what they hold of the memory.

Knows no runner and no budget. Control thread; other threads reach it through the inbox.
"""

from __future__ import annotations

from oxygen_ros.clock import Clock
from oxygen_ros.engine.admission import Inbox
from oxygen_ros.engine.request import Prefix, RequestState, Seat
from oxygen_ros.engine.scheduler import Plan, SchedulerLimits, plan
from oxygen_ros.engine.settings import EngineSettings
from oxygen_ros.engine.writer import TextWriter
from oxygen_ros.errors import IntegrityError
from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.kv.ledger import KVLedger, Lease
from oxygen_ros.models.protocol import ModelSpec, Tokenizer
from oxygen_ros.types import FinishReason, TextDelta


class LivingTexts:
    """Each text that was taken in ends with exactly one final delta, and holds nothing after that."""

    def __init__(
        self,
        spec: ModelSpec,
        layout: KVLayout,
        ledger: KVLedger,
        inbox: Inbox,
        tokenizer: Tokenizer,
        clock: Clock,
        settings: EngineSettings,
    ) -> None:
        self._spec = spec
        self._ledger = ledger
        self._inbox = inbox
        self._tokenizer = tokenizer
        self._clock = clock
        self._rules = settings.rules
        self._limits = SchedulerLimits(
            layout.num_prefixes, layout.num_rows, settings.max_waiting, settings.aging_ns
        )
        self._texts: dict[str, RequestState] = {}  # in order of submission
        self._deltas: list[TextDelta] = []

    @property
    def num_waiting(self) -> int:
        """Requests that wait for a row."""
        return sum(text.seat is None for text in self._texts.values())

    @property
    def seats(self) -> list[Seat]:
        """What the texts hold."""
        return [text.seat for text in self._texts.values() if text.seat]

    def take_inbox(self) -> None:
        """Take in what other threads want: new texts wait, cancelled ones end at once."""
        submissions, cancelled = self._inbox.take()
        for item in submissions:
            writer = TextWriter(self._tokenizer, self._spec, item.request.sampling, self._rules)
            text = RequestState(item.request, item.submitted_ns, item.prompt_ids, writer)
            self._texts[item.request.request_id] = text
            if item.refusal:
                self._end(text, FinishReason.REFUSED, item.refusal.code, item.refusal.detail)
        for request_id in cancelled:
            if request_id in self._texts:
                self._end(self._texts[request_id], FinishReason.CANCELLED, "", "cancelled on request")

    def begin_round(self, current: Prefix | None) -> list[RequestState]:
        """Take in the inbox, then end and begin texts as planned. The texts of the next decode steps."""
        self.take_inbox()
        entries = [text.entry() for text in self._texts.values()]
        slot = current.lease.slot if current else None
        todo = plan(entries, self._limits, slot, self._clock.now_ns())
        for ending in todo.ended:
            self._end(self._texts[ending.request_id], ending.reason, ending.code, ending.detail)
        if current:
            self._admit(todo, current)
        return [self._texts[request_id] for request_id in todo.decoding]

    def end_round(self, texts: list[RequestState], tokens: dict[int, list[int | None]]) -> int:
        """Hand the round's tokens, by row, to its texts; end those that are complete. Tokens written."""
        num_written = 0
        for text in texts:
            if text.seat is None:
                continue  # it was cancelled after one of the round's steps
            for token_id in tokens.get(text.seat.row.slot, []):
                num_written += 1
                if text.writer.add(token_id):
                    break
            if reason := text.writer.finish_reason:
                self._end(text, reason, "", text.writer.detail, text.writer.take())
            elif new := text.writer.take():
                self._deltas.append(text.delta(new))
        return num_written

    def end_all(self, reason: FinishReason, detail: str) -> None:
        """End every text, also those that are still in the inbox."""
        self.take_inbox()
        for text in list(self._texts.values()):
            self._end(text, reason, "", detail)

    def take_deltas(self) -> list[TextDelta]:
        """All deltas since the last call, in order."""
        deltas, self._deltas = self._deltas, []
        self._inbox.note_told()
        return deltas

    def _admit(self, todo: Plan, current: Prefix) -> None:
        for request_id in todo.admitted:
            lease = self._ledger.prefixes.retain(current.lease)
            prefix = Prefix(current.observation_id, current.stamp_ns, lease, current.num_tokens)
            self._texts[request_id].begin(Seat(must_have(self._ledger.rows.acquire(), "text row"), prefix))

    def _end(self, text: RequestState, reason: FinishReason, code: str, detail: str, rest: str = "") -> None:
        """The one way out: the final delta, and everything the text held is given back."""
        self._deltas.append(text.finish(reason, f"{code}: {detail}" if code else detail, rest))
        if text.seat:
            self._ledger.rows.release(text.seat.row)
            self._ledger.prefixes.release(text.seat.prefix.lease)
            text.seat = None
        del self._texts[text.request.request_id]
        self._inbox.forget(text.request.request_id)
        if reason is FinishReason.REFUSED:
            self._inbox.count_refusal(code)


def must_have(lease: Lease | None, what: str) -> Lease:
    """``lease``, where the accounts promise that there is one."""
    if lease is None:
        raise IntegrityError("kv_no_slot", f"no {what} is free where the plan has one")
    return lease
