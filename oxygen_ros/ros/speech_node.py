"""Says what the brain writes: sentences to a text-to-speech command, silent at once when asked to be.

An example of a consumer to copy: see docs/consumers.md. Subscribed: sentences, the stream of pieces (for
cancels), ~/stop. Published: ~/is_speaking, /diagnostics.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.clock import Clock as RosClock
from rclpy.clock_type import ClockType
from std_msgs.msg import Bool, Empty, String

from oxygen_ros.errors import ContractError
from oxygen_ros.msg import TextDelta
from oxygen_ros.ros import qos
from oxygen_ros.ros.consumer_node import ConsumerNode, run_consumer
from oxygen_ros.ros.diagnostics import ERROR, OK, status
from oxygen_ros.ros.entities import wait_until_acknowledged
from oxygen_ros.ros.text_inlet import from_delta_message
from oxygen_ros.speech.settings import SpeechSettings
from oxygen_ros.speech.speaker import Speaker
from oxygen_ros.speech.voice import make_voice

STEP_S = 0.05


class SpeechNode(ConsumerNode):
    """Topics around a Speaker. No callback waits for the voice: a timer looks after it."""

    def __init__(self, name: str = "speech_node", **kwargs: Any) -> None:
        """See ``ConsumerNode``."""
        super().__init__(name, **kwargs)
        settings = self.settings(SpeechSettings)
        log = self.get_logger()
        self._voice = make_voice(settings.command, self.steady, log.info, log.warning)
        self._speaker = Speaker(self._voice, settings, self.steady, self.refusals)
        self._told: bool | None = None
        self._is_speaking = self.create_publisher(Bool, "~/is_speaking", qos.latched())
        self.create_subscription(String, settings.text_sentence, self._on_sentence, qos.stream(50))
        self.create_subscription(TextDelta, settings.text_stream, self._on_delta, qos.pieces())
        self.create_subscription(Empty, "~/stop", self._on_stop, qos.newest())
        self.create_timer(STEP_S, self._on_step, clock=RosClock(clock_type=ClockType.STEADY_TIME))

    def close(self) -> None:
        """Fall silent, and say so: a microphone that waits for the end of speech is opened."""
        self._voice.close()
        if self._told:
            self._told = False
            self._is_speaking.publish(Bool(data=False))
            wait_until_acknowledged(self, self.steady)

    def health_line(self) -> DiagnosticStatus:
        """Whether the voice works, and what waits."""
        speaker = self._speaker
        level, message = (ERROR, speaker.failure) if speaker.failure else (OK, "ready")
        values: dict[str, object] = {"said": speaker.num_said, "waiting": speaker.num_waiting}
        values |= {f"refused_{kind}": count for kind, count in sorted(self.refusals.counts().items())}
        return status(f"{self.get_fully_qualified_name().strip('/')}: speech", level, message, values)

    def _on_sentence(self, message: String) -> None:
        self._speaker.say(message.data)
        self._on_step()

    def _on_delta(self, message: TextDelta) -> None:
        try:
            self._speaker.hear(from_delta_message(message))
        except ContractError as error:
            self.refusals.add(error.code, "text_stream", error.message)

    def _on_stop(self, _: Empty) -> None:
        self._speaker.stop()

    def _on_step(self) -> None:
        self._speaker.step()
        if self._speaker.is_speaking != self._told:
            self._told = self._speaker.is_speaking
            self._is_speaking.publish(Bool(data=self._told))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the speech node until a signal ends it."""
    return run_consumer(lambda options: SpeechNode(arguments=options), arguments)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(main())
