"""Cycle time and action latency beside the isolated way: ``python -m benchmarks.cycle``."""

from __future__ import annotations

import sys

from benchmarks.__main__ import main

PARTS = "workloads,decode_bfloat16,memory,operators,overhead"

if __name__ == "__main__":
    sys.exit(main(["--workloads", "W1", "--parts", PARTS, "--cycles", "10", "--no-plots", *sys.argv[1:]]))
