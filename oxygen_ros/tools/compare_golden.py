"""Runs our model on a recorded folder and says, tensor by tensor, how far it is from the reference.

Usage: compare_golden DIR [--tolerance 1e-4]. Exit code 0 if every comparison holds, 1 if one does not,
2 if the folder cannot be used. A kind of folder is one class with ``is_kind`` and ``compare``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import torch

from oxygen_ros.errors import ContractError, OxygenError
from oxygen_ros.tools.golden.lerobot_folder import LerobotFolder
from oxygen_ros.tools.golden.pi05_folder import Pi05Folder
from oxygen_ros.tools.golden.report import Report


class GoldenFolder(Protocol):
    """A loaded folder of recorded tensors."""

    def __init__(self, folder: Path) -> None:
        """Load ``folder``; raises OxygenError if it cannot be used."""
        ...

    @staticmethod
    def is_kind(folder: Path) -> bool:
        """True if ``folder`` looks like this kind."""
        ...

    def compare(self, report: Report) -> None:
        """Compute what is recorded and add the comparisons to ``report``."""
        ...


KINDS: dict[str, type[GoldenFolder]] = {"pi05": Pi05Folder, "lerobot": LerobotFolder}


def open_folder(folder: Path) -> GoldenFolder:
    """Load ``folder`` as the kind that it is.

    Raises:
        OxygenError: if it is no known kind, or is broken.
    """
    if not folder.is_dir():
        raise ContractError("golden_folder", f"{folder} is not a folder")
    for kind in KINDS.values():
        if kind.is_kind(folder):
            return kind(folder)
    raise ContractError("golden_folder", f"{folder} is none of the known kinds: {', '.join(KINDS)}")


def compare(folder: Path, tolerance: float) -> Report:
    """Comparisons of one folder.

    Raises:
        OxygenError: if the folder cannot be used.
    """
    report = Report(tolerance)
    try:
        with torch.inference_mode():
            open_folder(folder).compare(report)
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as fault:
        what = f"{type(fault).__name__}: {str(fault).splitlines()[0] if str(fault) else 'no words'}"
        raise ContractError(
            "golden_folder", f"{folder} does not have the form of its kind: {what}"
        ) from fault
    if not report.comparisons:
        raise ContractError("golden_folder", f"{folder} records nothing that can be compared")
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare one folder; the exit code is described in the module's docstring."""
    parser = argparse.ArgumentParser(prog="compare_golden", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tolerance", type=float, default=1e-4, help="largest absolute difference")
    options = parser.parse_args(arguments)
    try:
        report = compare(options.folder, options.tolerance)
    except OxygenError as fault:
        print(fault, file=sys.stderr)
        return 2
    print(report)
    return 0 if report.holds else 1


if __name__ == "__main__":
    sys.exit(main())
