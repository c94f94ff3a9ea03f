"""Topics and the service that questions and cancels come in by. Executor thread."""

from __future__ import annotations

from std_msgs.msg import String

from oxygen_ros.config import OxygenConfig
from oxygen_ros.msg import TextRequest as TextRequestMessage
from oxygen_ros.ros import qos
from oxygen_ros.ros.managed_node import ManagedNode
from oxygen_ros.runtime.question_desk import QuestionDesk
from oxygen_ros.runtime.text_intake import Question
from oxygen_ros.srv import CancelText


class TextDesk:
    """The topics of a QuestionDesk."""

    def __init__(self, node: ManagedNode, config: OxygenConfig, desk: QuestionDesk) -> None:
        """Subscribe and offer the service."""
        self._topics = config.topics
        self._desk = desk
        topics = config.topics
        node.create_subscription(TextRequestMessage, topics.ask, self._on_ask, qos.stream(50))
        node.create_subscription(String, topics.ask_text, self._on_ask_text, qos.stream(50))
        if topics.voice_command:
            node.create_subscription(String, topics.voice_command, self._on_voice, qos.stream(50))
        node.create_service(CancelText, topics.cancel_text, self._on_cancel)

    def _on_ask(self, message: TextRequestMessage) -> None:
        self._desk.ask(Question.of(message), self._topics.ask)

    def _on_ask_text(self, message: String) -> None:
        self._desk.ask(Question(prompt=message.data.strip()), self._topics.ask_text)

    def _on_voice(self, message: String) -> None:
        self._desk.hear(message.data, self._topics.voice_command)

    def _on_cancel(self, request: CancelText.Request, response: CancelText.Response) -> CancelText.Response:
        num_cancelled = self._desk.cancel(request.request_id, request.task, self._topics.cancel_text)
        if num_cancelled is None:
            response.message = "too many calls per second"
            return response
        response.num_cancelled = num_cancelled
        response.success = num_cancelled > 0
        response.message = f"{num_cancelled} ended" if response.success else "nothing matched"
        return response
