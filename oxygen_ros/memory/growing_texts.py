"""Puts the pieces of texts together. Bounded: what never ends is forgotten."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from oxygen_ros.memory.line import Line
from oxygen_ros.types import TextDelta

MAX_GROWING = 256


@dataclass
class _Growing:
    pieces: list[str] = field(default_factory=list)
    next_seq: int = 0
    is_whole: bool = True


class GrowingTexts:
    """One entry per request that has begun and not ended. Sequence 0 begins anew: ids may be given again."""

    def __init__(self) -> None:
        self._growing: OrderedDict[str, _Growing] = OrderedDict()

    def __len__(self) -> int:
        return len(self._growing)

    def add(self, delta: TextDelta, received_ns: int) -> Line | None:
        """The whole text if ``delta`` is its last piece, also when nothing was written."""
        if delta.seq == 0:
            self._growing.pop(delta.request_id, None)
        growing = self._growing.setdefault(delta.request_id, _Growing())
        growing.is_whole &= delta.seq == growing.next_seq
        growing.next_seq = delta.seq + 1
        growing.pieces.append(delta.text)
        if delta.finish_reason is None:
            if len(self._growing) > MAX_GROWING:
                self._growing.popitem(last=False)
            return None
        del self._growing[delta.request_id]
        return Line(
            stamp_ns=delta.stamp_ns,
            received_ns=received_ns,
            task=delta.task,
            kind=delta.kind,
            request_id=delta.request_id,
            text="".join(growing.pieces),
            finish_reason=delta.finish_reason,
            is_whole=growing.is_whole,
        )
