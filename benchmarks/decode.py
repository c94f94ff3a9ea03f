"""Decode steps by number of rows, in both dtypes: ``python -m benchmarks.decode``."""

from __future__ import annotations

import sys

from benchmarks.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["--parts", "decode,decode_bfloat16", "--no-plots", *sys.argv[1:]]))
