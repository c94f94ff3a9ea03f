"""The newest camera and joint samples, and how they become an observation.

Knows no ROS message: a reader of pictures is handed in. Threads of inputs put and reset, the control thread
takes. A picture is read when it is taken, and only then; joints are merged by name.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from oxygen_ros.clock import Clock
from oxygen_ros.errors import ContractError
from oxygen_ros.runtime.joints import JointMerge
from oxygen_ros.runtime.ports import NotReady
from oxygen_ros.runtime.readiness import (
    Instant,
    MailboxRules,
    Trouble,
    in_step,
    in_words,
    sample_trouble,
)
from oxygen_ros.runtime.refusals import Refusals
from oxygen_ros.runtime.streams import Sample, StreamRule, StreamWatch
from oxygen_ros.runtime.throttle import Throttle
from oxygen_ros.types import CycleStatus, ImageArray, Observation

JOINTS = "joints"
DECODE_ERRORS = "decode_errors"
PLAYER_FRESH_NS = 500_000_000


class PictureReader(Protocol):
    """Reads messages of the cameras. Both methods raise ContractError when they cannot."""

    def check(self, role: str, payload: Any) -> None:
        """Look at what is cheap to look at: encoding, sizes. Called for every message."""
        ...

    def read(self, role: str, payload: Any) -> ImageArray:
        """RGB uint8 [H, W, 3], owned by the caller. Called for messages that are used."""
        ...


class Mailbox:
    """An ObservationSource. Holds one sample per camera and one per joint: nothing queues, nothing grows."""

    def __init__(
        self,
        rules: MailboxRules,
        reader: PictureReader,
        clock: Clock,
        ros_now_ns: Callable[[], int],
        refusals: Refusals,
        say: Callable[[str], None],
        last_id: int = 0,
    ) -> None:
        """Start empty.

        Args:
            rules: what is needed.
            reader: reads pictures.
            clock: steady time.
            ros_now_ns: ROS time; 0 while it is not known.
            refusals: where refusals are counted.
            say: takes remarks for the log: each trouble when it begins and when it is over, throttled.
            last_id: number of the last observation of an earlier mailbox: numbers never repeat.
        """
        self.rules = rules
        self.num_decodes = 0
        self._reader = reader
        self._clock = clock
        self._ros_now_ns = ros_now_ns
        self._refusals = refusals
        self._say = say
        all_rules = (*rules.cameras.values(), *rules.joint_sources.values())
        self._watches = {rule.name: StreamWatch(rule) for rule in all_rules}
        self._pictures: dict[str, Sample] = {}
        self._read: dict[str, tuple[Sample, ImageArray]] = {}
        self._uses: dict[str, tuple[Sample, int]] = {}
        self._joints = JointMerge(rules.joint_names)
        self._problems: dict[str, str] = {}
        self._unreadable: dict[str, Sample] = {}
        self._remarks: set[str] = set()
        self._instruction = ""
        self._played = (0, 0)
        self._troubled: set[tuple[str, str]] = set()
        self._throttle = Throttle(clock)
        self._has_been_ready = False
        self._putting = threading.Lock()
        self._lock = threading.Lock()
        self._num_resets = 0
        self.last_id = last_id

    # threads of inputs ------------------------------------------------------------------------------------
    def put_picture(self, role: str, stamp_ns: int, payload: Any) -> None:
        """Keep ``payload`` as the newest picture of ``role``, unless it must be refused."""
        rule = self.rules.cameras[role]
        with self._putting:
            self._watches[rule.name].note(self._clock.now_ns())
            try:
                self._reader.check(role, payload)
            except ContractError as error:
                self._refuse(rule, DECODE_ERRORS, str(error))
                return
            if (sample := self._accept(rule, self._watches[rule.name], stamp_ns, payload)) is not None:
                self._pictures[role] = sample

    def put_joints(
        self, source: str, stamp_ns: int, names: Sequence[str], positions: Sequence[float]
    ) -> None:
        """Merge the joints of one message from ``source``, unless it must be refused."""
        rule = self.rules.joint_sources[source]
        if prefix := self.rules.name_prefixes[source]:
            names = [prefix + name for name in names]
        with self._putting:
            self._watches[rule.name].note(self._clock.now_ns())
            if (bad := self._joints.check(source, names, positions)) is not None:
                self._refuse(rule, *bad)
                return
            watch = self._watches[rule.name].of(frozenset(names).intersection(self.rules.joint_names))
            if (sample := self._accept(rule, watch, stamp_ns, None)) is not None:
                self._joints.put(source, names, positions, sample)

    def put_instruction(self, instruction: str) -> None:
        """What the robot is to do from the next observation on; empty: nothing."""
        self._instruction = instruction

    def put_actions_played(self, actions_played: int) -> None:
        """The player's count of played actions: observations carry it, so that chunks can be placed on it."""
        self._played = (actions_played, self._clock.now_ns())

    def reset(self) -> int:
        """Forget samples and stamps: time has jumped, or a new start. Gives the last observation's id."""
        with self._putting:
            self._pictures = {}
            self._joints.reset()
            self._problems.clear()
            for watch in self._watches.values():
                watch.reset()
        with self._lock:
            self._num_resets += 1  # last: who sees it sees nothing of what was to be forgotten
            return self.last_id

    def _accept(self, rule: StreamRule, watch: StreamWatch, stamp_ns: int, payload: Any) -> Sample | None:
        now_ns, ros_now_ns = self._clock.now_ns(), self._ros_now_ns()
        if (judgement := watch.judge(stamp_ns, now_ns, ros_now_ns)) is not None:
            detail = f"stamp {stamp_ns / 1e9:.3f} s at {ros_now_ns / 1e9:.3f} s"
            self._refusals.add(judgement.value, rule.topic, detail)
            return None
        self._problems.pop(rule.name, None)
        if stamp_ns == 0:
            self._remark(f"unstamped: {rule.topic}; its time of arrival is taken")
        if watch.is_frozen:
            self._remark(f"stamp not advancing: {rule.topic}; its time of arrival is taken")
        return Sample(payload, stamp_ns, now_ns, ros_now_ns, watch.is_frozen)

    def _refuse(self, rule: StreamRule, kind: str, detail: str) -> None:
        self._refusals.add(kind, rule.topic, detail)
        self._problems[rule.name] = detail

    def _remark(self, text: str) -> None:
        if text not in self._remarks:
            self._remarks.add(text)
            self._say(text)

    # control thread ---------------------------------------------------------------------------------------
    def take(self) -> Observation | NotReady:
        """Newest observation with a new id, or every reason why there is none. Reads the pictures it uses."""
        now, num_resets = Instant(self._clock.now_ns(), self._ros_now_ns()), self._num_resets
        pictures, troubles = self._usable_pictures(now)
        joints = self._joints.snapshot()
        troubles += self._joint_troubles(joints, now)
        if not self._instruction:
            troubles.append(Trouble("waiting", "instruction"))
        images = {} if troubles else self._read_pictures(pictures, troubles)
        self._tell_changes(troubles)
        if troubles:
            status = CycleStatus.HOLDING if self._has_been_ready else CycleStatus.WAITING
            return NotReady(status, in_words(troubles))
        with self._lock:
            if num_resets != self._num_resets:  # what was taken is what was to be forgotten
                return NotReady(CycleStatus.HOLDING, "inputs forgotten")
            self.last_id += 1
        self._has_been_ready = True
        stamps = [sample.time_ns(self.rules.sync) for sample in pictures.values()]
        return Observation(
            observation_id=self.last_id,
            stamp_ns=min(stamps, default=now.ros_ns),
            images=MappingProxyType(images),
            state=self._joints.state(joints),
            instruction=self._instruction,
            actions_played=self.num_played(),
        )

    def num_played(self) -> int:
        """The player's count of played actions as last heard; 0 if it has not been heard lately."""
        count, heard_ns = self._played
        return count if 0 <= self._clock.now_ns() - heard_ns <= PLAYER_FRESH_NS else 0

    def refusals(self) -> dict[str, int]:
        """Inputs refused since the start, by kind."""
        return self._refusals.counts()

    def positions(self) -> dict[str, float]:
        """Where the joints are, by name, as far as they have been heard."""
        return {name: sample.payload.positions[name] for name, sample in self._joints.snapshot().items()}

    def rates_hz(self) -> dict[str, float]:
        """Messages per second by stream name."""
        now_ns = self._clock.now_ns()
        return {name: watch.rate_hz(now_ns) for name, watch in self._watches.items()}

    def _usable_pictures(self, now: Instant) -> tuple[dict[str, Sample], list[Trouble]]:
        """Samples of the cameras that can be used now, and what is wrong with the required others."""
        newest, usable, troubles = dict(self._pictures), {}, []
        for role, rule in self.rules.cameras.items():
            trouble = self._picture_trouble(role, rule, newest.get(role), now)
            if trouble is None:
                usable[role] = newest[role]
            elif rule.is_required:
                troubles.append(trouble)
        usable, skew = in_step(usable, self.rules)
        if not troubles and skew is not None:
            troubles.append(skew)
        return usable, troubles

    def _picture_trouble(
        self, role: str, rule: StreamRule, sample: Sample | None, now: Instant
    ) -> Trouble | None:
        problem = self._problems.get(rule.name)
        if sample is None or self._unreadable.get(role) is sample:
            return Trouble("refused", rule.name, problem) if problem else Trouble("waiting", rule.name)
        if (trouble := sample_trouble(rule, sample, self.rules.sync, now)) is not None:
            return Trouble("refused", rule.name, problem) if problem else trouble
        if (count := self._num_uses(role, sample)) >= self.rules.max_reuse:
            return Trouble("reused", rule.name, f"{count} times")
        return None

    def _joint_troubles(self, joints: Mapping[str, Sample], now: Instant) -> list[Trouble]:
        rules = self.rules.joint_sources
        missing = self._joints.missing(joints)
        if missing:
            seen = self._joints.seen_names
            is_unknown = bool(seen) and not set(missing) <= set(seen)
            detail = f"missing {', '.join(missing)}; available {', '.join(seen)}" if is_unknown else ""
            problems = [
                Trouble("refused", r.name, p) for r in rules.values() if (p := self._problems.get(r.name))
            ]
            return problems or [Trouble("waiting", JOINTS, detail)]
        troubles = []
        for sample in {id(s): s for s in joints.values()}.values():
            rule = rules[sample.payload.source]
            if (trouble := sample_trouble(rule, sample, self.rules.sync, now)) is not None:
                problem = self._problems.get(rule.name)
                troubles.append(Trouble("refused", rule.name, problem) if problem else trouble)
        return list(dict.fromkeys(troubles))

    def _read_pictures(self, samples: dict[str, Sample], troubles: list[Trouble]) -> dict[str, ImageArray]:
        """Pictures by role; one that cannot be read is dropped, counted and added to ``troubles``."""
        images: dict[str, ImageArray] = {}
        for role, sample in list(samples.items()):
            try:
                images[role] = self._picture_of(role, sample)
            except ContractError as error:
                rule = self.rules.cameras[role]
                self._unreadable[role] = samples.pop(role)
                self._refuse(rule, DECODE_ERRORS, str(error))
                if rule.is_required:
                    troubles.append(Trouble("refused", rule.name, str(error)))
        if not troubles:
            for role, sample in samples.items():
                self._uses[role] = (sample, 1 + self._num_uses(role, sample))
        return images

    def _picture_of(self, role: str, sample: Sample) -> ImageArray:
        """The picture of ``sample``, read once however often it is used."""
        known = self._read.get(role)
        if known is None or known[0] is not sample:
            self.num_decodes += 1
            known = self._read[role] = (sample, self._reader.read(role, sample.payload))
        return known[1]

    def _num_uses(self, role: str, sample: Sample) -> int:
        used = self._uses.get(role)
        return used[1] if used is not None and used[0] is sample else 0

    def _tell_changes(self, troubles: list[Trouble]) -> None:
        """Say each trouble when it begins and when it is over; one that comes and goes is throttled."""
        now = {(trouble.kind, trouble.stream): trouble for trouble in troubles}
        for key, trouble in now.items():
            if key not in self._troubled and self._throttle.held_back(key) is not None:
                self._say(str(trouble))
        for kind, stream in sorted(self._troubled - now.keys()):
            if self._throttle.held_back((kind, stream, "over")) is not None:
                self._say(f"over: {kind}: {stream}")
        self._troubled = set(now)
