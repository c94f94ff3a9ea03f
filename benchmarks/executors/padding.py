"""Puts an observation into the fixed shapes of the reference: all camera slots, the whole prompt buffer."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.reference.policy import PaddedInputs
from oxygen_ros.errors import ContractError
from oxygen_ros.models.pi05.config import Pi05Config
from oxygen_ros.models.protocol import ModelInputs

BLACK = -1.0


def padded(
    inputs: ModelInputs, suffix: tuple[int, ...], config: Pi05Config, device: torch.device
) -> PaddedInputs:
    """``inputs`` with black pictures for absent cameras and its prompt, then ``suffix``, padded with 0.

    Raises:
        ContractError: if the prompt does not fit the buffer.
    """
    ids = np.concatenate([inputs.token_ids, np.array(suffix, dtype=np.int64)])
    if len(ids) > config.max_token_len:
        raise ContractError("prompt_length", f"{len(ids)} tokens, the buffer holds {config.max_token_len}")
    buffer = np.zeros(config.max_token_len, dtype=np.int64)
    buffer[: len(ids)] = ids
    absent = len(config.cameras) - len(inputs.images)
    black = np.full(inputs.images.shape[1:], BLACK, dtype=np.float32)
    pictures = [*inputs.images, *([black] * absent)]
    return PaddedInputs(
        images=tuple(torch.from_numpy(picture).to(device) for picture in pictures),
        has_image=(True,) * len(inputs.images) + (False,) * absent,
        token_ids=torch.from_numpy(buffer).to(device),
        token_mask=(torch.arange(config.max_token_len) < len(ids)),
    )
