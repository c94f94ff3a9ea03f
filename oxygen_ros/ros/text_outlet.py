"""Text on its way to others: stream, sentences, complete texts, each also by task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from rclpy.publisher import Publisher
from std_msgs.msg import String

from oxygen_ros.config import OxygenConfig
from oxygen_ros.msg import TextDelta as TextDeltaMessage
from oxygen_ros.ros import qos
from oxygen_ros.ros.conversions import to_delta_message
from oxygen_ros.ros.managed_node import ManagedNode
from oxygen_ros.text.sentences import SentenceSplitter
from oxygen_ros.types import FinishReason, TextDelta

COMPLETE = (FinishReason.STOP, FinishReason.LENGTH)


@dataclass
class _Growing:
    """A text that has not ended."""

    pieces: list[str] = field(default_factory=list)
    splitter: SentenceSplitter = field(default_factory=SentenceSplitter)


class TextOutlet:
    """A TextSink. Sentences go out as they close; a text goes out as a whole only when it came to its end.

    A text that was cancelled, replaced or broken off is not complete: its open sentence and the text as a
    whole are not sent, and the stream says why. Called from one thread at a time.
    """

    def __init__(self, node: ManagedNode, config: OxygenConfig) -> None:
        """Make the publishers."""
        topics, tasks = config.topics, config.text.task_names
        self._node = node
        self._stream = node.create_lifecycle_publisher(TextDeltaMessage, topics.text_stream, qos.stream())
        self._sentence = node.create_lifecycle_publisher(String, topics.text_sentence, qos.stream(50))
        self._complete = node.create_lifecycle_publisher(String, topics.text, qos.latched())
        self._sentences = {
            task: node.create_lifecycle_publisher(String, f"{topics.text}/{task}/sentence", qos.stream(50))
            for task in tasks
        }
        self._completes = {
            task: node.create_lifecycle_publisher(String, f"{topics.text}/{task}", qos.latched())
            for task in tasks
        }
        self._growing: dict[str, _Growing] = {}
        self.num_ended: Counter[str] = Counter()

    def publish_text(self, delta: TextDelta) -> None:
        """Send one piece."""
        self._stream.publish(to_delta_message(delta))
        growing = self._growing.setdefault(delta.request_id, _Growing())
        growing.pieces.append(delta.text)
        self._speak(delta.task, growing.splitter.add(delta.text))
        if delta.finish_reason is None:
            return
        del self._growing[delta.request_id]
        self.num_ended[delta.finish_reason.name.lower()] += 1
        if delta.finish_reason in COMPLETE:
            self._speak(delta.task, growing.splitter.flush())
            self._publish("".join(growing.pieces), self._complete, self._completes.get(delta.task))

    def _speak(self, task: str, sentences: Sequence[str]) -> None:
        for sentence in sentences:
            self._publish(sentence, self._sentence, self._sentences.get(task))

    def _publish(self, text: str, *publishers: Publisher | None) -> None:
        if text.strip():
            for publisher in publishers:
                if publisher is not None:
                    publisher.publish(String(data=text))
