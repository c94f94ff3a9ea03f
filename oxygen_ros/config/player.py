"""The action player: how chunks are handed over and what it sends to the robot."""

from __future__ import annotations

from dataclasses import dataclass

from oxygen_ros.config.field import parameter


@dataclass(frozen=True)
class PlayerConfig:
    """Hand-over of chunks and form of the commands."""

    mode: str = parameter(
        "receding",
        choices=("receding", "ensembling", "rtc"),
        help="Hand-over at a seam: the newest chunk, a weighted mean, or guided by the last chunk.",
    )
    output: str = parameter(
        "array",
        choices=("trajectory", "array", "joint_state"),
        help="Message: JointTrajectory, Float64MultiArray (one action a tick) or JointState (one a tick).",
    )
    stamp: str = parameter(
        "zero", choices=("zero", "now"), help="Stamp of trajectories. zero: start at once, never in the past."
    )
    overlap_steps: int = parameter(
        4,
        unit="actions",
        minimum=0,
        maximum=1000,
        help="Actions a trajectory goes on past the next one's start, so that it does not come to rest.",
    )
    ensemble_decay: float = parameter(
        0.01, minimum=0.0, maximum=10.0, help="ensembling: weight exp(-decay * age); 0 weighs all alike."
    )
    ensemble_chunks: int = parameter(
        4, unit="chunks", minimum=1, maximum=64, help="ensembling: newest chunks that count."
    )
    rtc_schedule: str = parameter(
        "linear", choices=("zeros", "ones", "linear", "exp"), help="rtc: how guidance fades."
    )
    rtc_execution_horizon: int = parameter(
        10, unit="actions", minimum=1, maximum=1000, help="rtc: actions of the old chunk that guide the new."
    )
    rtc_max_guidance_weight: float = parameter(
        10.0, minimum=0.0, maximum=1000.0, help="rtc: largest guidance weight."
    )
    rtc_delay_window: int = parameter(
        10, unit="chunks", minimum=1, maximum=1000, help="rtc: newest chunks the delay is taken from."
    )
