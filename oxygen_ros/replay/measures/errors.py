"""Predicted actions against recorded commands, by joint and by step of the horizon."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.replay.measures.reference import Reference
from oxygen_ros.replay.measures.series import Series
from oxygen_ros.types import ActionChunk


class ActionErrors:
    """Compares each chunk once its whole horizon has been recorded.

    Row i of a chunk is compared with the command in force in the middle of its turn, at the observation's
    stamp + (i + 1/2) dt. Rows up to the execute horizon count for MAE and maximum, all rows for the error by
    step.
    """

    def __init__(self, joint_names: Sequence[str], reference: Reference | None) -> None:
        self.joint_names = tuple(joint_names)
        self._column = {name: i for i, name in enumerate(joint_names)}
        self.reference = reference
        self._waiting: deque[ActionChunk] = deque()
        size = len(self.joint_names)
        self.num_compared = np.zeros(size, dtype=np.int64)
        self.num_missing = 0
        self._sum = np.zeros(size)
        self.maximum = np.zeros(size)
        self._step_sum = np.zeros((0, size))
        self._step_count = np.zeros((0, size), dtype=np.int64)
        self.path = Series()

    @property
    def source(self) -> str:
        """What the actions are compared with, in words."""
        return self.reference.source if self.reference is not None else "nothing: the bag has no commands"

    def add(self, chunk: ActionChunk) -> None:
        """Take in a chunk."""
        if self.reference is not None and len(chunk.actions):
            self._waiting.append(chunk)

    def compare_due(self, now_ns: int) -> None:
        """Compare the chunks whose horizon has passed by ``now_ns``."""
        while self._waiting:
            chunk = self._waiting[0]
            if now_ns < chunk.stamp_ns + len(chunk.actions) * chunk.dt_ns:
                return
            self._compare(self._waiting.popleft())

    def finish(self) -> None:
        """Compare the rest as far as the bag goes."""
        while self._waiting:
            self._compare(self._waiting.popleft())

    @property
    def mae(self) -> NDArray[np.float64]:
        """Mean absolute error by joint over the rows that are meant to be run; NaN where nothing was told."""
        with np.errstate(invalid="ignore"):
            return self._sum / np.where(self.num_compared, self.num_compared, np.nan)

    @property
    def by_step(self) -> NDArray[np.float64]:
        """Mean absolute error float64 [horizon, num_joints]; NaN where nothing was told."""
        with np.errstate(invalid="ignore"):
            return self._step_sum / np.where(self._step_count, self._step_count, np.nan)

    def _compare(self, chunk: ActionChunk) -> None:
        assert self.reference is not None
        columns = [self._column[name] for name in chunk.joint_names]
        size = len(self.joint_names)
        told = np.full((len(chunk.actions), size), np.nan)
        for i in range(len(chunk.actions)):
            values = self.reference.at(chunk.stamp_ns + i * chunk.dt_ns + chunk.dt_ns // 2)
            if values is not None:
                told[i] = values
        predicted = np.full_like(told, np.nan)
        predicted[:, columns] = chunk.actions
        error = np.abs(predicted - told)
        known = np.isfinite(error)
        self._grow(len(error))
        self._step_sum[: len(error)] += np.where(known, error, 0.0)
        self._step_count[: len(error)] += known
        run, run_known = error[: chunk.execute_horizon], known[: chunk.execute_horizon]
        self.num_missing += int((~run_known[:, columns]).any(axis=1).sum())
        self._sum += np.where(run_known, run, 0.0).sum(axis=0)
        self.num_compared += run_known.sum(axis=0)
        self.maximum = np.maximum(self.maximum, np.where(run_known, run, 0.0).max(axis=0, initial=0.0))
        for i in range(chunk.execute_horizon):
            time_s = (chunk.stamp_ns + i * chunk.dt_ns) / 1e9
            self.path.add(time_s, predicted[i], told[i])

    def _grow(self, horizon: int) -> None:
        missing = horizon - len(self._step_sum)
        if missing > 0:
            size = len(self.joint_names)
            self._step_sum = np.vstack([self._step_sum, np.zeros((missing, size))])
            self._step_count = np.vstack([self._step_count, np.zeros((missing, size), dtype=np.int64)])
