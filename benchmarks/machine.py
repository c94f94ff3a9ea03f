"""What it runs on: processor, versions, commit, load, and what the machine can do at best."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F

from benchmarks.timing import timed_ns
from oxygen_ros.models.linear import make_linear

GEMM_SHAPES = {"cpu": (512, 1024, 4096), "cuda": (8192, 4096, 8192)}
"""Rows, inputs and outputs of the product that the compute rate is measured with, by kind of device."""
STREAM_BYTES = 256 << 20
REPEATS = 5


@dataclass(frozen=True)
class Machine:
    """Facts of one run.

    Attributes:
        gemm_flops: best rate found for a large product by dtype, operations per second.
        read_bytes_per_s: best rate of reading memory much larger than any cache.
        clocks: what the driver of a GPU says of its clocks; empty for CPUs.
        load_average: of the last minute, at the start.
    """

    device: str
    processor: str
    capability: str
    num_cores: int
    num_threads: int
    torch_version: str
    python_version: str
    commit: str
    clocks: str
    load_average: float
    gemm_flops: dict[str, float]
    read_bytes_per_s: float

    @property
    def folder(self) -> str:
        """Name of the folder that results of this kind of machine go to."""
        name = re.sub(r"[^a-z0-9]+", "-", f"{self.processor} {self.capability}".lower()).strip("-")
        return name if self.device == "cpu" else re.sub(r"[^a-z0-9]+", "-", self.device.lower()).strip("-")


def load_average() -> float:
    """Processes that want to run, mean of the last minute."""
    return os.getloadavg()[0]


def probe(device: torch.device) -> Machine:
    """Measure and look up. Takes some seconds."""
    return Machine(
        device="cpu" if device.type == "cpu" else torch.cuda.get_device_name(device),
        processor=_processor(),
        capability=torch.backends.cpu.get_cpu_capability(),
        num_cores=os.cpu_count() or 1,
        num_threads=torch.get_num_threads(),
        torch_version=torch.__version__,
        python_version=platform.python_version(),
        commit=_commit(),
        clocks=_gpu_clocks() if device.type == "cuda" else "",
        load_average=load_average(),
        gemm_flops={
            str(dtype).removeprefix("torch."): _gemm_flops(dtype, device)
            for dtype in (torch.float32, torch.bfloat16)
        },
        read_bytes_per_s=_read_rate(device),
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> str:
    return _output_of("git", "describe", "--always", "--dirty", "--exclude", "*")


def _gpu_clocks() -> str:
    return _output_of("nvidia-smi", "--query-gpu=clocks.sm,clocks.mem,power.limit", "--format=csv,noheader")


def _output_of(*command: str) -> str:
    root = Path(__file__).resolve().parents[1]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def _best_ns(work: Callable[[], object], device: torch.device) -> int:
    work()
    return min(timed_ns(work, device) for _ in range(REPEATS))


def _gemm_flops(dtype: torch.dtype, device: torch.device) -> float:
    """Best of the plain product and of the product's own linear layer."""
    rows, width, out = GEMM_SHAPES[device.type]
    x = torch.randn(rows, width, device=device).to(dtype)
    weight = torch.randn(out, width, device=device).to(dtype)
    layer = make_linear(weight)
    fastest_ns = min(_best_ns(lambda: F.linear(x, weight), device), _best_ns(lambda: layer(x), device))
    return 2.0 * rows * width * out / (fastest_ns * 1e-9)


def _read_rate(device: torch.device) -> float:
    """Rate of a matrix-vector product and of a sum, whichever is better: both only read."""
    weight = torch.ones(STREAM_BYTES // 4 // 2048, 2048, device=device)
    x = torch.ones(1, 2048, device=device)
    fastest_ns = min(_best_ns(lambda: F.linear(x, weight), device), _best_ns(weight.sum, device))
    return STREAM_BYTES / (fastest_ns * 1e-9)
