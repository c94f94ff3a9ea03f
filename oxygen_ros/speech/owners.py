"""Which request a sentence belongs to: sentences carry none, the stream of pieces does.

Both topics come from the same node, but in any order. A sentence that closes in the stream is matched with
one that comes by itself, equal ones in turn. What has found no match in two seconds is given up.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass

from oxygen_ros.clock import Clock
from oxygen_ros.runtime.text_release import COMPLETE
from oxygen_ros.text.sentences import SentenceSplitter
from oxygen_ros.types import FinishReason, TextDelta

MATCH_WITHIN_NS = 2_000_000_000
MAX_OPEN = 256
"""Sentences without a match, and texts that have not ended, that are remembered."""


@dataclass
class Utterance:
    """One sentence to say. ``request_id`` is empty while nobody knows whose it is."""

    text: str
    came_ns: int
    request_id: str = ""
    is_cancelled: bool = False


class Owners:
    """Marks utterances with their request, and as cancelled when it is. One thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._splitters: OrderedDict[str, SentenceSplitter] = OrderedDict()
        self._expected: deque[Utterance] = deque(maxlen=MAX_OPEN)  # closed in the stream, not come yet
        self._unknown: deque[Utterance] = deque(maxlen=MAX_OPEN)  # come, not closed in the stream yet

    def add_sentence(self, text: str) -> Utterance:
        """The utterance that has come as ``text``; it may be cancelled already."""
        now_ns = self._clock.now_ns()
        if (known := _take(self._expected, text, now_ns)) is not None:
            return Utterance(text, now_ns, known.request_id, known.is_cancelled)
        utterance = Utterance(text, now_ns)
        self._unknown.append(utterance)
        return utterance

    def add_delta(self, delta: TextDelta) -> str | None:
        """Take note of one piece. The id of its request if that was cancelled with it."""
        now_ns = self._clock.now_ns()
        for sentence in self._closed_by(delta):
            if (come := _take(self._unknown, sentence, now_ns)) is not None:
                come.request_id = delta.request_id
            else:
                self._expected.append(Utterance(sentence, now_ns, delta.request_id))
        if delta.finish_reason is not FinishReason.CANCELLED:
            return None
        for utterance in self._expected:
            utterance.is_cancelled |= utterance.request_id == delta.request_id
        return delta.request_id

    def _closed_by(self, delta: TextDelta) -> list[str]:
        """Sentences that close with ``delta``: those the brain sends. Sequence 0 begins a text anew."""
        if delta.seq == 0:
            self._splitters.pop(delta.request_id, None)
        splitter = self._splitters.setdefault(delta.request_id, SentenceSplitter())
        sentences = list(splitter.add(delta.text))
        if delta.finish_reason is not None:
            del self._splitters[delta.request_id]
            if delta.finish_reason in COMPLETE:
                sentences += splitter.flush()
        elif len(self._splitters) > MAX_OPEN:
            self._splitters.popitem(last=False)
        return [sentence for sentence in sentences if sentence.strip()]


def _take(waiting: deque[Utterance], text: str, now_ns: int) -> Utterance | None:
    """The first of ``waiting`` that says ``text``; those that wait too long are dropped."""
    while waiting and now_ns - waiting[0].came_ns > MATCH_WITHIN_NS:
        waiting.popleft()
    for utterance in waiting:
        if utterance.text == text:
            waiting.remove(utterance)
            return utterance
    return None
