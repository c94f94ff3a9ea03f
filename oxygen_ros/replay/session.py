"""One replay from its start to its end: puts the live code between a bag and a report, and lets time pass."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from pathlib import Path

from oxygen_ros.assembly import Brain, build_brain
from oxygen_ros.assembly.model import Model
from oxygen_ros.clock import SimClock, SteadyClock
from oxygen_ros.config import OxygenConfig
from oxygen_ros.errors import ContractError
from oxygen_ros.replay.bag.bag import Bag, TimeUse
from oxygen_ros.replay.clock import ReplayClock, RosTime
from oxygen_ros.replay.costs import TimedRunner
from oxygen_ros.replay.figures import Figures
from oxygen_ros.replay.intakes import Intakes
from oxygen_ros.replay.job import Job
from oxygen_ros.replay.measures.reference import Reference
from oxygen_ros.replay.outlet import Outlet
from oxygen_ros.replay.pace import choose_pace, without_costs
from oxygen_ros.replay.recorded_delays import RecordedDelays
from oxygen_ros.replay.recorded_steps import RecordedSteps
from oxygen_ros.replay.recording import Recording
from oxygen_ros.replay.schedule import every_period, recorded
from oxygen_ros.replay.topics import Feeds, Kind, find_feeds
from oxygen_ros.replay.world import Parts, World
from oxygen_ros.runtime.control_cycle import ControlCycle, Numbering
from oxygen_ros.runtime.digest import observation_digest
from oxygen_ros.runtime.mailbox import Mailbox
from oxygen_ros.runtime.pictures import MessageReader
from oxygen_ros.runtime.playback import PlayerSettings
from oxygen_ros.runtime.player import ChunkPlayer
from oxygen_ros.runtime.ports import NotReady
from oxygen_ros.runtime.question_desk import QuestionDesk
from oxygen_ros.runtime.readiness import MailboxRules
from oxygen_ros.runtime.refusals import Refusals
from oxygen_ros.runtime.stamps import S
from oxygen_ros.types import Observation

MS, HOUR_NS = S // 1000, 3600 * S
EXTRA_NS = S
"""A chunk may wait for so much more than its horizon before it is compared."""


class Session:
    """Everything of one replay. ``run`` it once."""

    def __init__(self, job: Job, bag: Bag, config: OxygenConfig, recording: Recording, folder: Path) -> None:
        """Load the model and find the topics.

        Raises:
            ContractError: if the bag lacks what the robot needs.
            ConfigError, CheckpointError, RunnerError: if the brain cannot be built.
        """
        self.job, self.bag, self.config, self._recording = job, bag, config, recording
        self.feeds: Feeds = find_feeds(bag, config, namespace=job.namespace, commands=job.commands)
        self.order = TimeUse(job.time)
        self.span_ns = self._span()
        self.pace = choose_pace(job, config, recording)
        self.clock = ReplayClock(SimClock() if job.clock == "deterministic" else SteadyClock())
        self.brain = self._build_brain()
        self.clock.set_ns(self.span_ns[0])
        self._played = recording.played
        self.notes: list[str] = []
        self.covered_ns = 0
        """Bag time that has been replayed, once ``run`` has ended: less than all if it was interrupted."""
        self.figures = Figures(config, self._make_reference())
        self.player_refusals = Refusals(self.clock, self._say)
        self._ros_time = RosTime(self.clock)
        ros_now_ns = self._ros_time.now_ns
        refusals = Refusals(self.clock, self._say)
        self.mailbox = Mailbox(
            MailboxRules.of(config.robot),
            MessageReader(self.feeds.cameras),
            self.clock,
            ros_now_ns,
            refusals,
            self._say,
            self._first_numbers()[1],
        )
        self.mailbox.put_instruction(config.instruction.strip())
        settings = PlayerSettings.of(config)
        self.player = ChunkPlayer(settings, self.clock, ros_now_ns, self.player_refusals)
        custom = {"oxygen_ros.replay_of": bag.name, "oxygen_ros.preset": config.preset}
        self.outlet = Outlet(folder, config, bag.types, self.clock, self.player, self.figures, custom)
        self.world = self._make_world(refusals)
        self._delays = RecordedDelays(recording.delays if self.pace.is_reproduction else {})

    @property
    def recorded_preset(self) -> str:
        """Name of the preset that the bag was recorded with; empty if it does not say."""
        return str(self._recording.config.get("preset", ""))

    def run(self, progress: Callable[[int], None], is_interrupted: Callable[[], bool]) -> bool:
        """Replay to the end of the bag. ``progress`` is told the bag time. False if it was interrupted."""
        self._hear_latched()
        self.clock.attach(self.world)
        numbering = Numbering(cycle_id=self._first_numbers()[0])
        cycle = self.brain.cycle(
            source=_Source(self),
            actions=self.outlet,
            texts=self.outlet,
            reports=self.outlet,
            clock=self.clock,
            numbering=numbering,
            guide=self.brain.guide(self.mailbox.num_played, self._delays.settle),
        )
        end_ns = self.span_ns[1]
        is_whole = True
        for begin_ns, due_ns in self._schedule(cycle.settings.period_ns):
            if is_interrupted():
                is_whole = False
                break
            self.clock.sleep_until_ns(begin_ns)
            self._halt_if_asked(cycle)
            self._begin_cycle(numbering.cycle_id + 1)
            cycle.run(due_ns)
            self.figures.errors.compare_due(self._ros_time.now_ns())
            progress(min(self.clock.now_ns(), end_ns))
        if is_whole:
            self.clock.sleep_until_ns(end_ns)
        cycle.halt("the bag has ended" if is_whole else "interrupted")
        self.figures.errors.finish()
        self.covered_ns = min(self.clock.now_ns(), end_ns) - self.span_ns[0]
        return is_whole

    def as_recorded(self, observation: Observation) -> Observation:
        """In a reproduction, the count of the recorded player: this one began to count elsewhere."""
        self.outlet.actions_played = observation.actions_played
        if not self.pace.is_reproduction:
            return observation
        played = self._played.get(self.outlet.cycle_id, 0)
        return dataclasses.replace(observation, actions_played=played)

    def close(self) -> None:
        """Finish the files."""
        self.outlet.close()

    def _schedule(self, period_ns: int) -> Iterator[tuple[int, int]]:
        if self.pace.is_reproduction:
            return recorded(self.clock, self._recording.cycles, *self.span_ns)
        return every_period(self.clock, *self.span_ns, period_ns)

    def _begin_cycle(self, cycle_id: int) -> None:
        self.outlet.begin_cycle(cycle_id, self.clock.now_ns())
        self._delays.begin(cycle_id)
        if self.pace.costs is not None:
            self.pace.costs.begin(cycle_id)

    def _halt_if_asked(self, cycle: ControlCycle) -> None:
        while self.world.halts:
            cycle.halt(self.world.halts.pop(0))

    def _say(self, text: str) -> None:
        self.figures.say(self.clock.now_ns(), text)

    def _span(self) -> tuple[int, int]:
        """First and last instant of the part that is replayed, in the time that orders the messages."""
        for name, seconds in (("start", self.job.start_s), ("duration", self.job.duration_s)):
            if not (math.isfinite(seconds) and seconds >= 0):
                raise ContractError("bag.start", f"{name} is {seconds:g} s", "a number of seconds from 0 on")
        first, last = self.bag.span_ns(self.order, tuple(self.feeds.by_topic))
        start = first + round(self.job.start_s * S)
        if start > last:
            length_s = (last - first) / S
            raise ContractError("bag.start", f"start at {self.job.start_s:g} s, the bag has {length_s:.1f} s")
        end = min(last, start + round(self.job.duration_s * S)) if self.job.duration_s else last
        self._refuse_gap(first, start, end)
        return start, end

    def _refuse_gap(self, first: int, start: int, end: int) -> None:
        """No replay runs through the years between two settings of a clock."""
        gap = self.bag.long_gap_ns(self.order, tuple(self.feeds.by_topic), start, end)
        if gap is None:
            return
        part_s = (gap[0] - start + MS) // MS / 1e3  # rounded so that no message is lost
        next_s = (gap[1] - first) // MS / 1e3
        raise ContractError(
            "bag.gap",
            f"by {self.order.value} time there is nothing for {(gap[1] - gap[0]) / HOUR_NS:.1f} hours after "
            f"{part_s:.3f} s: was a clock set while it was recorded?",
            f"--duration {part_s:.3f} for the part before, --start {next_s:.3f} for the part after",
        )

    def _hear_latched(self) -> None:
        """Late joiners get the last message of latched topics: so does a replay that starts later."""
        if not self.job.start_s:
            return
        for feed in self.feeds.of(Kind.INSTRUCTION):
            topic = self.bag.topics[feed.topic]
            record = self.bag.last_before(feed.topic, self.span_ns[0], self.order)
            if record is None:
                continue
            if topic.is_latched:
                self.world.apply(record)
            elif topic.is_latched is None:
                self.notes.append(
                    f"{feed.topic}: the bag does not say its quality of service; taken as volatile, what was "
                    f"sent before the start is not heard"
                )

    def _make_world(self, refusals: Refusals) -> World:
        """Robot and people, who do what the bag's messages say."""
        brain, answer = self.brain, self.outlet.publish_text
        desk = QuestionDesk(self.config, brain.engine, brain.tasks, refusals, self.clock, answer)
        intakes = Intakes(self._recording.wishes, desk) if self.pace.is_reproduction else None
        if intakes is not None:
            brain.engine.watch_intake(intakes)
        parts = Parts(
            config=self.config,
            mailbox=self.mailbox,
            desk=desk,
            player=self.player,
            outlet=self.outlet,
            figures=self.figures,
            ros_time=self._ros_time,
            reference=self.figures.errors.reference,
        )
        records = self.bag.records(tuple(self.feeds.by_topic), self.order, *self.span_ns)
        start_ns, types = self.span_ns[0], self.bag.types
        return World(parts, self.feeds, types, records, start_ns, intakes)

    def _make_reference(self) -> Reference | None:
        """What actions are compared with: recorded commands, else where the joints went afterwards."""
        robot, cycle = self.config.robot, self.config.cycle
        names = robot.command_joint_names
        kept_ns = self.config.model.horizon * cycle.action_dt_ns + cycle.period_ns + EXTRA_NS
        if commands := self.feeds.of(Kind.COMMANDS):
            return Reference(names, f"commands on {commands[0].topic}", kept_ns)
        kinds = {robot.command_kind_of(name) for name in names}
        if set(names) <= set(robot.joint_names) and kinds == {"position"}:
            return Reference(names, "joint positions: the bag has no commands", kept_ns)
        return None

    def _first_numbers(self) -> tuple[int, int]:
        """Numbers of the last cycle and the last observation before this replay."""
        if not self.pace.is_reproduction:
            return 0, 0
        cycles = self._recording.cycles
        first = next((cycle.observation_id for cycle in cycles if cycle.observation_id), 1)
        return cycles[0].cycle_id - 1, first - 1

    def _build_brain(self) -> Brain:
        steps = None
        if self.pace.is_reproduction:
            steps = RecordedSteps(0, self._recording.steps)
        config = self.config
        if self.pace.costs is not None:  # the stand-in must not add costs of its own
            runner = dataclasses.replace(config.runner, fake=without_costs(config.runner.fake))
            config = dataclasses.replace(config, runner=runner)
        return build_brain(config, self.clock, adapt=self._timed, steps=steps)

    def _timed(self, model: Model) -> Model:
        if self.pace.costs is None:
            return model
        return dataclasses.replace(model, runner=TimedRunner(model.runner, self.clock, self.pace.costs))


class _Source:
    """The mailbox as the cycle sees it, with a fingerprint of what it gives."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def take(self) -> Observation | NotReady:
        """As the mailbox."""
        session = self._session
        taken = session.mailbox.take()
        if isinstance(taken, Observation):
            taken = session.as_recorded(taken)
            session.outlet.inputs = observation_digest(taken)
            if session.job.cameras:
                session.outlet.publish_pictures(taken)
        if session.pace.costs is not None:
            # At least a nanosecond in a reproduction: what a cycle gives comes after its begin.
            cost_ns = max(int(session.pace.is_reproduction), session.pace.costs.observe_ns())
            session.clock.sleep_until_ns(session.clock.now_ns() + cost_ns)
        return taken

    def refusals(self) -> dict[str, int]:
        """As the mailbox."""
        return self._session.mailbox.refusals()
