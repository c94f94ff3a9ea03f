"""Where questions and cancels are taken: limits on calls per second, refusals by name. No ROS.

A live topic and a bag are served by the same desk. One thread.
"""

from __future__ import annotations

from collections.abc import Callable

from oxygen_ros.clock import Clock
from oxygen_ros.config import OxygenConfig
from oxygen_ros.engine.engine import Engine
from oxygen_ros.engine.tasks import TextTasks
from oxygen_ros.errors import ContractError
from oxygen_ros.runtime.rate_limit import RateLimit
from oxygen_ros.runtime.refusals import Refusals
from oxygen_ros.runtime.text_intake import MAX_ID_LENGTH, Question, to_request
from oxygen_ros.types import FinishReason, TextDelta, TextKind

STOP_WORDS = frozenset({"stop", "pause", "cancel", "quiet", "silence"})


class QuestionDesk:
    """Hands questions and cancels to the engine; a question that is not taken gets its final message here.

    The exception is an id that is alive: a final message for it would end the other's text.
    """

    def __init__(
        self,
        config: OxygenConfig,
        engine: Engine,
        tasks: TextTasks,
        refusals: Refusals,
        clock: Clock,
        answer: Callable[[TextDelta], None],
        is_active: Callable[[], bool] = lambda: True,
    ) -> None:
        """Open the desk; ``answer`` takes final messages, on the caller's thread."""
        self._engine = engine
        self._tasks = tasks
        self._refusals = refusals
        self._answer = answer
        self._is_active = is_active
        self._questions = RateLimit(config.text.max_calls_per_s, clock)
        self._cancels = RateLimit(config.text.max_calls_per_s, clock)
        self._num_refused = 0

    def ask(self, question: Question, topic: str) -> None:
        """Submit, or refuse by name."""
        if not self._is_active():
            self._refuse(question, topic, "not_active", "the node is not active")
            return
        if not self._questions.allows():
            self._refuse(question, topic, "too_many_calls", "text.max_calls_per_s is exceeded")
            return
        try:
            request = to_request(question, self._tasks)
        except ContractError as error:
            self._refuse(question, topic, error.code, str(error))
            return
        if (refusal := self._engine.submit(request)) is not None:
            code, _, detail = refusal.partition(": ")
            self._refuse(question, topic, code, detail, is_counted=True)

    def hear(self, words: str, topic: str) -> None:
        """Cancel all texts if ``words`` ask for silence."""
        if words.strip().lower().rstrip(".!") not in STOP_WORDS:
            return
        if self._cancels.allows():
            self._engine.cancel()
        else:
            self._refusals.add("too_many_calls", topic, "a voice command")

    def cancel(self, request_id: str, task: str, topic: str) -> int | None:
        """Number of texts that were ended; None if there are too many calls."""
        if not self._cancels.allows():
            self._refusals.add("too_many_calls", topic, "a cancel")
            return None
        return self._engine.cancel(request_id, task)

    def _refuse(
        self, question: Question, topic: str, code: str, detail: str, is_counted: bool = False
    ) -> None:
        if not is_counted:
            self._refusals.add(f"text_{code}", topic, detail)
        shown_id = question.request_id[:MAX_ID_LENGTH]
        if self._engine.is_alive(question.request_id) or self._engine.is_alive(shown_id):
            return
        self._num_refused += 1
        task = question.task if question.task in self._tasks else ""
        kind = self._tasks[task].kind if task else TextKind.ASK
        self._answer(
            TextDelta(
                request_id=shown_id or f"refused-{self._num_refused}",
                task=question.task[:200],
                kind=kind,
                observation_id=0,
                stamp_ns=0,
                seq=0,
                text="",
                num_tokens=0,
                finish_reason=FinishReason.REFUSED,
                detail=f"{code}: {detail}",
            )
        )
