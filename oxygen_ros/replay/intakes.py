"""Questions and cancels of a recorded run, given to the engine at the same moment in logical time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from oxygen_ros.replay.recording import Wish
from oxygen_ros.replay.topics import RECORDING
from oxygen_ros.runtime.question_desk import QuestionDesk


class Intakes:
    """A gate around the engine's intakes: it counts them, and lets each wish through at its recorded place.

    A wish is spoken when its time comes, but neither before the intake it came after nor later than the one
    it came before.
    """

    def __init__(self, wishes: Sequence[Wish], desk: QuestionDesk) -> None:
        self._waiting = deque(wishes)
        self._desk = desk
        self._number = 0
        self._num_due = 0

    def arrive(self) -> None:
        """The time of the next wish has come."""
        self._num_due += 1
        self._speak_due()

    def __enter__(self) -> None:
        self._number += 1
        while self._waiting and self._waiting[0].intake <= self._number:
            self._speak()

    def __exit__(self, *_: object) -> None:
        self._speak_due()

    def _speak_due(self) -> None:
        while self._waiting and self._num_due > 0 and self._waiting[0].intake <= self._number + 1:
            self._speak()

    def _speak(self) -> None:
        self._num_due -= 1
        speak(self._waiting.popleft(), self._desk)


def speak(wish: Wish, desk: QuestionDesk) -> None:
    """Say to the desk what was said then."""
    if wish.question is not None:
        desk.ask(wish.question, RECORDING)
    elif wish.words is not None:
        desk.hear(wish.words, RECORDING)
    elif wish.cancelled is not None:
        desk.cancel(*wish.cancelled, RECORDING)
