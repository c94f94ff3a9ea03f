"""What a run was made on: processor, versions, threads, load, and which weights. Imports no torch."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from oxygen_ros import __version__

PACKAGES = ("numpy", "torch", "mujoco", "ros-jazzy-rclpy", "rosbags")
WEIGHTS = "model.safetensors"


def machine_facts(threads: int | None = None) -> dict[str, Any]:
    """Facts of this machine; ``threads`` of the model, or those that the environment sets."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": threads or os.environ.get("OMP_NUM_THREADS") or "not set",
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {"oxygen_ros": __version__, **{name: _version(name) for name in PACKAGES}},
    }


def checkpoint_facts(folder: Path) -> dict[str, Any]:
    """Which weights: folder and SHA-256 of the weight file; None where there is none."""
    weights = folder / WEIGHTS
    digest = hashlib.sha256(weights.read_bytes()).hexdigest() if weights.is_file() else None
    return {"folder": folder.name, "sha256": digest}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
