"""The processor of the fake runner: joints pass through as they are, the prompt is the instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from oxygen_ros.errors import ContractError
from oxygen_ros.models.protocol import ModelInputs, Tokenizer
from oxygen_ros.types import FloatArray, ImageArray, Observation

_SIDE = 16  # pixels of the thumbnails that stand for pictures


class PassThroughProcessor:
    """Pure, without statistics. As strict about its inputs as a real one."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        camera_roles: Sequence[str],
        joint_names: Mapping[str, Sequence[str]],
        state_dim: int,
        max_prompt_tokens: int = 64,
    ) -> None:
        """Make a processor.

        Args:
            tokenizer: of the instruction.
            camera_roles: pictures that every observation must have, in slot order.
            joint_names: columns of the actions by expert.
            state_dim: joints in the state.
            max_prompt_tokens: the instruction is cut to so many tokens.
        """
        self._tokenizer = tokenizer
        self._camera_roles = tuple(camera_roles)
        self._joint_names = {expert: tuple(names) for expert, names in joint_names.items()}
        self._state_dim = state_dim
        self._max_prompt_tokens = max_prompt_tokens

    def prepare(self, observation: Observation) -> ModelInputs:
        """Thumbnails, the tokens of the instruction, the state as it is."""
        state = observation.state
        if state.shape != (self._state_dim,) or state.dtype != np.float32:
            got = f"{state.dtype} {list(state.shape)}"
            raise ContractError("state_shape", f"state is {got}, wanted float32 [{self._state_dim}]")
        if not np.isfinite(state).all():
            at = np.flatnonzero(~np.isfinite(state)).tolist()
            raise ContractError("state_not_finite", f"state is not finite at {at}")
        pictures = [self._thumbnail(role, observation.images.get(role)) for role in self._camera_roles]
        ids = self._tokenizer.encode(observation.instruction)[: self._max_prompt_tokens]
        return ModelInputs(
            observation_id=observation.observation_id,
            images=np.stack(pictures) if pictures else np.zeros((0, 3, _SIDE, _SIDE), np.float32),
            token_ids=np.array(ids, dtype=np.int64),
            state=state.copy(),
        )

    def finish(self, expert: str, actions: FloatArray, observation: Observation) -> FloatArray:
        """The columns that have a joint name."""
        return actions[:, : len(self._joint_names[expert])].copy()

    def joint_names(self, expert: str) -> tuple[str, ...]:
        """Column names of what ``finish`` gives."""
        return self._joint_names[expert]

    def _thumbnail(self, role: str, image: ImageArray | None) -> FloatArray:
        if image is None:
            raise ContractError("camera_missing", f"camera '{role}' is missing")
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or not image.size:
            got = f"{image.dtype} {list(image.shape)}"
            raise ContractError("image_shape", f"camera '{role}' gave {got}, wanted uint8 [H, W, 3]")
        rows = np.linspace(0, image.shape[0] - 1, _SIDE).astype(int)
        columns = np.linspace(0, image.shape[1] - 1, _SIDE).astype(int)
        small = image[rows][:, columns].transpose(2, 0, 1)
        return np.asarray(small / np.float32(127.5) - np.float32(1), dtype=np.float32)
