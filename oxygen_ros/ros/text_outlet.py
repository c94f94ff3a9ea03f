"""Text on its way to others: stream, sentences, complete texts, each also by task."""

from __future__ import annotations

from rclpy.publisher import Publisher
from std_msgs.msg import String

from oxygen_ros.config import OxygenConfig
from oxygen_ros.msg import TextDelta as TextDeltaMessage
from oxygen_ros.ros import qos
from oxygen_ros.ros.conversions import to_delta_message
from oxygen_ros.ros.managed_node import ManagedNode
from oxygen_ros.runtime.text_release import TextRelease
from oxygen_ros.types import TextDelta


class TextOutlet:
    """A TextSink. What a text that was broken off leaves open is not sent; the stream says why.

    The stream is sent in every state of the node: who asks gets a final message from an inactive one too.
    """

    def __init__(self, node: ManagedNode, config: OxygenConfig) -> None:
        """Make the publishers."""
        topics, tasks = config.topics, config.text.task_names
        self._stream = node.create_publisher(TextDeltaMessage, topics.text_stream, qos.stream())
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
        self._release = TextRelease()

    def publish_text(self, delta: TextDelta) -> None:
        """Send one piece, and what it sets free."""
        self._stream.publish(to_delta_message(delta))
        released = self._release.add(delta)
        for sentence in released.sentences:
            _publish(sentence, self._sentence, self._sentences.get(delta.task))
        if released.complete:
            _publish(released.complete, self._complete, self._completes.get(delta.task))


def _publish(text: str, *publishers: Publisher | None) -> None:
    for publisher in publishers:
        if publisher is not None:
            publisher.publish(String(data=text))
