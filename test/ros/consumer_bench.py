"""A consumer in the bench's executor, fed by the bench's probe or by a real brain."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

from rclpy.parameter import Parameter
from ros_bench import Bench
from std_msgs.msg import Empty, String

from oxygen_ros.msg import TextDelta
from oxygen_ros.ros import qos
from oxygen_ros.ros.conversions import to_time


def add_senders(b: Bench) -> None:
    """The probe can send what a brain would."""
    b.probe.add_sender("delta", TextDelta, "oxygen_node/text_stream", qos.stream(500))
    b.probe.add_sender("sentence", String, "oxygen_node/text_sentence", qos.stream(50))
    b.probe.add_sender("silence", Empty, "speech_node/stop", qos.newest())


def until_connected(b: Bench, name: str, count: int = 2) -> None:
    """Wait until ``count`` subscriptions are there: the probe's own and the consumer's."""
    b.until(lambda: b.probe.senders[name].get_subscription_count() == count, f"{name} connected")


@contextmanager
def consumer(b: Bench, node_class: Any, **parameters: Any):
    """A node of ``node_class`` on the bench; the probe can send what a brain would."""
    add_senders(b)
    node = node_class(
        context=b.context,
        namespace=b.namespace,
        parameter_overrides=[Parameter(name, value=value) for name, value in parameters.items()],
    )
    b.executor.add_node(node)
    try:
        heard = {subscription.topic_name for subscription in node.subscriptions}
        for name in ("delta", "sentence"):
            if b.probe.senders[name].topic_name in heard:
                until_connected(b, name)
        yield node
    finally:
        b.executor.remove_node(node)
        node.shut_down()
        node.destroy_node()


def delta(
    request_id: str, seq: int, text: str = "", reason: int = 0, *, task="ask", stamp_ns: int = 5
) -> TextDelta:
    message = TextDelta(request_id=request_id, task=task, observation_id=1, seq=seq, text=text)
    message.is_final, message.finish_reason = reason != TextDelta.FINISH_NONE, reason
    message.header.stamp = to_time(stamp_ns)
    return message
