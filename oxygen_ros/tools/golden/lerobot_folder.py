"""Folders that hold a recorded LeRobot run: a checkpoint as it lies on disk, raw frames, every stage.

Everything is computed anew, from the raw pictures and the task text to commands in robot units.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from oxygen_ros.errors import OxygenError
from oxygen_ros.models.pi05.checkpoint import Checkpoint
from oxygen_ros.models.pi05.checkpoint_open import OpenOptions, open_checkpoint
from oxygen_ros.models.pi05.checkpoint_sizes import FALLBACK_VISION_HEADS
from oxygen_ros.models.pi05.config import SIGLIP_SO400M
from oxygen_ros.models.pi05.dialect import LEROBOT_0_4
from oxygen_ros.models.pi05.loading import load_model
from oxygen_ros.models.pi05.processor import Pi05Processor
from oxygen_ros.models.tokenizers import LocalTokenizer, open_tokenizer
from oxygen_ros.robots.transform import RobotTransform
from oxygen_ros.tools.golden.lerobot_frame import RecordedFrame, read_frames
from oxygen_ros.tools.golden.lerobot_inputs import compare_inputs, compare_legacy
from oxygen_ros.tools.golden.lerobot_stages import Tolerances, compare_stages, prefix_error
from oxygen_ros.tools.golden.report import Report

CHECKPOINT = "checkpoint"
TOKENIZERS = ("tiny_tokenizer", "tokenizer")
CPU = torch.device("cpu")


@dataclasses.dataclass(frozen=True)
class RecordedCamera:
    """A camera of the recorded robot: its role is the feature's name."""

    feature: str
    slot: str = ""
    required: bool = True
    rotate_180: bool = False


@dataclasses.dataclass(frozen=True)
class RecordedRobot:
    """The robot as the checkpoint describes it: features by name, numbers as they are."""

    camera_roles: Sequence[str]
    cameras: Mapping[str, RecordedCamera]
    joint_names: Sequence[str]
    command_joint_names: Sequence[str]
    gripper_joints: Sequence[str] = ()
    relative_actions: bool = False


class LerobotFolder:
    """One loaded folder. ``compare`` runs processor and model on every frame."""

    def __init__(self, folder: Path) -> None:
        """Open the checkpoint, the tokenizer and all frames.

        Raises:
            OxygenError: if files are broken or do not belong together.
        """
        self._folder = folder
        self._frames = read_frames(folder)
        self._checkpoint = open_checkpoint(folder / CHECKPOINT)
        self._tokenizer = _tokenizer(folder, self._checkpoint)

    @staticmethod
    def is_kind(folder: Path) -> bool:
        """True if ``folder`` has a checkpoint folder. Without frames it is refused by name."""
        return (folder / CHECKPOINT).is_dir()

    def compare(self, report: Report) -> None:
        """Compare every stage of every frame."""
        checkpoint = self._with_vision_heads(report)
        is_low_precision = any(tensor.dtype != "F32" for tensor in checkpoint.tensors.values())
        if is_low_precision:
            report.note(
                "the recorded run was in bfloat16: its weights are run in float32, with wider tolerances"
            )
        tolerances = Tolerances.of(report.tolerance, is_low_precision)
        model = load_model(checkpoint, torch.float32, CPU)
        processor = _processor(checkpoint, self._tokenizer)
        older = _processor(dataclasses.replace(checkpoint, dialect=LEROBOT_0_4), self._tokenizer)
        for frame in self._frames:
            compare_inputs(frame, processor, report)
            compare_legacy(frame, older, report)
            compare_stages(frame, processor, model, tolerances, report)

    def _with_vision_heads(self, report: Report) -> Checkpoint:
        """The checkpoint with the head count that fits the record, where no file states it."""
        width = self._checkpoint.config.vision.width
        if width == SIGLIP_SO400M.width:
            return self._checkpoint
        frame = next((frame for frame in self._frames if "prefix_embs" in frame.stages), None)
        counts = [count for count in (FALLBACK_VISION_HEADS, 2, 8, 1, 16) if width % count == 0]
        if frame is None:
            return self._checkpoint
        best, smallest = self._checkpoint, np.inf
        for count in counts:
            found = open_checkpoint(self._folder / CHECKPOINT, OpenOptions(num_vision_heads=count))
            error = self._prefix_error(found, frame)
            if error < smallest:
                best, smallest = found, error
            if smallest <= report.tolerance:
                break
        heads = best.config.vision.num_heads
        report.note(f"no file states the heads of the vision tower; {heads} fit the record best")
        return best

    def _prefix_error(self, checkpoint: Checkpoint, frame: RecordedFrame) -> float:
        model = load_model(checkpoint, torch.float32, CPU)
        return prefix_error(frame, _processor(checkpoint, self._tokenizer), model)


def _processor(checkpoint: Checkpoint, tokenizer: LocalTokenizer) -> Pi05Processor:
    roles = [slot.name for slot in checkpoint.cameras if not slot.is_empty]
    robot = RecordedRobot(
        camera_roles=roles,
        cameras={role: RecordedCamera(role) for role in roles},
        joint_names=[f"state_{index}" for index in range(checkpoint.state.num_dims or 0)],
        command_joint_names=[f"action_{index}" for index in range(checkpoint.action.num_dims or 0)],
    )
    return Pi05Processor(checkpoint, tokenizer, robot, RobotTransform((), ()))


def _tokenizer(folder: Path, checkpoint: Checkpoint) -> LocalTokenizer:
    """The recorded tokenizer: beside the checkpoint, or in it."""
    places = [folder / name for name in TOKENIZERS if (folder / name).is_dir()]
    place = places[0] if places else checkpoint.tokenizer_path
    if place is None:
        raise OxygenError("golden_folder", f"{folder} has no tokenizer: looked for {', '.join(TOKENIZERS)}")
    return open_tokenizer(place)
