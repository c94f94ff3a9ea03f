"""What one walk through a bag finds: counts, times, clocks, disorder. Numbers only, no messages."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

MAX_OFFSETS = 512
CLOCKS_APART_NS = 100_000_000
OTHER_CLOCK_NS = 1_000_000_000
S = 1e9


@dataclass
class TopicSurvey:
    """Figures of one topic; its messages are noted in the order of the file.

    Attributes:
        num_disordered: messages whose log time lies before that of an earlier one.
        num_header_back: header stamps that lie before an earlier one's, in the order of log time in the file.
        back_ns: how far the worst of them goes back.
        header_span_ns: first and last header stamp; None without stamps.
    """

    num_messages: int = 0
    first_ns: int = 0
    last_ns: int = 0
    num_disordered: int = 0
    num_header_back: int = 0
    back_ns: int = 0
    header_span_ns: tuple[int, int] | None = None
    _newest_header_ns: int = 0
    _offsets: list[int] = field(default_factory=list)
    _stride: int = 1
    _num_stamped: int = 0

    def note(self, log_ns: int, header_ns: int) -> None:
        """Take in one message; ``header_ns`` is 0 where there is no stamp."""
        if self.num_messages and log_ns < self.last_ns:
            self.num_disordered += 1
        self.first_ns = min(self.first_ns, log_ns) if self.num_messages else log_ns
        self.last_ns = max(self.last_ns, log_ns)
        self.num_messages += 1
        if header_ns:
            self._note_stamp(log_ns, header_ns)

    def _note_stamp(self, log_ns: int, header_ns: int) -> None:
        first_ns, last_ns = self.header_span_ns or (header_ns, header_ns)
        self.header_span_ns = min(first_ns, header_ns), max(last_ns, header_ns)
        if header_ns < self._newest_header_ns:
            self.num_header_back += 1
            self.back_ns = max(self.back_ns, self._newest_header_ns - header_ns)
        self._newest_header_ns = max(self._newest_header_ns, header_ns)
        if self._num_stamped % self._stride == 0:
            self._offsets.append(log_ns - header_ns)
            if len(self._offsets) > MAX_OFFSETS:
                self._offsets = self._offsets[::2]
                self._stride *= 2
        self._num_stamped += 1

    @property
    def header_offset_ns(self) -> int | None:
        """Log time minus header stamp, the median; None without stamps."""
        return int(statistics.median_low(self._offsets)) if self._offsets else None


def clock_notes(topics: dict[str, TopicSurvey]) -> list[str]:
    """What is odd about the clocks of a bag: headers on another clock, or on two."""
    offsets = {name: o for name, t in sorted(topics.items()) if (o := t.header_offset_ns) is not None}
    notes = []
    far = [name for name, offset in offsets.items() if abs(offset) > OTHER_CLOCK_NS]
    if far:
        shown = ", ".join(f"{name} ({offsets[name] / S:+.1f} s)" for name in far)
        notes.append(f"two clocks: log time minus header stamp is more than a second on {shown}")
    if offsets and max(offsets.values()) - min(offsets.values()) > CLOCKS_APART_NS:
        ahead, behind = min(offsets, key=offsets.__getitem__), max(offsets, key=offsets.__getitem__)
        apart_ms = (offsets[behind] - offsets[ahead]) / 1e6
        notes.append(f"header stamps of {ahead} lie {apart_ms:.0f} ms ahead of those of {behind}")
    return notes
