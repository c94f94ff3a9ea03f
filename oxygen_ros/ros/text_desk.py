"""Where questions and cancels come in: topics, one service, a limit on calls per second. Executor thread."""

from __future__ import annotations

from collections.abc import Callable

from std_msgs.msg import String

from oxygen_ros.config import OxygenConfig
from oxygen_ros.engine.engine import Engine
from oxygen_ros.engine.tasks import TextTasks
from oxygen_ros.errors import ContractError
from oxygen_ros.msg import TextRequest as TextRequestMessage
from oxygen_ros.ros import qos
from oxygen_ros.ros.managed_node import ManagedNode
from oxygen_ros.runtime.rate_limit import RateLimit
from oxygen_ros.runtime.text_intake import Question, to_request
from oxygen_ros.srv import CancelText
from oxygen_ros.types import FinishReason, TextDelta, TextKind

STOP_WORDS = frozenset({"stop", "pause", "cancel", "quiet", "silence"})


class TextDesk:
    """Hands questions and cancels to the engine; a question that is not taken gets its final message here.

    The exception is an id that is alive: a final message for it would end the other's text.
    """

    def __init__(
        self,
        node: ManagedNode,
        config: OxygenConfig,
        engine: Engine,
        tasks: TextTasks,
        answer: Callable[[TextDelta], None],
    ) -> None:
        """Subscribe and offer the service; ``answer`` takes final messages, on the executor's thread."""
        self._node = node
        self._config = config
        self._engine = engine
        self._tasks = tasks
        self._answer = answer
        self._questions = RateLimit(config.text.max_calls_per_s, node.steady)
        self._cancels = RateLimit(config.text.max_calls_per_s, node.steady)
        self._num_refused = 0
        topics = config.topics
        node.create_subscription(TextRequestMessage, topics.ask, self._on_ask, qos.stream(50))
        node.create_subscription(String, topics.ask_text, self._on_ask_text, qos.stream(50))
        if topics.voice_command:
            node.create_subscription(String, topics.voice_command, self._on_voice, qos.stream(50))
        node.create_service(CancelText, topics.cancel_text, self._on_cancel)

    def _on_ask(self, message: TextRequestMessage) -> None:
        question = Question(
            prompt=message.prompt,
            request_id=message.request_id,
            task=message.task,
            max_tokens=message.max_tokens,
            priority=message.priority,
            temperature=message.temperature,
            top_k=message.top_k,
            seed=message.seed,
            max_age_s=message.max_age_s,
        )
        self._take(question, self._config.topics.ask)

    def _on_ask_text(self, message: String) -> None:
        self._take(Question(prompt=message.data.strip()), self._config.topics.ask_text)

    def _take(self, question: Question, topic: str) -> None:
        """Submit, or refuse by name."""
        if not self._node.is_active:
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

    def _refuse(
        self, question: Question, topic: str, code: str, detail: str, is_counted: bool = False
    ) -> None:
        if not is_counted:
            self._node.refusals.add(f"text_{code}", topic, detail)
        if self._engine.is_alive(question.request_id):
            return
        self._num_refused += 1
        task = question.task if question.task in self._tasks else ""
        kind = self._tasks[task].kind if task else TextKind.ASK
        self._answer(
            TextDelta(
                request_id=question.request_id[:200] or f"refused-{self._num_refused}",
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

    def _on_voice(self, message: String) -> None:
        if message.data.strip().lower().rstrip(".!") not in STOP_WORDS:
            return
        if self._cancels.allows():
            self._engine.cancel()
        else:
            self._node.refusals.add("too_many_calls", self._config.topics.voice_command, "a voice command")

    def _on_cancel(self, request: CancelText.Request, response: CancelText.Response) -> CancelText.Response:
        if not self._cancels.allows():
            self._node.refusals.add("too_many_calls", self._config.topics.cancel_text, "a cancel")
            response.message = "too many calls per second"
            return response
        response.num_cancelled = self._engine.cancel(request.request_id, request.task)
        response.success = response.num_cancelled > 0
        response.message = f"{response.num_cancelled} ended" if response.success else "nothing matched"
        return response
