"""Replays bags through the node's own code, without ROS, and says whether what came out passes."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from oxygen_ros.errors import ConfigError, OxygenError
from oxygen_ros.replay.batch import HEAD, find_bags, folders_of, row_of, run_jobs, table, worst_code
from oxygen_ros.replay.job import CLOCKS, TIMES, Job
from oxygen_ros.replay.report.document import write_json
from oxygen_ros.replay.unit import UNUSABLE, WARNED

EPILOG = """\
exit codes:
  0  passed
  1  a rule of --fail-on is broken, or it is worse than --baseline
  2  unusable: no bag, nothing readable in it, a topic or type missing, a configuration or checkpoint refused
  3  finished with warnings: damaged or truncated bag, unreadable messages, no action, interrupted by Ctrl-C

rules of --fail-on:
  MEASURE OP NUMBER   e.g. mae>0.02  mae.left>0.02  max_error.gripper>0.1  misses>0  latency_ms.p95>120
                      texts.completion<0.9  refusals.out_of_order>0  decode.tokens_per_s<20
  with --baseline     regressed  text_changed  actions_changed  inputs_changed
                      (without any rule: regressed and text_changed)
  others              warnings  not_reproduced

Bags that our node recorded (parameter record) bring their configuration with them: BAG and --out are enough.
Files in DIR: report.md, report.json, run.mcap, cycles.csv, pictures, machine.json. See docs/replay.md.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay; the exit code."""
    options = _parser().parse_args(arguments)
    interrupted: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: interrupted.append(number))
    try:
        return _run(options, interrupted)
    except OxygenError as error:
        print(f"oxygen-replay: {error}", file=sys.stderr)
        return UNUSABLE
    finally:
        signal.signal(signal.SIGINT, before)


def _run(options: argparse.Namespace, interrupted: list[int]) -> int:
    bags = find_bags(options.bags)
    out = Path(options.out)
    folders = folders_of(bags, out)
    jobs = [
        _job(options, bag, folder, has_many=len(bags) > 1) for bag, folder in zip(bags, folders, strict=True)
    ]
    codes, rows = [], []
    for job, report in run_jobs(jobs, options.workers, lambda: bool(interrupted)):
        verdict = report["verdict"]
        codes.append(verdict["exit_code"])
        rows.append(row_of(job, report))
        for kind in ("broken", "warnings"):
            for text in verdict[kind]:
                print(f"{Path(job.bag).name}: {kind.removesuffix('s')}: {text}", file=sys.stderr)
    print(table(rows))
    if len(jobs) > 1:
        (out / "summary.txt").write_text(table(rows) + "\n", encoding="utf-8")
        write_json(out / "summary.json", {"bags": [dict(zip(HEAD, row, strict=True)) for row in rows]})
    print(f"report: {out / 'report.md' if len(jobs) == 1 else out}")
    if len(codes) < len(jobs):
        codes.append(WARNED)
    return worst_code(codes)


def _job(options: argparse.Namespace, bag: Path, folder: Path, has_many: bool) -> Job:
    baseline = options.baseline
    if baseline and has_many:
        baseline = str(Path(baseline) / folder.name)
    settings = dict(_setting(text) for text in options.set)
    if options.instruction:
        settings["instruction"] = options.instruction
    if options.seed is not None:
        settings |= {"model.seed": options.seed, "text.seed": options.seed}
    return Job(
        bag=str(bag),
        out=str(folder),
        preset=options.preset,
        device=options.device,
        params_file=options.params_file,
        checkpoint=options.checkpoint,
        settings=tuple(settings.items()),
        clock=options.clock,
        costs=options.costs,
        time=options.time,
        start_s=options.start,
        duration_s=options.duration,
        namespace=options.namespace,
        commands=options.commands,
        cameras=options.cameras,
        pictures=not options.no_pictures,
        baseline=baseline,
        fail_on=tuple(rule.strip() for text in options.fail_on for rule in text.split(",") if rule.strip()),
        tolerances=tuple(_tolerance(text) for text in options.tolerance),
    )


def _setting(text: str) -> tuple[str, Any]:
    name, is_given, value = text.partition("=")
    if not is_given:
        raise ConfigError("set", f"--set {text} gives no value", "--set name=value")
    try:
        return name.strip(), yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ConfigError("set", f"--set {text}: {error}", "a value as in YAML") from error


def _tolerance(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError as error:
        raise ConfigError("tolerance", f"--tolerance {text} is no number", "--tolerance mae=0.01") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="oxygen-replay",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("bags", nargs="+", metavar="BAG", help="bag folders or files, or folders with bags in them")
    add(
        "--out",
        required=True,
        metavar="DIR",
        help="folder of the report; with many bags one folder each in it",
    )
    robot = parser.add_argument_group("robot and model")
    robot.add_argument("--preset", default="", help="robot preset, name or YAML file")
    robot.add_argument("--device", default="", help="device profile, name or YAML file")
    robot.add_argument("--checkpoint", default="", metavar="PATH", help="checkpoint folder")
    robot.add_argument("--params-file", default="", metavar="FILE", help="parameters as for the node")
    robot.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="one parameter; repeat"
    )
    robot.add_argument("--instruction", default="", help="what the robot is to do, until the bag says it")
    robot.add_argument("--seed", type=int, help="seed of action noise and texts")
    how = parser.add_argument_group("how")
    how.add_argument("--clock", choices=CLOCKS, default=CLOCKS[0], help="simulated or measured time")
    how.add_argument("--costs", default="auto", help="auto, config, recorded, or a costs.json (see docs)")
    how.add_argument("--time", choices=TIMES, default=TIMES[0], help="which time orders the messages")
    how.add_argument("--start", type=float, default=0.0, metavar="S", help="skip so many seconds")
    how.add_argument("--duration", type=float, default=0.0, metavar="S", help="replay only so many seconds")
    how.add_argument("--namespace", default="", help="namespace of the topics, if the bag has several")
    how.add_argument("--commands", default="", metavar="TOPIC", help="recorded commands to compare with")
    how.add_argument("--workers", type=int, default=1, metavar="N", help="processes for many bags")
    how.add_argument("--cameras", action="store_true", help="put the used pictures into run.mcap")
    how.add_argument("--no-pictures", action="store_true", help="draw none")
    verdict = parser.add_argument_group("verdict")
    verdict.add_argument("--baseline", default="", metavar="DIR", help="an earlier report to compare with")
    verdict.add_argument("--fail-on", action="append", default=[], metavar="RULE", help="a rule; repeat")
    verdict.add_argument(
        "--tolerance",
        action="append",
        default=[],
        metavar="MEASURE=X",
        help="how much worse it may be; repeat",
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
