"""The recorded LeRobot cases, as tests read them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEROBOT = Path(__file__).parents[1] / "resources" / "lerobot"
PI05_CASES = ("pi05_libero_seed0", "pi05_aloha_seed1")
FLOAT32_CASES = (*PI05_CASES, "pi0_droid_seed0")
ALL_CASES = (*FLOAT32_CASES, "pi05_libero_bf16_seed0")
FRAMES = ("frame0", "frame1")
# Inputs and pictures of this case are those of another one; they are kept once.
INPUTS_OF = {"pi05_libero_bf16_seed0": "pi05_libero_seed0"}


@dataclass(frozen=True)
class Frame:
    """One recorded frame of one case."""

    case: str
    name: str

    @property
    def folder(self) -> Path:
        return LEROBOT / self.case / self.name

    @property
    def inputs_folder(self) -> Path:
        return LEROBOT / INPUTS_OF.get(self.case, self.case) / self.name

    def inputs(self) -> dict[str, NDArray[Any]]:
        return _arrays(self.inputs_folder / "inputs.npz")

    def images(self) -> dict[str, NDArray[Any]]:
        return _arrays(self.inputs_folder / "images_model.npz")

    def legacy_images(self) -> dict[str, NDArray[Any]]:
        return _arrays(self.inputs_folder / "legacy_044.npz")

    def legacy_text(self) -> dict[str, Any]:
        return json.loads((self.inputs_folder / "legacy_044.json").read_text())

    def stages(self) -> dict[str, NDArray[Any]]:
        return _arrays(self.folder / "stages.npz")

    def text(self) -> dict[str, Any]:
        return json.loads((self.folder / "text.json").read_text())


def checkpoint_folder(case: str) -> Path:
    return LEROBOT / case / "checkpoint"


def tokenizer_folder(case: str) -> Path:
    return LEROBOT / case / "tiny_tokenizer"


def config_json(case: str) -> dict[str, Any]:
    return json.loads((checkpoint_folder(case) / "config.json").read_text())


def camera_keys(case: str) -> list[str]:
    """Image features of the checkpoint in its order, without the empty ones."""
    features = config_json(case)["input_features"]
    return [key for key, value in features.items() if value["type"] == "VISUAL" and "empty_camera" not in key]


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    with np.load(path) as archive:
        return {key: archive[key] for key in archive.files}
