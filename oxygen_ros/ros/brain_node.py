"""The brain: cameras, joints and questions in; action chunks, text and reports out, once per control cycle.

Three threads: the executor stores inputs and wakes the control thread by a timer; the control thread runs the
cycle; the main thread waits for signals. Why: docs/decisions/0002-control-thread.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.publisher import Publisher
from rclpy.timer import Timer
from std_srvs.srv import Trigger

from oxygen_ros.assembly import Brain, build_brain
from oxygen_ros.assembly.brain import engine_settings
from oxygen_ros.config import OxygenConfig
from oxygen_ros.errors import ConfigError, OxygenError
from oxygen_ros.msg import CycleReport as CycleReportMessage
from oxygen_ros.replay.recorded_steps import NotedSteps
from oxygen_ros.ros import qos
from oxygen_ros.ros.action_outlet import ActionOutlet
from oxygen_ros.ros.brain_health import BrainHealth
from oxygen_ros.ros.bridge import bridge_reader
from oxygen_ros.ros.conversions import to_report_message
from oxygen_ros.ros.joint_check import JointCheck
from oxygen_ros.ros.managed_node import ManagedNode
from oxygen_ros.ros.node_clock import NodeClock
from oxygen_ros.ros.sensors import SensorInputs
from oxygen_ros.ros.text_desk import TextDesk
from oxygen_ros.ros.text_outlet import TextOutlet
from oxygen_ros.runtime.control_cycle import ControlCycle, Numbering
from oxygen_ros.runtime.control_thread import ControlThread
from oxygen_ros.runtime.mailbox import Mailbox
from oxygen_ros.runtime.pictures import MessageReader
from oxygen_ros.runtime.ports import TextSink
from oxygen_ros.runtime.question_desk import QuestionDesk
from oxygen_ros.runtime.readiness import MailboxRules
from oxygen_ros.runtime.throttle import Throttle
from oxygen_ros.types import CycleReport, CycleStatus

if TYPE_CHECKING:  # its bag library is needed by robots that record, and by nobody else
    from oxygen_ros.ros.recorder import Recorder

MAX_FAILURES = 3
"""Failed cycles in a row after which the node gives up and goes through error processing."""
CYCLE_ENDS_WITHIN_S = 1.0


@dataclass(frozen=True)
class Parts:
    """What configure makes."""

    brain: Brain
    mailbox: Mailbox
    sensors: SensorInputs
    actions: ActionOutlet
    health: BrainHealth
    cycle: ControlCycle
    report: Publisher
    recorder: Recorder | None


class OxygenNode(ManagedNode):
    """Runs one control cycle per action-execution window while active."""

    def __init__(self, name: str = "oxygen_node", **kwargs: Any) -> None:
        """See ``ManagedNode``."""
        self._parts: Parts | None = None
        self._thread: ControlThread | None = None
        self._former: ControlThread | None = None
        self._timer: Timer | None = None
        self._numbering = Numbering()
        self._last_observation_id = 0
        self._num_failures = 0
        super().__init__(name, **kwargs)
        self._late = Throttle(self.steady)

    def prepare(self, config: OxygenConfig) -> Brain:
        """Load the model and warm it up."""
        steps = NotedSteps(0, engine_settings(config).steps) if config.record else None
        return build_brain(config, self.steady, steps=steps)

    async def look_around(self, config: OxygenConfig) -> OxygenError | None:
        """Listen to the joint topics for a moment: a preset of another robot is refused."""
        check = JointCheck(self, config.robot, self.steady)
        await check
        try:
            check.refuse_strangers()
        except ConfigError as error:
            return error
        return None

    def set_up(self, config: OxygenConfig, prepared: Any) -> None:
        """Wire the brain to topics and services."""
        brain: Brain = prepared
        log = self.get_logger().info
        log(f"Warmed up: {brain.warm_up.in_words()}")
        log(brain.engine.layout.in_words())
        for note in brain.model.notes:
            log(note)
        for warning in brain.model.warnings:
            self.get_logger().warning(warning)
        if brain.warm_up.fault:
            self.get_logger().error(f"The model runs {brain.warm_up.fault}")
        if brain.model.is_stand_in:
            self.get_logger().warning("This is a stand-in: no model is behind its actions and texts.")
        for role in config.robot.camera_roles:
            log(f"Camera {role}: {config.robot.cameras[role].topic} -> slot {config.robot.slot_of(role)}")
        recorder = self._make_recorder(config)
        mailbox = self._make_mailbox(config, recorder)
        actions = ActionOutlet(self, config, mailbox.positions, *((recorder.chunk,) if recorder else ()))
        texts: TextSink = TextOutlet(self, config)
        texts = recorder.texts(texts) if recorder else texts
        sensors = SensorInputs(self, config, mailbox)
        TextDesk(self, config, self._make_desk(config, brain, texts, recorder))
        self.create_service(Trigger, config.topics.reset, self._on_reset)
        guide = brain.guide(mailbox.num_played, *((recorder.delays.settle,) if recorder else ()))
        cycle = brain.cycle(
            source=mailbox,
            actions=actions,
            texts=texts,
            reports=recorder.reports(self) if recorder else self,
            clock=self.steady,
            numbering=self._numbering,
            guide=guide,
        )
        name, report_topic = self.get_fully_qualified_name().strip("/"), config.topics.cycle_report
        self._parts = Parts(
            brain=brain,
            mailbox=mailbox,
            sensors=sensors,
            actions=actions,
            health=BrainHealth(name, brain, mailbox, sensors.watch, self.steady, guide),
            cycle=cycle,
            report=self.create_lifecycle_publisher(CycleReportMessage, report_topic, qos.stream(50)),
            recorder=recorder,
        )
        sensors.start()

    def start(self) -> None:
        """Open the gate and begin to run cycles."""
        parts = self._must_have_parts()
        self._num_failures = 0
        self._thread = ControlThread(self._run_cycle, self._on_thread_error, self._former)
        self._thread.start()
        self._thread.do(parts.actions.open)
        period_s = parts.cycle.settings.period_ns / 1e9
        group = MutuallyExclusiveCallbackGroup()
        self._timer = self.create_timer(period_s, self._on_tick, callback_group=group)

    def stop(self, reason: str) -> None:
        """Let no action out any more, withdraw what is out, end the texts."""
        if self._timer is not None:
            self.destroy_timer(self._timer)
            self._timer = None
        if self._thread is None:
            return
        parts = self._must_have_parts()
        parts.actions.shut()
        if not self._thread.stop(lambda: self._halt(parts, reason), CYCLE_ENDS_WITHIN_S):
            self.get_logger().warning("the last cycle has not ended yet; none of its actions gets out")
        self._former, self._thread = self._thread, None

    def tear_down(self) -> None:
        """Let go of the model."""
        if self._parts is not None:
            self._parts.sensors.end()
            self._last_observation_id = self._parts.mailbox.last_id
            if self._parts.recorder is not None:
                self._parts.recorder.close()
        self._parts = None

    def on_clock_jump(self, description: str) -> None:
        """Begin anew: what was seen and begun belongs to another time."""
        self._begin_anew(description)

    def diagnose(self) -> list[DiagnosticStatus]:
        """Cycle, inputs and model, once configured."""
        return self._parts.health.lines(self.is_active) if self._parts is not None else []

    def publish_report(self, report: CycleReport) -> None:
        """Send one report, and look at what it says. Control thread."""
        parts = self._must_have_parts()
        parts.health.note(report)
        parts.report.publish(to_report_message(report, self.now_ns()))
        if report.is_late and self._late.held_back("late") is not None:
            spent_ms = (report.period_ns - report.slack_ns) / 1e6
            sections = {
                n: getattr(report, f"{n}_ns") for n in ("observe", "prefill", "act", "publish", "decode")
            }
            longest = max(sections, key=sections.__getitem__)
            self.get_logger().warning(
                f"cycle {report.cycle_id} took {spent_ms:.0f} ms of {report.period_ns / 1e6:.0f} ms; "
                f"longest: {longest}, {sections[longest] / 1e6:.0f} ms"
            )
        if report.status is not CycleStatus.FAILED:
            self._num_failures = 0
            return
        self._num_failures += 1
        self.get_logger().error(f"cycle {report.cycle_id} failed: {report.reason}; the robot holds")
        self.in_executor(self.publish_diagnostics)
        if self._num_failures == MAX_FAILURES:
            self.in_executor(lambda: self.fail(f"{MAX_FAILURES} cycles in a row failed: {report.reason}"))

    def _run_cycle(self, due_ns: int) -> None:
        """One cycle. Control thread."""
        parts = self._must_have_parts()
        if parts.recorder is not None:
            parts.recorder.begin_cycle(self._numbering.cycle_id + 1, due_ns)
        parts.cycle.run(due_ns)
        if parts.recorder is not None:
            parts.recorder.end_cycle(parts.brain.engine.settings.steps)

    @staticmethod
    def _halt(parts: Parts, reason: str) -> None:
        """End texts, withdraw chunks. Control thread, or while it stands still."""
        if parts.recorder is not None:
            from oxygen_ros.ros.recorder import halt_line

            parts.recorder.line(halt_line(reason))
        parts.cycle.halt(reason)

    def _make_desk(
        self, config: OxygenConfig, brain: Brain, texts: TextSink, recorder: Recorder | None
    ) -> QuestionDesk:
        parts = (
            config,
            brain.engine,
            brain.tasks,
            self.refusals,
            self.steady,
            texts.publish_text,
            lambda: self.is_active,
        )
        if recorder is None:
            return QuestionDesk(*parts)
        from oxygen_ros.ros.recorded_desk import RecordedDesk

        return RecordedDesk(recorder, brain.engine, *parts)

    def _make_recorder(self, config: OxygenConfig) -> Recorder | None:
        if not config.record:
            return None
        from oxygen_ros.ros.recorder import Recorder

        return Recorder(self, config)

    def _make_mailbox(self, config: OxygenConfig, recorder: Recorder | None) -> Mailbox:
        fallback, why = bridge_reader()
        if fallback is None:
            self.get_logger().debug(f"without cv_bridge ({why})")
        cameras = config.robot.cameras
        for role in config.robot.camera_roles:
            if override := cameras[role].encoding_override:
                self.get_logger().info(f"Camera {role}: every picture is read as {override}")
        parts = (
            MailboxRules.of(config.robot),
            MessageReader(cameras, fallback),
            NodeClock(self, self.steady),
            self.now_ns,
            self.refusals,
            self.get_logger().warning,
            self._last_observation_id,
        )
        mailbox = Mailbox(*parts)
        if recorder is not None:
            from oxygen_ros.ros.recorder import RecordedMailbox

            mailbox = RecordedMailbox(recorder, config, *parts)
        mailbox.put_instruction(config.instruction.strip())
        return mailbox

    def _must_have_parts(self) -> Parts:
        assert self._parts is not None
        return self._parts

    def _on_tick(self) -> None:
        if self._thread is not None:
            self._thread.wake(self.steady.now_ns())

    def _on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._begin_anew("reset")
        response.success, response.message = True, "texts ended, actions withdrawn, inputs forgotten"
        return response

    def _begin_anew(self, reason: str) -> None:
        """Forget inputs, withdraw actions, end texts. What the running cycle still gives is not sent."""
        if (parts := self._parts) is None:
            return
        parts.actions.bar(parts.mailbox.reset)
        if self._thread is not None:
            self._thread.do(lambda: self._halt(parts, reason))

    def _on_thread_error(self, error: Exception) -> None:
        self.in_executor(lambda: self.fail(f"control thread: {type(error).__name__}: {error}"))
