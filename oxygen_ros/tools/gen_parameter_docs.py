"""Writes config/oxygen.yaml and docs/parameters.md from the declared parameters.

``python -m oxygen_ros.tools.gen_parameter_docs`` writes them, with ``--check`` it only says whether
they are up to date. A test does the same.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from oxygen_ros.tools.parameter_pages import parameters_markdown, parameters_yaml

ROOT = Path(__file__).parents[2]


def pages(root: Path) -> dict[Path, str]:
    """Wanted content by path."""
    return {
        root / "config" / "oxygen.yaml": parameters_yaml(),
        root / "docs" / "parameters.md": parameters_markdown(),
    }


def outdated(root: Path) -> list[Path]:
    """The files that differ from the declared parameters, or are not there."""
    return [
        path
        for path, wanted in pages(root).items()
        if not path.is_file() or path.read_text(encoding="utf-8") != wanted
    ]


def main(arguments: list[str] | None = None) -> int:
    """Write or check; returns the exit code, 1 if a checked file is out of date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a file differs")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder with config/ and docs/")
    options = parser.parse_args(arguments)
    changed = outdated(options.root)
    for path in changed:
        if options.check:
            print(f"out of date: {path}; run python -m oxygen_ros.tools.gen_parameter_docs", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(pages(options.root)[path], encoding="utf-8")
            print(f"written: {path}")
    return 1 if changed and options.check else 0


if __name__ == "__main__":
    raise SystemExit(main())
