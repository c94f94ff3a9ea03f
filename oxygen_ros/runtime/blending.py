"""Which action of which chunk is due: chunks on the player's count of actions, and their weights.

The clock here is the count of actions played. Row i of a chunk is the action with number ``start + i``,
where ``start`` is the count when its observation was taken; so a hand-over leaves no gap and repeats nothing,
however long the model took. Knows arrays and counts, no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.runtime.limits import CommandArray
from oxygen_ros.types import ActionChunk


@dataclass(frozen=True)
class PlacedChunk:
    """One chunk on the player's count.

    Attributes:
        chunk: as it came.
        start: number of the action that row 0 is.
        columns: int [action_dim], place of each column in the command.
        rows: float64 [horizon, num_joints], in command order; NaN for joints that the chunk has not.
    """

    chunk: ActionChunk
    start: int
    columns: NDArray[np.intp]
    rows: NDArray[np.float64]

    @property
    def end(self) -> int:
        """Number of the first action it no longer has."""
        return self.start + int(self.chunk.actions.shape[0])

    def has(self, number: int) -> bool:
        """True if action ``number`` is one of its rows."""
        return self.start <= number < self.end

    def row(self, number: int) -> CommandArray:
        """Action ``number``, float64 [num_joints]. Not to be written to."""
        row: CommandArray = self.rows[number - self.start]
        return row


class Blend:
    """Keeps the newest chunks of one expert and says what action comes of them.

    One chunk: the newest is followed as soon as it is there. Several: their actions for the same instant are
    averaged with weight ``exp(-decay * age)``, age in actions since a chunk's observation.
    """

    def __init__(self, max_chunks: int = 1, decay: float = 0.0) -> None:
        self._max_chunks = max_chunks
        self._decay = decay
        self._chunks: list[PlacedChunk] = []

    def add(self, placed: PlacedChunk) -> None:
        """Take over from older chunks, or join those that were made for the same instruction and joints."""
        kin = [
            older
            for older in self._chunks
            if older.chunk.instruction == placed.chunk.instruction
            and np.array_equal(older.columns, placed.columns)
        ]
        self._chunks = [*kin, placed][-self._max_chunks :]

    def clear(self) -> None:
        """Forget all chunks."""
        self._chunks = []

    def newest(self, number: int) -> PlacedChunk | None:
        """The chunk that came last among those that have action ``number``."""
        return next((placed for placed in reversed(self._chunks) if placed.has(number)), None)

    def action(self, number: int) -> CommandArray:
        """Action ``number``, which some chunk must have: float64 [num_joints], NaN for joints it lacks."""
        chunks = [placed for placed in self._chunks if placed.has(number)]
        if len(chunks) == 1:
            return chunks[0].row(number)
        ages = np.array([number - placed.start for placed in chunks], dtype=np.float64)
        weights = np.exp(-self._decay * (ages - ages.min()))
        mean: CommandArray = np.average([placed.row(number) for placed in chunks], axis=0, weights=weights)
        return mean


def place(chunk: ActionChunk, start: int, command_names: Sequence[str]) -> PlacedChunk:
    """``chunk`` on the player's count; all its joints must be in ``command_names``."""
    index = {name: i for i, name in enumerate(command_names)}
    columns = np.array([index[name] for name in chunk.joint_names], dtype=np.intp)
    rows = np.full((len(chunk.actions), len(command_names)), np.nan)
    rows[:, columns] = chunk.actions
    return PlacedChunk(chunk, start, columns, rows)
