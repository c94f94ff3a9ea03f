"""One frame of a recorded LeRobot run: what the robot gave, and what each stage held."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.errors import ContractError
from oxygen_ros.models.pi05.checkpoint_processors import STATE
from oxygen_ros.types import Observation

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class RecordedFrame:
    """A frame folder, read. ``stages``, ``images`` and ``legacy`` are empty where nothing was recorded."""

    name: str
    inputs: Arrays
    text: dict[str, Any]
    stages: Arrays
    images: Arrays
    legacy_images: Arrays
    legacy_text: dict[str, Any]

    @property
    def observation(self) -> Observation:
        """The frame as the robot gives it; camera roles are the names of the features."""
        pictures = {key: value for key, value in self.inputs.items() if key != STATE}
        return Observation(1, 0, pictures, self.inputs[STATE].astype(np.float32), str(self.text["task"]))


def read_frames(folder: Path) -> tuple[RecordedFrame, ...]:
    """All frames of a recorded run, in the order of their names.

    Raises:
        ContractError: if there is none, or one lacks its inputs or text.
    """
    frames = tuple(_read(path) for path in sorted(folder.glob("frame*")) if path.is_dir())
    if not frames:
        raise ContractError(
            "golden_no_frames",
            f"{folder} holds a checkpoint but no frame folders: no run is recorded that could be compared",
            "a folder with frame0, frame1, ...; the doctor explains a checkpoint alone",
        )
    return frames


def _read(folder: Path) -> RecordedFrame:
    inputs, text = _arrays(folder / "inputs.npz"), _text(folder / "text.json")
    if STATE not in inputs or "task" not in text:
        raise ContractError("golden_input", f"{folder} lacks {STATE} in inputs.npz or the task in text.json")
    return RecordedFrame(
        name=folder.name,
        inputs=inputs,
        text=text,
        stages=_arrays(folder / "stages.npz"),
        images=_arrays(folder / "images_model.npz"),
        legacy_images=_arrays(folder / "legacy_044.npz"),
        legacy_text=_text(folder / "legacy_044.json"),
    )


def _arrays(path: Path) -> Arrays:
    if not path.is_file():
        return {}
    try:
        with np.load(path) as archive:
            return {key: archive[key] for key in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise ContractError("golden_file", f"cannot read {path}: {error}") from error


def _text(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ContractError("golden_file", f"cannot read {path}: {error}") from error
    if not isinstance(found, dict):
        raise ContractError("golden_file", f"{path} does not hold an object")
    return found
