"""Whether the newest samples make an observation: missing, refused, stale, unstamped, apart, used up.

Pure rules over samples; the mailbox holds the samples. Every trouble names its stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from oxygen_ros.config.robot import RobotConfig
from oxygen_ros.runtime.streams import Sample, StampUse, StreamRule


@dataclass(frozen=True)
class Trouble:
    """One reason why there is no observation: ``kind: stream (detail)``."""

    kind: str
    stream: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.stream}" + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True)
class Instant:
    """Now, by both clocks."""

    steady_ns: int
    ros_ns: int


@dataclass(frozen=True)
class MailboxRules:
    """What makes a complete, fresh and synchronous observation.

    Attributes:
        cameras: rule by camera role, in model order.
        joint_sources: rule by name of the joint topic.
        name_prefixes: put before joint names, by name of the joint topic.
        joint_names: order of the state vector.
        sync: which time counts when cameras are compared.
        max_skew_ns: largest difference between two cameras.
        max_reuse: how many observations may use one and the same picture.
    """

    cameras: Mapping[str, StreamRule]
    joint_sources: Mapping[str, StreamRule]
    name_prefixes: Mapping[str, str]
    joint_names: tuple[str, ...]
    sync: StampUse = StampUse.RECEIVE
    max_skew_ns: int = 100_000_000
    max_reuse: int = 3

    @classmethod
    def of(cls, robot: RobotConfig) -> MailboxRules:
        """Rules of one robot's configuration."""
        stale_clock = StampUse(robot.sync.stale_clock)
        common = (stale_clock, robot.sync.max_future_ns, robot.sync.frozen_stamp_frames)
        cameras = {
            role: StreamRule(
                f"camera {role}",
                c.topic,
                c.max_age_ns,
                *common,
                c.required,
                expected_rate_hz=c.expected_rate_hz,
            )
            for role, c in ((role, robot.cameras[role]) for role in robot.camera_roles)
        }
        sources = {name: robot.joint_topics[name] for name in robot.joint_topic_names}
        joints = {
            name: StreamRule(
                f"joints {name}", s.topic, s.max_age_ns, *common, expected_rate_hz=s.expected_rate_hz
            )
            for name, s in sources.items()
        }
        return cls(
            cameras=cameras,
            joint_sources=joints,
            name_prefixes={name: source.name_prefix for name, source in sources.items()},
            joint_names=robot.joint_names,
            sync=StampUse(robot.sync.mode),
            max_skew_ns=robot.sync.max_skew_ns,
            max_reuse=robot.sync.max_reuse,
        )


def sample_trouble(rule: StreamRule, sample: Sample, sync: StampUse, now: Instant) -> Trouble | None:
    """Why ``sample`` cannot be used now: unstamped although stamps are asked for, or too old."""
    wants_stamp = StampUse.HEADER in (sync, rule.stale_clock)
    if wants_stamp and sample.stamp_ns == 0:
        return Trouble("unstamped", rule.topic)
    age_ns = sample.age_ns(rule.stale_clock, now.steady_ns, now.ros_ns)
    if age_ns > rule.stale_ns:
        return Trouble("stale", rule.name, f"{age_ns / 1e9:.2f} s")
    return None


def skew_trouble(samples: Mapping[str, Sample], rules: MailboxRules) -> Trouble | None:
    """Why the cameras' samples do not belong together."""
    if len(samples) < 2:
        return None
    if rules.sync is StampUse.HEADER:
        times = {role: sample.stamp_ns for role, sample in samples.items()}
    else:
        times = {role: sample.received_ns for role, sample in samples.items()}
    last, first = max(times, key=times.__getitem__), min(times, key=times.__getitem__)
    skew_ns = times[last] - times[first]
    if skew_ns <= rules.max_skew_ns:
        return None
    return Trouble("unsynchronised", f"camera {first}", f"{skew_ns / 1e6:.0f} ms behind camera {last}")


def in_step(samples: Mapping[str, Sample], rules: MailboxRules) -> tuple[dict[str, Sample], Trouble | None]:
    """Samples of cameras that belong together, and why those that are required do not.

    A camera that is not required is left out rather than waited for.
    """
    kept = {role: sample for role, sample in samples.items() if rules.cameras[role].is_required}
    trouble = skew_trouble(kept, rules)
    for role in [role for role in samples if role not in kept]:
        if trouble is None and skew_trouble({**kept, role: samples[role]}, rules) is None:
            kept[role] = samples[role]
    return {role: sample for role, sample in samples.items() if role in kept}, trouble


def in_words(troubles: Iterable[Trouble]) -> str:
    """All troubles on one line, e.g. "waiting: camera front; stale: joints arm (0.31 s)"."""
    return "; ".join(str(trouble) for trouble in troubles)
