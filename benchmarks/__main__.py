"""The command ``scripts/bench``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.comparison import moved
from benchmarks.gates import Verdict, judge
from benchmarks.plots import draw_all
from benchmarks.results import read_results, to_plain, write_results
from benchmarks.sizes import MODEL_SIZES
from benchmarks.suite import GATE_PARTS, PARTS, Suite, SuiteSettings, UnequalError
from benchmarks.table import gate_table, report
from benchmarks.workloads import WORKLOADS
from oxygen_ros.errors import ConfigError
from oxygen_ros.runners.device import pick_device

ROOT = Path(__file__).resolve().parents[1]
GATE_WORKLOADS = ("W1", "W4", "W5")
GATE_RUNS = 2
QUICK_PARTS = PARTS


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__, allow_abbrev=False)
    parser.add_argument("--model", choices=sorted(MODEL_SIZES), help="size; tiny with --quick, else cpu")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument(
        "--dtype",
        choices=("float32", "bfloat16"),
        default="bfloat16",
        help="of our weights and KV (bfloat16, as robots run it); outputs are compared in float32 always",
    )
    parser.add_argument("--workloads", help=f"comma-separated, of {', '.join(WORKLOADS)}")
    parser.add_argument("--parts", help=f"comma-separated, of {', '.join(PARTS)}")
    parser.add_argument("--cycles", type=int, help="measured cycles of each workload (30)")
    parser.add_argument("--every", type=int, help="slow executors take part in every so many-th cycle (3)")
    parser.add_argument("--paced-cycles", type=int, help="cycles of each run on the wall clock (100)")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (1)")
    parser.add_argument("--output", type=Path, help="folder of results (benchmarks/results/<device>)")
    parser.add_argument("--compare", type=Path, metavar="OLD.json", help="print what moved since OLD.json")
    parser.add_argument(
        "--gate", action="store_true", help="two runs; exit code 1 if a gate is missed in both"
    )
    parser.add_argument("--quick", action="store_true", help="everything once with a tiny model, in seconds")
    parser.add_argument("--runs", type=int, help="runs (2 with --gate, else 1)")
    parser.add_argument(
        "--also", type=Path, action="append", metavar="RUN.json", help="judge gates on this run too"
    )
    parser.add_argument("--suffix", default="", help="added to the names of result files")
    parser.add_argument("--no-plots", action="store_true", help="no pictures")
    return parser.parse_args(arguments)


def settings_of(options: argparse.Namespace) -> SuiteSettings:
    """Settings that the command line asks for."""
    parts = QUICK_PARTS if options.quick else GATE_PARTS if options.gate else PARTS
    workloads = GATE_WORKLOADS if options.gate else ("W1",) if options.quick else tuple(WORKLOADS)
    chosen = SuiteSettings(
        size=options.model or ("tiny" if options.quick else "cpu"),
        dtype=options.dtype,
        device=options.device,
        workloads=tuple(options.workloads.split(",")) if options.workloads else workloads,
        parts=tuple(options.parts.split(",")) if options.parts else parts,
        cycles=options.cycles or (2 if options.quick else 30),
        stateless_every=options.every or (1 if options.quick else 3),
        paced_cycles=options.paced_cycles or (4 if options.quick else 100),
        soak_cycles=20 if options.quick else 2000,
        decode_rounds=1 if options.quick else 5,
        sweep_steps=(10,) if options.quick else (2, 10),
        max_tokens=10 if options.quick else None,
    )
    unknown = [name for name in chosen.workloads if name not in WORKLOADS]
    unknown += [part for part in chosen.parts if part not in PARTS]
    if unknown:
        raise SystemExit(f"unknown workloads or parts: {', '.join(unknown)}")
    return chosen


def progress(text: str) -> None:
    """Say on the terminal what is going on."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run; 0 if all is well, 1 if a gate is missed, 2 if nothing could be compared."""
    options = parse(arguments)
    try:
        pick_device(options.device)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    torch.set_num_threads(options.threads)
    runs = [read_results(path) for path in options.also or ()]
    num_runs = options.runs or (GATE_RUNS if options.gate else 1)
    with torch.inference_mode():
        try:
            for _ in range(num_runs):
                runs.append(Suite(settings_of(options), progress, lambda r: _keep(options, r)).run())
                progress("")
                print(report(runs[-1]), flush=True)
        except UnequalError as difference:
            print(difference, file=sys.stderr)
            return 2
    verdicts = judge(runs) if options.gate else []
    results = {**runs[-1], "gates": to_plain(verdicts)}
    if options.gate:
        results["earlier_runs"] = runs[:-1]
        print(f"\ngates, the better of {len(runs)} runs\n" + gate_table(verdicts))
    _write(options, results, runs, verdicts)
    if options.compare:
        print(f"\nmoved since {options.compare}:")
        print("\n".join(moved(read_results(options.compare), results)) or "nothing by more than 5 %")
    return 0 if all(verdict.holds for verdict in verdicts) else 1


def _place(options: argparse.Namespace, results: dict[str, Any]) -> Path:
    """Results go to this path plus an ending. Quick runs are no results and go to a temporary folder."""
    folder = Path(tempfile.gettempdir()) / "bench-quick" if options.quick else None
    folder = options.output or folder or ROOT / "benchmarks" / "results" / results["machine"]["folder"]
    kind = "gate-" if options.gate else ""
    return Path(folder) / f"{kind}{results['settings']['size']}-{options.dtype}{options.suffix}"


def _keep(options: argparse.Namespace, results: dict[str, Any]) -> None:
    """Results so far: a run that is broken off has measured something."""
    place = _place(options, results)
    write_results(place.with_name(f"{place.name}.partial.json"), results)


def _write(
    options: argparse.Namespace,
    results: dict[str, Any],
    runs: list[dict[str, Any]],
    verdicts: list[Verdict],
) -> None:
    place = _place(options, results)
    write_results(place.with_name(f"{place.name}.json"), results)
    place.with_name(f"{place.name}.partial.json").unlink(missing_ok=True)
    text = "\n\n".join(report(run) for run in runs)
    if options.gate:
        text += f"\n\ngates, the better of {len(runs)} runs\n" + gate_table(verdicts)
    place.with_name(f"{place.name}.txt").write_text(text + "\n", encoding="utf-8")
    print(f"\nresults: {os.path.relpath(place)}.json and .txt")
    if options.no_plots:
        return
    try:
        drawn = draw_all(results, place)
    except ImportError as missing:
        print(f"no pictures: {missing}; pip install matplotlib")
        return
    print("pictures: " + ", ".join(os.path.relpath(path) for path in drawn))


if __name__ == "__main__":
    sys.exit(main())
