"""Questions and cancels on their way into a bag, each with the moment at which the engine took it in."""

from __future__ import annotations

import threading
from typing import Any

from oxygen_ros.engine.engine import Engine
from oxygen_ros.replay.recording import ASKED, CANCEL, HEARD, event_line
from oxygen_ros.ros.recorder import Recorder
from oxygen_ros.runtime.question_desk import QuestionDesk
from oxygen_ros.runtime.text_intake import Question


class IntakeCount:
    """Counts the moments at which the engine takes in requests; held while it does."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.number = 0

    def __enter__(self) -> None:
        self.lock.acquire()
        self.number += 1

    def __exit__(self, *_: object) -> None:
        self.lock.release()


class RecordedDesk(QuestionDesk):
    """A desk whose questions and cancels are written down, with the intake of the engine they come before."""

    def __init__(self, recorder: Recorder, engine: Engine, *args: Any) -> None:
        """As a QuestionDesk."""
        super().__init__(*args)
        self._recorder = recorder
        self._intakes = IntakeCount()
        engine.watch_intake(self._intakes)

    def ask(self, question: Question, topic: str) -> None:
        """As the desk. In words or not, it is written as a TextRequest."""
        make = self._recorder.make
        with self._intakes.lock:
            self._recorder.line(event_line(ASKED, intake=self._intakes.number + 1))
            self._recorder.make_later("~/ask", lambda: make.question(question))
            super().ask(question, topic)

    def hear(self, words: str, topic: str) -> None:
        """As the desk."""
        with self._intakes.lock:
            self._recorder.line(event_line(HEARD, words=words, intake=self._intakes.number + 1))
            super().hear(words, topic)

    def cancel(self, request_id: str, task: str, topic: str) -> int | None:
        """As the desk."""
        with self._intakes.lock:
            intake = self._intakes.number + 1
            self._recorder.line(event_line(CANCEL, request_id=request_id, task=task, intake=intake))
            return super().cancel(request_id, task, topic)
