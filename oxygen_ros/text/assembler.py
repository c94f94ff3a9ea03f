"""Streamed deltas of many texts to whole sentences and whole texts, for speech, memory and logs."""

from __future__ import annotations

from dataclasses import dataclass, field

from oxygen_ros.text.sentences import SentenceSplitter
from oxygen_ros.types import FinishReason, TextDelta

_WHOLE = (FinishReason.STOP, FinishReason.LENGTH)


@dataclass(frozen=True)
class Assembled:
    """What one delta made whole: sentences that it closed, and the text if it is complete now."""

    sentences: tuple[str, ...] = ()
    complete: str | None = None


@dataclass
class _Draft:
    splitter: SentenceSplitter = field(default_factory=SentenceSplitter)
    text: str = ""


class TextAssembler:
    """Holds a draft of each text that has not ended; nothing of those that have.

    The last piece of a text that ended by itself is a sentence too. A text that was broken off gives no
    further sentence and no complete text.
    """

    def __init__(self) -> None:
        self._drafts: dict[str, _Draft] = {}

    def add(self, delta: TextDelta) -> Assembled:
        """Take in the next delta of its text."""
        draft = self._drafts.setdefault(delta.request_id, _Draft())
        draft.text += delta.text
        sentences = draft.splitter.add(delta.text)
        if not delta.is_final:
            return Assembled(tuple(sentences))
        del self._drafts[delta.request_id]
        if delta.finish_reason not in _WHOLE:
            return Assembled(tuple(sentences))
        return Assembled((*sentences, *draft.splitter.flush()), draft.text.strip())
