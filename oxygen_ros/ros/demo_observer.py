"""Watches a demonstration on its topics: tells the robot its task, asks, judges, shows, records.

Everything is heard in CDR and written as it came; only what is shown is read. Messages are looked for instead
of waking an executor: with hundreds a second that saves a fifth of a core.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import Float64MultiArray, String

from oxygen_ros.clock import SteadyClock
from oxygen_ros.config import OxygenConfig, QosConfig
from oxygen_ros.msg import ActionChunk, CycleReport, PlayerState, TextDelta, TextRequest
from oxygen_ros.ros import qos
from oxygen_ros.ros.conversions import to_jpeg
from oxygen_ros.ros.demo_recorder import RunRecorder
from oxygen_ros.ros.demo_view import EXACT, FALSE, INEXACT, UNJUDGED, DemoView, ShownText
from oxygen_ros.ros.never_group import NeverGroup
from oxygen_ros.runtime.stamps import from_time
from oxygen_ros.sim.grammar import questions
from oxygen_ros.sim.judge import Judge, knows
from oxygen_ros.sim.rules import is_over
from oxygen_ros.sim.scorer import ASK
from oxygen_ros.sim.truth import COLOURS
from oxygen_ros.sim.truth_message import TruthMessage, from_json
from oxygen_ros.types import FinishReason

S = 1_000_000_000
FIRST_QUESTION_NS = 3 * S
ASK_EVERY_NS = 6 * S
TICKS_PER_PICTURE = 10
"""One camera picture in so many is recorded."""
REMEMBERED_OBSERVATIONS = 64
COMPLETE = (FinishReason.STOP, FinishReason.LENGTH)
STRIDE = 5
"""Steps from question to question, so that kinds of questions take turns."""


class DemoObserver(Node):
    """Nothing else of the demonstration is in the process of this node.

    Attributes:
        view: what is shown; change or read it with ``lock``.
    """

    def __init__(
        self,
        config: OxygenConfig,
        view: DemoView,
        recorder: RunRecorder,
        asked: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        """Listen, and wait for the robot.

        Args:
            config: of the brain.
            view: to be kept up to date.
            recorder: writes what is heard.
            asked: questions, in turn; none: those of the grammar.
            kwargs: of ``rclpy.node.Node``.
        """
        super().__init__("demo", start_parameter_services=False, **kwargs)
        self.view, self.lock = view, Lock()
        self._recorder = recorder
        self._steady = SteadyClock()
        self._judge = Judge()
        view.tally = self._judge.tally
        known = questions()
        turns = (known[number * STRIDE % len(known)] for number in range(len(known)))
        self._questions = itertools.cycle(list(asked) or list(turns))
        self._num_asked = 0
        self._asked: dict[str, str] = {}
        self._told: OrderedDict[int, str] = OrderedDict()
        self._now: TruthMessage | None = None
        self._has_ended_well = False
        self._num_pictures = dict.fromkeys(config.robot.camera_roles, 0)
        self._heard: list[tuple[Any, Any, Callable[[bytes], None]]] = []
        self._instruct = self.create_publisher(String, "oxygen_node/instruction", qos.latched())
        self._ask = self.create_publisher(TextRequest, "oxygen_node/ask", qos.stream(10))
        self._listen(config)

    def _listen(self, config: OxygenConfig) -> None:
        sensor = qos.sensor(QosConfig())
        joints = config.robot.joint_topics[config.robot.joint_topic_names[0]].topic
        for kind, topic, profile, hear in (
            (String, "tabletop_node/truth", qos.stream(100), self._on_truth),
            (CompressedImage, "tabletop_node/show/compressed", qos.newest(5), None),
            (JointState, joints, sensor, None),
            (Float64MultiArray, "action_player/joint_command", qos.newest(20), self._on_command),
            (PlayerState, "action_player/state", qos.newest(20), self._on_player),
            (ActionChunk, "oxygen_node/action_chunk", qos.newest(10), self._on_chunk),
            (CycleReport, "oxygen_node/cycle_report", qos.stream(50), self._on_report),
            (TextDelta, "oxygen_node/text_stream", qos.pieces(), self._on_delta),
            (TextRequest, "oxygen_node/ask", qos.stream(10), None),
            (String, "oxygen_node/instruction", qos.latched(), None),
            (String, "oxygen_node/text", qos.latched(), None),
            (String, "oxygen_node/text_sentence", qos.stream(50), None),
            *((String, f"oxygen_node/text/{task}", qos.latched(), None) for task in config.text.task_names),
            (DiagnosticArray, "/diagnostics", qos.stream(10), None),
        ):
            self._hear(kind, topic, profile, hear)
        for role in config.robot.camera_roles:
            topic = config.robot.cameras[role].topic
            keep = partial(self._on_picture, role, self.resolve_topic_name(f"{topic}/compressed"))
            self._subscribe(Image, topic, sensor, keep)

    def _hear(
        self, kind: Any, topic: str, profile: QoSProfile, hear: Callable[[Any, int], None] | None
    ) -> None:
        name = self.resolve_topic_name(topic)

        is_latched = profile.durability == DurabilityPolicy.TRANSIENT_LOCAL

        def on_bytes(data: bytes) -> None:
            self._recorder.write(name, kind, data, self._ros_ns(), is_latched=is_latched)
            if hear is not None:
                message = deserialize_message(data, kind)
                with self.lock:
                    hear(message, self._steady.now_ns())

        self._subscribe(kind, topic, profile, on_bytes)

    def _subscribe(self, kind: Any, topic: str, profile: QoSProfile, take: Callable[[bytes], None]) -> None:
        subscription = self.create_subscription(
            kind,
            topic,
            lambda _: None,
            profile,
            callback_group=NeverGroup(),
            event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
        )
        self._heard.append((subscription, kind, take))

    def poll(self) -> None:
        """Take what has come since the last time, and ask what is due."""
        for subscription, kind, take in self._heard:
            with subscription.handle:
                while (taken := subscription.handle.take_message(kind, True)) is not None:
                    take(taken[0])
        with self.lock:
            self._ask_what_is_due(self._steady.now_ns())

    def _ros_ns(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _on_picture(self, role: str, topic: str, data: bytes) -> None:
        """Keep one picture in ``TICKS_PER_PICTURE``, as JPEG."""
        self._num_pictures[role] += 1
        if self._num_pictures[role] % TICKS_PER_PICTURE != 1:
            return
        image = deserialize_message(data, Image)
        pixels = np.frombuffer(bytes(image.data), np.uint8).reshape(image.height, image.width, 3)
        small = serialize_message(to_jpeg(pixels, from_time(image.header.stamp), role))
        self._recorder.write(topic, CompressedImage, small, self._ros_ns())

    def _on_truth(self, message: String, now_ns: int) -> None:
        truth, view = from_json(message.data), self.view
        self._judge.see(truth)
        if self._now is None or truth.episode != self._now.episode:
            self._begin_episode(truth, now_ns)
        self._now = truth
        view.episode_ticks = truth.ticks
        held = truth.truth.held
        view.state = "hand empty" if held is None else f"holds the {COLOURS[held]} cube"
        view.state = "done" if truth.is_done else view.state
        if not self._has_ended_well and is_over(truth.truth, truth.task):
            self._has_ended_well = True
            view.num_ended += 1
            view.num_successes += 1
            view.tell(f"episode {truth.episode} done", now_ns)

    def _begin_episode(self, truth: TruthMessage, now_ns: int) -> None:
        view = self.view
        if self._now is not None and not self._has_ended_well:
            view.num_ended += 1
            view.num_successes += self._now.is_done
            words = "done" if self._now.is_done else "not done in time"
            view.tell(f"episode {self._now.episode} {words}", now_ns)
        self._has_ended_well = False
        view.task, view.episode = truth.instruction, truth.episode
        view.tell(f"episode {truth.episode}, seed {truth.seed}: {truth.instruction}", now_ns)
        self._instruct.publish(String(data=truth.instruction))

    def _on_command(self, message: Float64MultiArray, now_ns: int) -> None:
        if not self.view.begin_ns:
            self.view.begin_ns = now_ns
            self._recorder.begin(self._ros_ns())
        self.view.actions.note(now_ns)

    def _on_player(self, message: PlayerState, now_ns: int) -> None:
        self.view.ticks_missed = message.ticks_missed

    def _on_chunk(self, message: ActionChunk, now_ns: int) -> None:
        self._told[message.observation_id] = message.instruction
        while len(self._told) > REMEMBERED_OBSERVATIONS:
            self._told.popitem(last=False)

    def _on_report(self, message: CycleReport, now_ns: int) -> None:
        view = self.view
        if message.status == CycleReport.STATUS_ACTED:
            view.cycles.note(now_ns)
            view.latency_ms = message.action_latency_ms
            view.note = ""
        elif view.begin_ns:
            view.note = message.reason
        view.slack_ms, view.decode_steps = message.slack_ms, message.decode_steps
        view.rows, view.waiting, view.num_late = (
            message.text_rows,
            message.texts_waiting,
            message.deadline_misses,
        )

    def _on_delta(self, message: TextDelta, now_ns: int) -> None:
        view, name = self.view, message.request_id
        shown = view.growing.setdefault(name, ShownText(message.task, self._asked.get(name, "")))
        shown.text += message.text
        if message.is_final:
            del view.growing[name]
            self._asked.pop(name, None)
            self._judge_text(shown, message)
            view.end_text(shown, now_ns)

    def _judge_text(self, shown: ShownText, message: TextDelta) -> None:
        reason = FinishReason(message.finish_reason)
        shown.mark = UNJUDGED
        if reason not in COMPLETE:
            shown.note = message.detail or reason.name.lower()
            return
        if shown.kind == ASK and not knows(shown.question):
            shown.note = "not judged: not a question of the grammar"
            return
        verdict = self._judge.judge(
            shown.kind,
            shown.question,
            shown.text,
            from_time(message.header.stamp),
            self._told.get(message.observation_id, ""),
        )
        if verdict is not None:
            exact = EXACT if shown.text == verdict.true_text else INEXACT
            shown.mark = FALSE if verdict.is_false_claim else exact

    def _ask_what_is_due(self, now_ns: int) -> None:
        view = self.view
        due_ns = view.begin_ns + FIRST_QUESTION_NS + self._num_asked * ASK_EVERY_NS
        if not view.begin_ns or now_ns < due_ns:
            return
        self._num_asked += 1
        question, request_id = next(self._questions), f"demo-{self._num_asked}"
        self._asked[request_id] = question
        self._ask.publish(TextRequest(request_id=request_id, task=ASK, prompt=question))
        if self._recorder.is_full:
            view.note = "the recording is full; the run goes on"
