"""Built engine files: what their sidecar says they were built for, and what this machine has.

An engine runs only on the kind of GPU and the version of TensorRT that it was built with. The sidecar is the
file's name with ``.json``: {"sm": 89, "trt": "10.7"}.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import torch

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.json_file import read_json

SUFFIXES = (".engine", ".plan", ".trt")


@dataclass(frozen=True)
class Platform:
    """Compute capability as one number (89 for 8.9), and version of TensorRT; None for none."""

    sm: int | None
    trt: str | None

    def in_words(self) -> str:
        """Both for people."""
        gpu = "no CUDA device" if self.sm is None else f"sm {self.sm}"
        return f"{gpu}, " + ("no TensorRT" if self.trt is None else f"TensorRT {self.trt}")


def this_platform() -> Platform:
    """What this machine has."""
    sm = None
    if torch.cuda.is_available():
        major, minor = torch.cuda.get_device_capability()
        sm = major * 10 + minor
    try:
        trt: str | None = metadata.version("tensorrt")
    except metadata.PackageNotFoundError:
        trt = None
    return Platform(sm, trt)


def built_for(path: Path) -> Platform | None:
    """What the engine ``path`` was built for; None if no sidecar says it.

    Raises:
        CheckpointError: if the sidecar is malformed.
    """
    sidecar = path.with_name(path.name + ".json")
    if not sidecar.is_file():
        return None
    document = read_json(sidecar)
    version = document.data.get("trt")
    return Platform(
        document.integer("sm"), str(version) if isinstance(version, float) else document.text("trt")
    )


def refuse_engine(path: Path, have: Platform) -> CheckpointError:
    """Why the engine ``path`` is not loaded on a machine that has ``have``, and what to give instead."""
    wanted = built_for(path)
    told = "no sidecar says what for" if wanted is None else f"for {wanted.in_words()}"
    return CheckpointError(
        "checkpoint_engine",
        f"{path} is a built engine, {told}; this machine has {have.in_words()}",
        "give the directory of the checkpoint that it was built from: PyTorch runs it (runner.kind: eager)",
    )
