"""Between the robot and pi0.5: pictures, prompt and state in, joint commands out.

Made from an opened checkpoint and the robot's view of itself. On the CPU, one thread, pure but for
counters. Order in: robot map, normalise, prompt. Order out: un-normalise, add the state to relative
actions, robot map.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.errors import ConfigError, ContractError
from oxygen_ros.models.pi05.cameras import CameraView, bind_cameras
from oxygen_ros.models.pi05.checkpoint import Checkpoint, Feature, Origin
from oxygen_ros.models.pi05.checkpoint_openpi import fit_to_robot
from oxygen_ros.models.pi05.images import PictureMaker
from oxygen_ros.models.pi05.normalise import DEGENERATE_BOUND, Normaliser, make_normaliser
from oxygen_ros.models.pi05.prompt import BelowRange, Prompt, PromptWriter
from oxygen_ros.models.pi05.relative import RelativeActions, relative_by_counts, relative_by_names
from oxygen_ros.models.protocol import ModelInputs
from oxygen_ros.models.tokenizers import LocalTokenizer
from oxygen_ros.types import FloatArray, Observation

Vector = NDArray[np.floating]


class RobotView(Protocol):
    """What is read of a robot's configuration."""

    @property
    def camera_roles(self) -> Sequence[str]:
        """Cameras by role."""
        ...

    @property
    def cameras(self) -> Mapping[str, CameraView]:
        """Configuration by role."""
        ...

    @property
    def joint_names(self) -> Sequence[str]:
        """State in model order."""
        ...

    @property
    def command_joint_names(self) -> Sequence[str]:
        """Commands in model order."""
        ...

    @property
    def gripper_joints(self) -> Sequence[str]:
        """Joints that are grippers."""
        ...

    @property
    def relative_actions(self) -> bool:
        """Whether openpi's actions are offsets from the state, except grippers."""
        ...


class RobotNumbers(Protocol):
    """Maps between the robot's units and the numbers that the checkpoint was trained on."""

    def state_to_model(self, state: Vector) -> Vector:
        """Model numbers of a state."""
        ...

    def state_to_robot(self, state: Vector) -> Vector:
        """Robot units of a state in model numbers."""
        ...

    def commands_to_robot(self, commands: Vector) -> Vector:
        """Robot units of commands."""
        ...


class Pi05Processor:
    """Implements ``models.protocol.Processor``.

    Attributes:
        slots: every camera slot of the model with the role that fills it.
        state_normaliser, action_normaliser: what is done to numbers, for people and tools.
        numbers: maps between the robot's units and the checkpoint's numbers.
        relative: which actions are offsets from the state; None for none.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        tokenizer: LocalTokenizer,
        robot: RobotView,
        numbers: RobotNumbers,
        below_range: BelowRange = BelowRange.AS_TRAINED,
    ) -> None:
        """Check that checkpoint, vocabulary and robot fit together.

        Raises:
            ConfigError: if cameras or joints do not fit.
            CheckpointError: if the statistics do not fit the robot.
        """
        config = checkpoint.config
        self._robot = robot
        self.numbers = numbers
        self._counts: Counter[str] = Counter()
        self._image_size = config.vision.image_size
        self._model_state_dim = config.experts[0].state_dim
        self.slots = bind_cameras(checkpoint, robot.camera_roles, robot.cameras)
        self._fed = [
            (slot, PictureMaker(self._image_size, checkpoint.dialect, is_upside_down=slot.is_upside_down))
            for slot in self.slots
            if slot.role is not None
        ]
        state_dim, action_dim = len(robot.joint_names), len(robot.command_joint_names)
        self.state_normaliser = _normaliser(checkpoint, checkpoint.state, state_dim, "joint_names")
        self.action_normaliser = _normaliser(checkpoint, checkpoint.action, action_dim, "command_joint_names")
        self.relative = _relative(checkpoint, robot)
        _check_vocabulary(tokenizer, config.vocab_size)
        self._writer = PromptWriter(
            tokenizer, checkpoint.dialect, checkpoint.prompt_style, config.max_token_len, below_range
        )

    @property
    def counts(self) -> Mapping[str, int]:
        """How often since the start: ``state_clipped``, ``prompt_truncated``, ``camera_absent``."""
        return dict(self._counts)

    def camera_map(self) -> str:
        """Which camera fills which slot, for the log: only names can show that two are swapped."""
        return "; ".join(f"{slot.name} <- {slot.role or 'nothing'}" for slot in self.slots)

    def warnings(self) -> tuple[str, ...]:
        """Joints whose recorded range is almost zero, one sentence each."""
        named = (
            (self.state_normaliser, "state", self._robot.joint_names),
            (self.action_normaliser, "command", self._robot.command_joint_names),
        )
        return tuple(
            f"{kind} {names[dim]} never moved in training: kept within {DEGENERATE_BOUND:g} of model space"
            for normaliser, kind, names in named
            for dim in normaliser.degenerate
        )

    def prepare(self, observation: Observation) -> ModelInputs:
        """Model inputs of one observation.

        Raises:
            ContractError: if a camera is missing, a shape is wrong or the state is not finite.
        """
        state = self.state_normaliser.normalise(self._model_state(observation))
        prompt = self._writer.write(observation.instruction, state)
        self._count(prompt)
        return ModelInputs(
            observation_id=observation.observation_id,
            images=self._pictures(observation),
            token_ids=prompt.token_ids,
            state=self._padded(state) if self._model_state_dim else None,
        )

    def prompt(self, observation: Observation) -> Prompt:
        """Prompt of one observation as text and ids, for people and tools.

        Raises:
            ContractError: as ``prepare``.
        """
        state = self.state_normaliser.normalise(self._model_state(observation))
        return self._writer.write(observation.instruction, state)

    def finish(self, expert: str, actions: FloatArray, observation: Observation) -> FloatArray:
        """Commands float32 [horizon, commands] in the robot's units and order.

        Args:
            expert: which expert made them; all share the robot's commands.
            actions: float32 [horizon, action_dim] in model space.
            observation: the one they were made from.
        """
        width = len(self._robot.command_joint_names)
        values = self.action_normaliser.unnormalise(actions)[:, :width]
        if self.relative is not None:
            state = self._model_state(observation).astype(values.dtype)
            values = self.relative.to_absolute(values, state)
        return self.numbers.commands_to_robot(values).astype(np.float32)

    def joint_names(self, expert: str) -> tuple[str, ...]:
        """Column names of what ``finish`` gives."""
        return tuple(self._robot.command_joint_names)

    def _model_state(self, observation: Observation) -> Vector:
        """State in the numbers that the checkpoint was trained on, not yet normalised."""
        state, names = observation.state, self._robot.joint_names
        if state.shape != (len(names),):
            raise ContractError(
                "state_shape",
                f"the state has shape {list(state.shape)}, want [{len(names)}]: {', '.join(names)}",
                "check robot.joint_names",
            )
        if not np.isfinite(state).all():
            bad = [name for name, value in zip(names, state, strict=True) if not np.isfinite(value)]
            raise ContractError(
                "state_not_finite", f"the state is not finite at {', '.join(bad)}", "check the joint source"
            )
        return self.numbers.state_to_model(state)

    def _pictures(self, observation: Observation) -> FloatArray:
        """Pictures of the cameras that are there, in slot order, [num_cameras, 3, S, S]."""
        there = [(slot, maker) for slot, maker in self._fed if slot.role in observation.images]
        missing = [
            slot.role for slot, _ in self._fed if slot.is_required and slot.role not in observation.images
        ]
        if missing:
            raise ContractError(
                "camera_missing",
                f"no picture of {', '.join(str(role) for role in missing)}; "
                f"there is {', '.join(observation.images) or 'none'}",
                "check the camera, or set robot.cameras.<role>.required: false",
            )
        self._counts["camera_absent"] += len(self._fed) - len(there)
        out = np.empty((len(there), 3, self._image_size, self._image_size), np.float32)
        for picture, (slot, maker) in zip(out, there, strict=True):
            maker.write(observation.images[str(slot.role)], picture)
        return out

    def _padded(self, state: Vector) -> FloatArray:
        padded = np.zeros(self._model_state_dim, np.float32)
        padded[: state.size] = state
        return padded

    def _count(self, prompt: Prompt) -> None:
        self._counts["state_clipped"] += prompt.num_clipped
        self._counts["prompt_truncated"] += prompt.is_truncated


def _normaliser(checkpoint: Checkpoint, feature: Feature, num_dims: int, parameter: str) -> Normaliser:
    if feature.num_dims is not None and feature.num_dims != num_dims:
        raise ConfigError(
            "joint_count",
            f"robot.{parameter} names {num_dims} joints, the checkpoint's {feature.statistics.feature!r} has "
            f"{feature.num_dims}",
            "checkpoint and preset belong to different robots",
        )
    is_openpi = checkpoint.origin is Origin.OPENPI
    statistics = fit_to_robot(feature, num_dims) if is_openpi else feature.statistics
    return make_normaliser(statistics, feature.mode, num_dims, checkpoint.dialect)


def _relative(checkpoint: Checkpoint, robot: RobotView) -> RelativeActions | None:
    names = robot.command_joint_names
    state_dim = len(robot.joint_names)
    if checkpoint.origin is Origin.OPENPI:
        if not robot.relative_actions:
            return None
        counts = [-1 if name in robot.gripper_joints else 1 for name in names]
        return relative_by_counts(counts, len(names), state_dim)
    if checkpoint.relative is None:
        return None
    rule = checkpoint.relative
    return relative_by_names(rule.action_names, rule.excluded, len(names), state_dim)


def _check_vocabulary(tokenizer: LocalTokenizer, vocab_size: int) -> None:
    if tokenizer.vocab_size > vocab_size:
        raise ConfigError(
            "vocabulary",
            f"the tokenizer {tokenizer.file.path} has {tokenizer.vocab_size} entries, the model {vocab_size}",
            "the tokenizer belongs to another model; pi0.5 uses PaliGemma's",
        )
