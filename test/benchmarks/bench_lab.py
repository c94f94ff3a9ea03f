"""A lab with the tiny model, as all tests of the benchmark use it."""

from __future__ import annotations

from dataclasses import replace

import torch

from benchmarks.lab import Lab
from benchmarks.sizes import MODEL_SIZES
from benchmarks.workloads import WORKLOADS


def tiny_lab(workload: str = "W1", max_tokens: int = 10, **changes: object) -> Lab:
    shaped = replace(WORKLOADS[workload], max_tokens=max_tokens, **changes)  # type: ignore[arg-type]
    return Lab(MODEL_SIZES["tiny"], torch.float32, torch.device("cpu"), shaped)
