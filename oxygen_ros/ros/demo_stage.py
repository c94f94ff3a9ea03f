"""The stand-in demonstration but for its nodes: the simulated robot and those who listen."""

from __future__ import annotations

import threading
from typing import Any

import rclpy.utilities
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import ExternalShutdownException, ShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String

from oxygen_ros.config import load_config
from oxygen_ros.msg import ActionChunk, CycleReport, PlayerState, TextDelta
from oxygen_ros.ros import qos
from oxygen_ros.ros.demo_screen import Screen
from oxygen_ros.ros.parameters import config_dirs
from oxygen_ros.ros.simulated_robot import SimulatedRobot

INSTRUCTIONS = ("put the red cube in the bowl", "wave to the visitor")
QUESTION = "What do you see?"
CHANGE_AFTER_CYCLES = 25
ASK_EVERY_CYCLES = 20
_STATUS = {
    CycleReport.STATUS_ACTED: "acted",
    CycleReport.STATUS_WAITING: "waits",
    CycleReport.STATUS_HOLDING: "holds",
    CycleReport.STATUS_FAILED: "FAILED",
}


class Listener(Node):
    """A speaker and a memory as others would write them, and whoever watches the cycle."""

    def __init__(self, screen: Screen, **kwargs: Any) -> None:
        super().__init__("demo_listener", **kwargs)
        self._screen = screen
        self._chunk: ActionChunk | None = None
        self._state: PlayerState | None = None
        self._grown: dict[str, str] = {}
        self._num_cycles = 0
        self._instruct = self.create_publisher(String, "oxygen_node/instruction", qos.latched())
        self._ask = self.create_publisher(String, "oxygen_node/ask_text", qos.stream(10))
        for message_type, topic, hear, profile in (
            (String, "oxygen_node/text_sentence", self._on_sentence, qos.stream(50)),
            (String, "oxygen_node/text", self._on_text, qos.latched()),
            (TextDelta, "oxygen_node/text_stream", self._on_delta, qos.pieces()),
            (ActionChunk, "oxygen_node/action_chunk", self._on_chunk, qos.newest(5)),
            (PlayerState, "action_player/state", self._on_state, qos.newest(10)),
            (CycleReport, "oxygen_node/cycle_report", self._on_report, qos.stream(50)),
            (DiagnosticArray, "/diagnostics", self._on_health, qos.stream(10)),
        ):
            self.create_subscription(message_type, topic, hear, profile)
        self._instruct.publish(String(data=INSTRUCTIONS[0]))

    def _on_sentence(self, message: String) -> None:
        self._screen.count("sentence")
        self._screen.say(f"    speech: {message.data}", "speech")

    def _on_text(self, message: String) -> None:
        self._screen.count("text")
        self._screen.say(f"    memory: {message.data}", "memory")

    def _on_delta(self, message: TextDelta) -> None:
        self._screen.count("stream")
        self._grown[message.request_id] = self._grown.get(message.request_id, "") + message.text

    def _on_chunk(self, message: ActionChunk) -> None:
        if message.horizon:
            self._screen.count("actions")
            self._chunk = message

    def _on_state(self, message: PlayerState) -> None:
        self._screen.count("player state")
        self._state = message

    def _on_health(self, _: DiagnosticArray) -> None:
        self._screen.count("diagnostics")

    def _on_report(self, message: CycleReport) -> None:
        self._screen.count("report")
        grown = ", ".join(f"{name} +{text!r}" for name, text in self._grown.items() if text)
        self._grown.clear()
        action = self._shown_action() if message.status == CycleReport.STATUS_ACTED else message.reason
        played = self._state.actions_played if self._state else 0
        self._screen.say(
            f"cycle {message.cycle_id:4d} {_STATUS[message.status]:<6} | {action} | played {played:4d} "
            f"| slack {message.slack_ms:4.0f} ms | text {grown or '-'}"
        )
        self._num_cycles += 1
        if self._num_cycles % CHANGE_AFTER_CYCLES == 0:
            instruction = INSTRUCTIONS[self._num_cycles // CHANGE_AFTER_CYCLES % len(INSTRUCTIONS)]
            self._screen.say(f"    told: {instruction}")
            self._instruct.publish(String(data=instruction))
        if self._num_cycles % ASK_EVERY_CYCLES == ASK_EVERY_CYCLES // 2:
            self._screen.say(f"    asked: {QUESTION}")
            self._ask.publish(String(data=QUESTION))

    def _shown_action(self) -> str:
        if self._chunk is None:
            return "-"
        first = [f"{value:+.2f}" for value in self._chunk.actions[:3]]
        return (
            f"chunk {self._chunk.chunk_id:3d} [{' '.join(first)} ..] after {self._chunk.latency_ms:3.0f} ms"
        )


class DemoStage:
    """Robot and listeners in this process, spun by a thread of their own."""

    def __init__(self, preset: str, namespace: str, is_plain: bool) -> None:
        """Start all of them."""
        self.screen = Screen(is_plain)
        config = load_config(
            preset=preset, device="cpu", overrides={"runner.kind": "fake"}, config_dirs=config_dirs()
        ).config
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        self._nodes = [
            SimulatedRobot(config, namespace=namespace),
            Listener(self.screen, namespace=namespace),
        ]
        self._executor = SingleThreadedExecutor()
        for node in self._nodes:
            self._executor.add_node(node)
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop all of them."""
        self._executor.shutdown(timeout_sec=1.0)
        self._thread.join(1.0)
        for node in self._nodes:
            node.destroy_node()
        rclpy.utilities.try_shutdown()

    def _spin(self) -> None:
        try:
            self._executor.spin()
        except (ShutdownException, ExternalShutdownException):
            return
