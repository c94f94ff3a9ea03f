"""Which sentence of each text task is shown at which moment: as it grows, and long enough to be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from oxygen_ros.demo.recording import Text
from oxygen_ros.demo.verdict import Mark
from oxygen_ros.runtime.stamps import S

STAYS_NS = S
"""A sentence that has ended stays this long before the task's newest takes its place."""


@dataclass(frozen=True)
class Caption:
    """One line: the task, what is written so far, and once it has ended its mark.

    Attributes:
        age_s: what it is about was so many seconds old when it ended.
    """

    task: str
    text: str
    mark: Mark | None = None
    age_s: float = 0.0


class Captions:
    """The captions of a run. Asked for moments in the order of time or not."""

    def __init__(self, texts: list[Text], marks: Mapping[str, Mark]) -> None:
        self._marks = marks
        self._shown: dict[str, list[Text]] = {}
        worth = (text for text in texts if text.text and (text.is_complete or not text.reason))
        for text in sorted(worth, key=lambda t: t.pieces[0][0]):
            shown = self._shown.setdefault(text.task, [])
            if not shown or text.pieces[0][0] >= shown[-1].end_ns + STAYS_NS:
                shown.append(text)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Text tasks that write anything, in the order of their names."""
        return tuple(sorted(self._shown))

    def at(self, time_ns: int, since_ns: int = 0) -> list[Caption]:
        """One caption a task that has begun to write, in the order of ``tasks``.

        Texts about observations older than ``since_ns`` are left out.
        """
        found = []
        for task in self.tasks:
            begun = [
                text
                for text in self._shown[task]
                if text.pieces[0][0] <= time_ns and text.born_ns >= since_ns
            ]
            if begun:
                found.append(self._caption(task, begun[-1], time_ns))
        return found

    def _caption(self, task: str, text: Text, time_ns: int) -> Caption:
        words = "".join(piece for at_ns, piece in text.pieces if at_ns <= time_ns).strip()
        if time_ns < text.end_ns:
            return Caption(task, words)
        return Caption(task, words, self._marks.get(text.request_id), (text.end_ns - text.born_ns) / S)
