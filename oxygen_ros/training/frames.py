"""Training frames as arrays: what the cameras showed, what was so, and what the expert would do.

One row is one observation. Rows are independent; no file of them belongs into git.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.sim import expert
from oxygen_ros.sim.cameras import BASE_CAMERA, WRIST_CAMERA, Cameras
from oxygen_ros.sim.truth import ALL_TASKS, Task, Truth
from oxygen_ros.sim.world import Tabletop
from oxygen_ros.types import ImageArray

Array = NDArray[Any]

HORIZON = 10
IMAGE_SIZE = 64
GRID = 4
"""Patches per side of a picture."""
NOBODY = -1
CAMERAS = (BASE_CAMERA, WRIST_CAMERA)


@dataclass(frozen=True)
class Frames:
    """N observations and their labels.

    Attributes:
        images: uint8 [N, 2, S, S, 3], base camera then wrist camera.
        state: float32 [N, 8].
        task: int8 [N], index into ALL_TASKS.
        truth: float32 [N, 22]; see ``pack_truth``.
        cells: int8 [N, 2, 6], patch that holds the centre of each cube, container and the grasp point,
            by camera; -1 when out of the picture.
        plan: float32 [N, HORIZON, 7], the expert's next actions.
    """

    images: Array
    state: Array
    task: Array
    truth: Array
    cells: Array
    plan: Array

    def __len__(self) -> int:
        return len(self.task)

    def save(self, path: Path) -> None:
        """Write one uncompressed ``.npz``; a reader never sees half a file."""
        partial = path.with_suffix(".partial.npz")
        np.savez(partial, **{field.name: getattr(self, field.name) for field in fields(self)})
        partial.rename(path)


def load_frames(path: Path) -> Frames:
    """Read what ``Frames.save`` wrote."""
    with np.load(path) as data:
        return Frames(**{field.name: data[field.name] for field in fields(Frames)})


def join_frames(parts: Sequence[Frames]) -> Frames:
    """All rows of ``parts``, in order."""
    return Frames(
        **{field.name: np.concatenate([getattr(p, field.name) for p in parts]) for field in fields(Frames)}
    )


def pack_truth(truth: Truth) -> Array:
    """Truth as float32 [22]: hand, command, opening, closing, cubes, containers, held (-1 for none)."""
    held = NOBODY if truth.held is None else truth.held
    return np.concatenate(
        [
            truth.hand,
            truth.command,
            [truth.opening, truth.is_closing],
            truth.cubes.ravel(),
            truth.containers.ravel(),
            [held],
        ]
    ).astype(np.float32)


def unpack_truth(row: Array) -> Truth:
    """The inverse of ``pack_truth``."""
    values = row.astype(np.float64)
    return Truth(
        hand=values[0:3],
        command=values[3:6],
        opening=float(values[6]),
        is_closing=bool(values[7] > 0.5),
        cubes=values[8:17].reshape(3, 3),
        containers=values[17:21].reshape(2, 2),
        held=None if values[21] < 0 else int(values[21]),
    )


class FrameRecorder:
    """Collects rows from worlds; owns nothing but its lists."""

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, world: Tabletop, task: Task, pictures: ImageArray) -> None:
        """Record ``world`` as it is now and as ``pictures`` show it, with the expert's label."""
        truth = world.truth()
        points = np.concatenate(
            [truth.cubes, np.concatenate([truth.containers, np.zeros((2, 1))], axis=1), truth.hand[None]]
        )
        cells = np.stack([patch_of(world, camera, points) for camera in CAMERAS])
        plan = expert.plan(truth, task, HORIZON)
        self._rows.append((pictures, world.state(), ALL_TASKS.index(task), pack_truth(truth), cells, plan))

    def frames(self) -> Frames:
        """Everything recorded so far."""
        images, state, task, truth, cells, plan = zip(*self._rows, strict=True)
        return Frames(
            images=np.stack(images),
            state=np.stack(state),
            task=np.array(task, np.int8),
            truth=np.stack(truth),
            cells=np.stack(cells).astype(np.int8),
            plan=np.stack(plan),
        )


def take_pictures(cameras: Cameras, world: Tabletop) -> ImageArray:
    """What the model is shown, uint8 [2, S, S, 3]."""
    return np.stack([cameras.render(name, IMAGE_SIZE, IMAGE_SIZE, world) for name in CAMERAS])


def patch_of(world: Tabletop, camera: str, points: Array) -> Array:
    """Patch index [M] that each of ``points`` [M, 3] falls into, -1 when out of the picture."""
    index = world.model.camera(camera).id
    axes = world.data.cam_xmat[index].reshape(3, 3)
    local = (points - world.data.cam_xpos[index]) @ axes
    depth = np.maximum(-local[:, 2], 1e-6)
    scale = 0.5 / np.tan(np.radians(world.model.cam_fovy[index]) / 2)
    column = np.floor((0.5 + scale * local[:, 0] / depth) * GRID).astype(int)
    row = np.floor((0.5 - scale * local[:, 1] / depth) * GRID).astype(int)
    is_inside = (local[:, 2] < 0) & (column >= 0) & (column < GRID) & (row >= 0) & (row < GRID)
    return np.where(is_inside, row * GRID + column, NOBODY)
