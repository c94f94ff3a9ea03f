"""Loads an opened checkpoint: says what memory it takes, refuses what does not fit, reads it once."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import torch

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.file_source import FileSource
from oxygen_ros.models.pi05.checkpoint import Checkpoint, Origin
from oxygen_ros.models.pi05.config import DtypePolicy
from oxygen_ros.models.pi05.dialect import LEROBOT_0_5_PLUS
from oxygen_ros.models.pi05.model import Pi05Model
from oxygen_ros.models.pi05.names import EMBEDDING, LM_HEAD, VISION
from oxygen_ros.models.tensor_files import StoredTensor

logger = logging.getLogger(__name__)

FREE_FACTOR = 1.3
"""Free memory that is asked for before a load, as a multiple of what the weights take."""


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes that the weights take in their dtypes, and bytes that are free; free is None if not known."""

    weights_bytes: int
    free_bytes: int | None

    @property
    def fits(self) -> bool:
        """Whether there is room for loading."""
        return self.free_bytes is None or self.free_bytes >= FREE_FACTOR * self.weights_bytes

    def in_words(self) -> str:
        """Both numbers for people."""
        free = "unknown" if self.free_bytes is None else f"{self.free_bytes / 1e6:.0f} MB"
        return f"weights take {self.weights_bytes / 1e6:.0f} MB, free memory is {free}"


def dtype_policy(checkpoint: Checkpoint, dtype: torch.dtype) -> DtypePolicy:
    """Dtypes of the parts when the model is run in ``dtype``, as the checkpoint's project runs it."""
    if checkpoint.origin is Origin.LEROBOT and checkpoint.dialect is LEROBOT_0_5_PLUS:
        return DtypePolicy(model=dtype, vision=torch.float32, action=torch.float32)
    return DtypePolicy.openpi(dtype)


def estimate(checkpoint: Checkpoint, policy: DtypePolicy, device: torch.device) -> MemoryEstimate:
    """Memory that loading ``checkpoint`` on ``device`` takes and finds."""
    total = sum(tensor.num_elements * _bytes_of(name, policy) for name, tensor in checkpoint.tensors.items())
    return MemoryEstimate(total, free_bytes(device))


def load_model(checkpoint: Checkpoint, dtype: torch.dtype, device: torch.device) -> Pi05Model:
    """The model of ``checkpoint`` on ``device``, read tensor by tensor; logs beforehand what it takes.

    Raises:
        CheckpointError: if there is too little free memory, or the files change meanwhile.
    """
    policy = dtype_policy(checkpoint, dtype)
    memory = estimate(checkpoint, policy, device)
    logger.info(
        "loading %s: %d parameters, %s", checkpoint.path, checkpoint.num_parameters, memory.in_words()
    )
    if not memory.fits:
        raise CheckpointError(
            "memory",
            f"{memory.in_words()}; loading wants {FREE_FACTOR} times the weights",
            "free memory, or load in bfloat16 (runner.dtype)",
        )
    source = FileSource(_without_equal_head(checkpoint))
    return Pi05Model.from_source(checkpoint.config.with_dtypes(policy), source, device)


def free_bytes(device: torch.device) -> int | None:
    """Free memory of ``device``; None where nothing says it."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    available = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(available[0]) * 1024 if available else None


def _without_equal_head(checkpoint: Checkpoint) -> dict[str, StoredTensor]:
    """Tensors without the head where it is the embedding stored twice; a difference is logged."""
    tensors = dict(checkpoint.tensors)
    if EMBEDDING in tensors and LM_HEAD in tensors:
        if FileSource(tensors).same(EMBEDDING, LM_HEAD):
            del tensors[LM_HEAD]
            logger.info("the language head equals the embedding: kept once")
        else:
            logger.info("the language head differs from the embedding: texts use the head for logits")
    return tensors


def _bytes_of(name: str, policy: DtypePolicy) -> int:
    dtype = policy.model
    if name.startswith(VISION) or ".multi_modal_projector." in name:
        dtype = policy.vision
    elif "layernorm" in name or name.endswith(("norm.weight", "norm.dense.weight", "norm.dense.bias")):
        dtype = torch.float32
    elif not name.startswith("paligemma_with_expert."):
        dtype = policy.action
    return dtype.itemsize
