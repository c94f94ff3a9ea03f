"""Whether an action chunk may be played at all. Pure; the player asks before it takes one over."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oxygen_ros.types import ActionChunk

MAX_DT_ERROR = 0.01


def chunk_problem(chunk: ActionChunk, command_names: Sequence[str], dt_ns: int) -> tuple[str, str] | None:
    """Why ``chunk`` must not be played, as (kind, detail), or None.

    Args:
        chunk: with actions float32 [horizon, action_dim]; horizon 0 withdraws and is not checked here.
        command_names: joints that the robot takes commands for.
        dt_ns: the player's period.
    """
    horizon, action_dim = chunk.actions.shape
    names = chunk.joint_names
    if len(names) != action_dim or len(set(names)) != len(names) or not names:
        return "malformed_chunk", f"{action_dim} columns, joint names {', '.join(names) or '(none)'}"
    unknown = [name for name in names if name not in command_names]
    if unknown:
        return "unknown_joints", f"{', '.join(unknown)}; commanded are {', '.join(command_names)}"
    if not np.isfinite(chunk.actions).all():
        bad = [names[i] for i in np.flatnonzero(~np.isfinite(chunk.actions).all(axis=0))]
        return "nan_action", f"not a number: {', '.join(bad)}"
    if not 1 <= chunk.execute_horizon <= horizon:
        return "malformed_chunk", f"{chunk.execute_horizon} actions to execute of {horizon}"
    if abs(chunk.dt_ns - dt_ns) > MAX_DT_ERROR * dt_ns:
        return (
            "other_rate",
            f"one action in {chunk.dt_ns / 1e6:.2f} ms, the player's takes {dt_ns / 1e6:.2f} ms",
        )
    return None
