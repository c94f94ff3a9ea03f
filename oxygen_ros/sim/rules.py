"""When an episode is over. Plain numbers: no simulator in here."""

from __future__ import annotations

from oxygen_ros.sim.truth import Task, Truth

FIRST_SEED = 1_000_000
"""Seeds below are used in training."""
MAX_TICKS = 360
"""Actions of one episode; as in the scores."""
LIFTED_Z = 0.10


def is_over(truth: Truth, task: Task) -> bool:
    """True when the task is done and the hand has left."""
    return truth.is_done(task) and float(truth.hand[2]) > LIFTED_Z
