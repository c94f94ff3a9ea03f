"""Counts what torch compiles. A model that compiles while the robot acts stalls it, and does so again."""

from __future__ import annotations

import sys


def num_compiled_graphs() -> int:
    """Graphs compiled in this process so far, compiled anew for another shape included."""
    compiler = sys.modules.get("torch._dynamo.utils")  # not imported: nothing was compiled
    return 0 if compiler is None else int(compiler.counters["stats"]["unique_graphs"])
