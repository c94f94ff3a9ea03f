"""Report long files and long functions; fail on those without a written reason.

A file above 300 lines or a function above 50 needs a line in its module's docstring that starts with `Size:`
and says why it is better whole. Prints what fails, and with --all the largest of everything.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("oxygen_ros", "scripts", "launch", "benchmarks", "test")
MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 50


@dataclass(frozen=True)
class Size:
    """One file or function: where it is, how long, how long it may be, and whether a reason is written."""

    place: str
    lines: int
    limit: int
    has_reason: bool

    @property
    def is_refused(self) -> bool:
        """Tell whether it is too long without a reason."""
        return self.lines > self.limit and not self.has_reason


def is_python_script(path: Path) -> bool:
    """Tell whether a file without a suffix is started by Python."""
    return path.is_file() and path.suffix == "" and b"python" in path.open("rb").readline()


def python_files(root: Path) -> Iterator[Path]:
    """Yield our Python files, scripts without a suffix too."""
    yield from sorted(root.glob("*.py"))
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix == ".py" or is_python_script(path):
                yield path


def measure(path: Path, root: Path) -> Iterator[Size]:
    """Yield the size of a file, then those of its functions and methods."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source, filename=str(path))
    name = str(path.relative_to(root))
    docstring = ast.get_docstring(tree) or ""
    has_reason = re.search(r"^\s*Size:\s*\w", docstring, re.MULTILINE) is not None
    yield Size(name, len(source.splitlines()), MAX_FILE_LINES, has_reason)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield Size(f"{name}:{node.lineno} {node.name}", lines, MAX_FUNCTION_LINES, has_reason)


def main() -> int:
    """Print the report; return 1 when something is too long."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="folder of the checkout")
    parser.add_argument("--all", action="store_true", help="print the 15 longest files and functions")
    options = parser.parse_args()
    sizes = [size for path in python_files(options.root) for size in measure(path, options.root)]
    files = [size for size in sizes if size.limit == MAX_FILE_LINES]
    functions = [size for size in sizes if size.limit == MAX_FUNCTION_LINES]
    if options.all:
        for kind in (files, functions):
            for size in sorted(kind, key=lambda size: -size.lines)[:15]:
                print(f"{size.lines:5d}  {size.place}")
    refused = [size for size in sizes if size.is_refused]
    for size in refused:
        print(f"{size.place}: {size.lines} lines, more than {size.limit}, and no `Size:` line gives a reason")
    print(f"{len(files)} files, {len(functions)} functions; too long: {len(refused)}")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
