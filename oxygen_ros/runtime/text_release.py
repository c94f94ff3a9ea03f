"""Which sentences and whole texts a delta sets free: speech gets the first, memory the second. No ROS."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from oxygen_ros.text.sentences import SentenceSplitter
from oxygen_ros.types import FinishReason, TextDelta

COMPLETE = (FinishReason.STOP, FinishReason.LENGTH)


@dataclass
class _Growing:
    """A text that has not ended."""

    pieces: list[str] = field(default_factory=list)
    splitter: SentenceSplitter = field(default_factory=SentenceSplitter)


@dataclass(frozen=True)
class Released:
    """Sentences that closed, in order, and the text as a whole; empty where there is nothing to say."""

    sentences: tuple[str, ...] = ()
    complete: str = ""


class TextRelease:
    """Sentences go out as they close; a text goes out as a whole only when it came to its end.

    A text that was cancelled, replaced or broken off is not complete: its open sentence and the text as a
    whole are not set free. One thread at a time.
    """

    def __init__(self) -> None:
        self._growing: dict[str, _Growing] = {}
        self.num_ended: Counter[str] = Counter()

    def add(self, delta: TextDelta) -> Released:
        """What can go out with ``delta``."""
        growing = self._growing.setdefault(delta.request_id, _Growing())
        growing.pieces.append(delta.text)
        sentences, complete = list(growing.splitter.add(delta.text)), ""
        if delta.finish_reason is not None:
            del self._growing[delta.request_id]
            self.num_ended[delta.finish_reason.name.lower()] += 1
            if delta.finish_reason in COMPLETE:
                sentences += growing.splitter.flush()
                complete = "".join(growing.pieces)
        spoken = tuple(sentence for sentence in sentences if sentence.strip())
        return Released(spoken, complete if complete.strip() else "")
