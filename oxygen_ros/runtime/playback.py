"""The player's values: settings, modes, and what a tick gives."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from oxygen_ros.config.root import OxygenConfig
from oxygen_ros.runtime.limits import CommandArray, JointLimits


class Mode(enum.Enum):
    """What the player does. Values equal PlayerState.msg."""

    IDLE = 0
    """No chunk yet."""
    PLAYING = 1
    """An action goes out at each tick."""
    HOLDING = 2
    """Chunks used up or withdrawn: the last position is kept."""
    STOPPED = 3
    """Stop was asked for; stays until reset."""


@dataclass(frozen=True)
class PlayerSettings:
    """Choices that hold while the player lives.

    Attributes:
        joint_names: commanded joints, in command order.
        state_names: joints whose positions are published somewhere: the first step waits for them.
        limits: of the commanded joints.
        dt_ns: time between two actions.
        max_chunks: chunks of one expert that are blended; 1 follows the newest.
        decay: how fast the weight of a blended chunk falls, per action of its age.
        max_chunk_age_ns: age of an observation above which its chunk is refused.
        brain_timeout_ns: silence after which the brain counts as gone.
        hold_repeats: how often a hold is sent before silence.
        delay_window: newest chunks that the delay is taken from.
    """

    joint_names: tuple[str, ...]
    state_names: tuple[str, ...]
    limits: JointLimits
    dt_ns: int
    max_chunks: int = 1
    decay: float = 0.0
    max_chunk_age_ns: int = 2_000_000_000
    brain_timeout_ns: int = 2_000_000_000
    hold_repeats: int = 1
    delay_window: int = 10

    @classmethod
    def of(cls, config: OxygenConfig) -> PlayerSettings:
        """Settings from a configuration."""
        player, safety = config.player, config.safety
        return cls(
            joint_names=config.robot.command_joint_names,
            state_names=config.robot.joint_names,
            limits=JointLimits.of(config),
            dt_ns=config.cycle.action_dt_ns,
            max_chunks=player.ensemble_chunks if player.mode == "ensembling" else 1,
            decay=player.ensemble_decay,
            max_chunk_age_ns=safety.max_chunk_age_ns,
            brain_timeout_ns=safety.brain_timeout_ns,
            hold_repeats=safety.hold_repeats,
            delay_window=player.rtc_delay_window,
        )


@dataclass(frozen=True)
class Command:
    """One action to send.

    Attributes:
        values: float64 [num_joints] in command order, within all limits; NaN where none is known.
        chunk_id: newest chunk it came from.
        index: row of that chunk.
        takes_over: True for the first action of a chunk.
    """

    values: CommandArray
    chunk_id: int
    index: int
    takes_over: bool


@dataclass(frozen=True)
class Hold:
    """Send ``values``, then nothing: float64 [num_joints], 0 where a command is a velocity or an offset."""

    values: CommandArray
    reason: str


@dataclass(frozen=True)
class PlayerStatus:
    """What PlayerState.msg tells."""

    mode: Mode
    chunk_id: int
    next_index: int
    actions_played: int
    ticks_missed: int
    steps_clamped: int
    reason: str
