"""Books of the text stream: every text must begin with 0, count without a gap, and end exactly once."""

from __future__ import annotations

from collections import Counter

from oxygen_ros.types import TextDelta


class TextLedger:
    """Every request that was seen, for as long as the run lasts. One thread."""

    def __init__(self) -> None:
        self.num_ended: Counter[str] = Counter()
        self.num_with_text = 0
        self.faults: list[str] = []
        self._open: dict[str, tuple[int, bool]] = {}  # next sequence number, whether something was written
        self._ended: set[str] = set()

    @property
    def open_ids(self) -> tuple[str, ...]:
        """Texts that have begun and not ended."""
        return tuple(self._open)

    def has_ended(self, request_id: str) -> bool:
        """True once the text has had its final message."""
        return request_id in self._ended

    def add(self, delta: TextDelta) -> None:
        """Enter one piece."""
        name = delta.request_id
        if name in self._ended:
            self.faults.append(f"{name}: message {delta.seq} after its final one")
            return
        next_seq, has_text = self._open.get(name, (0, False))
        if delta.seq != next_seq:
            self.faults.append(f"{name}: message {delta.seq} where {next_seq} was due")
        has_text |= bool(delta.text.strip())
        if delta.finish_reason is None:
            self._open[name] = (delta.seq + 1, has_text)
            return
        self._open.pop(name, None)
        self._ended.add(name)
        self.num_ended[delta.finish_reason.name.lower()] += 1
        self.num_with_text += has_text
