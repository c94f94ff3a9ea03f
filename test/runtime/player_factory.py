"""A player on simulated time, and chunks whose values tell which action they are."""

from __future__ import annotations

import numpy as np

from oxygen_ros.clock import SimClock
from oxygen_ros.runtime.limits import JointLimits
from oxygen_ros.runtime.playback import Command, Hold, Mode, PlayerSettings
from oxygen_ros.runtime.player import ChunkPlayer
from oxygen_ros.runtime.refusals import Refusals
from oxygen_ros.types import ActionChunk

MS = 1_000_000
S = 1_000 * MS
ROS_ORIGIN_NS = 1_700_000_000 * S
NAMES = ("j1", "j2")


def no_limits(num_joints: int = 2, **changes) -> JointLimits:
    """Limits of infinite size, but for ``changes``; a number stands for all joints."""
    values = {"lower": -np.inf, "upper": np.inf, "max_step": np.inf, "is_position": True} | changes
    arrays = {key: np.broadcast_to(np.asarray(value), num_joints).copy() for key, value in values.items()}
    return JointLimits(**arrays)


class Stage:
    """A player, its clock, what it sent, and a brain that makes chunks for it."""

    def __init__(self, rate_hz: float = 50.0, is_measured: bool = True, **settings) -> None:
        self.clock = SimClock(3 * S)
        self.ros_shift_ns = 0
        self.said: list[str] = []
        self.refusals = Refusals(self.clock, self.said.append)
        names = settings.pop("joint_names", NAMES)
        self.settings = PlayerSettings(
            **{
                "joint_names": names,
                "state_names": names,
                "limits": no_limits(len(names)),
                "dt_ns": round(S / rate_hz),
            }
            | settings
        )
        self.player = ChunkPlayer(self.settings, self.clock, self.ros_ns, self.refusals)
        self.is_measured = is_measured
        self.last_id = 0
        self.position: list[float] = []
        self.measure()

    def ros_ns(self) -> int:
        return ROS_ORIGIN_NS + self.clock.now_ns() + self.ros_shift_ns

    def measure(self, *positions: float) -> None:
        if self.is_measured:
            names = self.settings.joint_names
            self.player.put_measured(names, positions or [0.0] * len(names))

    def chunk(self, actions, *, played: int | None = None, age_ms: float = 0, **changes) -> ActionChunk:
        """A chunk whose observation was taken ``age_ms`` ago, when the player's count was ``played``."""
        self.last_id += 1
        actions = np.asarray(actions, dtype=np.float32)
        if actions.ndim == 1:
            actions = np.repeat(actions[:, None], len(self.settings.joint_names), axis=1)
        fields = {
            "observation_id": self.last_id,
            "stamp_ns": self.ros_ns() - round(age_ms * MS),
            "cycle_id": self.last_id,
            "chunk_id": self.last_id,
            "expert": "default",
            "instruction": "wave",
            "joint_names": self.settings.joint_names,
            "actions": actions,
            "dt_ns": self.settings.dt_ns,
            "execute_horizon": max(1, len(actions) // 2),
            "latency_ns": round(age_ms * MS),
            "actions_played": self.player.status().actions_played if played is None else played,
        }
        return ActionChunk(**fields | changes)

    def tick(self, num: int = 1) -> list[Command | Hold | None]:
        """``num`` ticks, one period apart; the robot follows its commands and is measured before each."""
        out = []
        for _ in range(num):
            out.append(self.player.tick())
            self.clock.advance_ns(self.settings.dt_ns)
            if out[-1] is not None and self.settings.limits.is_position.all():
                self.position = [float(value) for value in out[-1].values]
            self.measure(*self.position)
        return out

    def values(self, num: int = 1) -> list[float | None]:
        """Value of the first joint sent at each of ``num`` ticks; None for silence."""
        return [None if sent is None else round(float(sent.values[0]), 6) for sent in self.tick(num)]

    def count(self, kind: str) -> int:
        return self.refusals.counts().get(kind, 0)

    @property
    def mode(self) -> Mode:
        return self.player.status().mode
