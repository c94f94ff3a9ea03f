"""Many bags: one replay each, in this process or in several, and one table of all. Order as given."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

from oxygen_ros.clock import SteadyClock
from oxygen_ros.errors import ContractError
from oxygen_ros.replay.bag.files import is_bag, storage_files
from oxygen_ros.replay.job import Job
from oxygen_ros.replay.progress_bar import ProgressBar
from oxygen_ros.replay.unit import UNUSABLE, Progress, replay_bag

SEVERITY = (2, 1, 3, 0)
"""Exit codes, worst first."""
ASKED_EVERY_S = 0.1
"""So often workers are told of an interruption while their reports are waited for."""
HEAD = (
    "bag",
    "exit",
    "cycles",
    "acted",
    "misses",
    "MAE",
    "max",
    "latency p95",
    "texts",
    "tokens/s",
    "refusals",
)


def find_bags(paths: Sequence[str]) -> list[Path]:
    """Bags among the paths: a bag's folder or file, or a folder with bags in it, at any depth.

    Raises:
        ContractError: ``bag.missing``, if a path holds none.
    """
    found: list[Path] = []
    for text in paths:
        path = Path(text)
        if not path.exists():
            raise ContractError("bag.missing", f"there is no {path}")
        if path.is_dir() and not storage_files(path):
            inside = sorted(folder for folder in path.rglob("*") if folder.is_dir() and is_bag(folder))
            if not inside:
                raise ContractError(
                    "bag.missing", f"{path} holds no bag", "a folder with .mcap or .db3 files"
                )
            found += inside
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def folders_of(bags: Sequence[Path], out: Path) -> list[Path]:
    """A folder below ``out`` for each bag's report: by its name, with a number where names are equal."""
    if len(bags) == 1:
        return [out]
    names = [bag.name.removesuffix(".zstd").removesuffix(".mcap").removesuffix(".db3") for bag in bags]
    chosen = [name for name in names if names.count(name) == 1]
    folders = []
    for name in names:
        if names.count(name) > 1:
            name = next(free for n in count(1) if (free := f"{name}_{n}") not in chosen)
            chosen.append(name)
        folders.append(out / name)
    return folders


def run_jobs(
    jobs: Sequence[Job], workers: int, is_interrupted: Callable[[], bool]
) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Reports in the order of the jobs, each as soon as it and those before it are done.

    Once interrupted, replays that run end after their cycle and report what they have; no more are begun.
    Main thread.
    """
    if workers <= 1 or len(jobs) == 1:
        for job in jobs:
            if is_interrupted():
                return
            yield job, _replay_here(job, is_interrupted)
        return
    context = multiprocessing.get_context("spawn")
    with contextlib.ExitStack() as stack:
        with _deaf_to_interrupts():
            interrupted = stack.enter_context(context.Manager()).Event()
            pool = stack.enter_context(ProcessPoolExecutor(min(workers, len(jobs)), mp_context=context))
            reports = [pool.submit(_replay_there, job, interrupted) for job in jobs]
        for job, waited_for in zip(jobs, reports, strict=True):
            while not wait([waited_for], ASKED_EVERY_S).done:
                if is_interrupted():
                    interrupted.set()
            report = waited_for.result()
            if report is not None:
                yield job, report


def worst_code(codes: Sequence[int]) -> int:
    """The exit code that speaks for all."""
    return next((code for code in SEVERITY if code in codes), UNUSABLE)


def row_of(job: Job, report: dict[str, Any]) -> list[str]:
    """One line of the table."""
    name, code = Path(job.bag).name, str(report["verdict"]["exit_code"])
    if "measures" not in report:
        return [name, code, *["-"] * (len(HEAD) - 2)]
    m = report["measures"]
    values = [
        m["cycles"]["all"],
        m["cycles"].get("acted", 0),
        m["misses"],
        m["mae"]["all"],
        m["max_error"]["all"],
        m["latency_ms"]["p95"],
        m["texts"]["all"],
        m["decode"]["tokens_per_s"],
        m["refusals"]["all"],
    ]
    return [
        name,
        code,
        *("-" if v is None else f"{v:.4g}" if isinstance(v, float) else str(v) for v in values),
    ]


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows below ``HEAD``, in columns."""
    widths = [max(len(row[i]) for row in (HEAD, *rows)) for i in range(len(HEAD))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in (HEAD, *rows)]
    return "\n".join(line.rstrip() for line in lines)


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes that begin inside do not hear Ctrl-C, which a terminal sends to all: they are told of it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _replay_there(job: Job, interrupted: Event) -> dict[str, Any] | None:
    """In a worker. None if it is not begun any more."""
    return None if interrupted.is_set() else replay_bag(job, Progress(is_interrupted=interrupted.is_set))


def _replay_here(job: Job, is_interrupted: Callable[[], bool]) -> dict[str, Any]:
    bar = ProgressBar(sys.stderr, SteadyClock(), Path(job.bag).name)
    span = [0, 1]

    def begin(first_ns: int, last_ns: int) -> None:
        span[:] = first_ns, max(last_ns, first_ns + 1)

    def reach(now_ns: int) -> None:
        bar.show((now_ns - span[0]) / (span[1] - span[0]))

    report = replay_bag(job, Progress(begin, reach, is_interrupted))
    bar.end()
    return report
