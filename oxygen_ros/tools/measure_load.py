"""Loads a checkpoint and prints what it took: bytes kept, peak memory, their ratio, seconds.

Usage: python -m oxygen_ros.tools.measure_load CHECKPOINT [--dtype bfloat16] [--dialect auto].
Exit code 1 if the peak is above 1.15 times of what is kept.
"""

from __future__ import annotations

import argparse
import logging
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from oxygen_ros.clock import SteadyClock
from oxygen_ros.errors import OxygenError
from oxygen_ros.models.pi05.checkpoint_open import OpenOptions, open_checkpoint
from oxygen_ros.models.pi05.loading import load_model

LIMIT = 1.15


def resident_bytes() -> int:
    """Memory of this process that is in RAM now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def peak_bytes() -> int:
    """Most memory of this process that ever was in RAM."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(arguments: Sequence[str] | None = None) -> int:
    """Load and measure. Exit code 2 if the checkpoint cannot be loaded."""
    parser = argparse.ArgumentParser(prog="measure_load", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--dialect", default="auto")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(1)
    clock = SteadyClock()
    try:
        checkpoint = open_checkpoint(options.checkpoint, OpenOptions(dialect=options.dialect))
        before, start_ns = resident_bytes(), clock.now_ns()
        model = load_model(checkpoint, getattr(torch, options.dtype), torch.device("cpu"))
    except OxygenError as fault:
        print(fault, file=sys.stderr)
        return 2
    seconds = (clock.now_ns() - start_ns) / 1e9
    # A process that has freed as much as the model takes shows nothing: the weights are the least it kept.
    kept, peak = max(resident_bytes() - before, checkpoint.num_bytes), peak_bytes() - before
    print(f"stored {checkpoint.num_bytes / 1e6:.0f} MB, {checkpoint.num_parameters / 1e6:.1f} M parameters")
    print(f"kept {kept / 1e6:.0f} MB, peak {peak / 1e6:.0f} MB, ratio {peak / kept:.3f}, {seconds:.1f} s")
    print(f"kernels: {model.kernels}")
    return 0 if peak <= LIMIT * kept else 1


if __name__ == "__main__":
    sys.exit(main())
