"""The unit of work: one bag to one report. A pure function of its job, for this process or another."""

from __future__ import annotations

import platform
import resource
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oxygen_ros.clock import SteadyClock
from oxygen_ros.config import load_config
from oxygen_ros.errors import ContractError, OxygenError
from oxygen_ros.replay.bag.bag import Bag
from oxygen_ros.replay.job import Job
from oxygen_ros.replay.pace import FILES, settings_of
from oxygen_ros.replay.parity import compare_runs, is_equal
from oxygen_ros.replay.recording import Recording, read_recording
from oxygen_ros.replay.report.document import SCHEMA, bag_part, report_of, write_json
from oxygen_ros.replay.report.markdown import markdown
from oxygen_ros.replay.report.pictures import draw
from oxygen_ros.replay.session import Session
from oxygen_ros.replay.verdict.baseline import changes, read_baseline
from oxygen_ros.replay.verdict.rules import broken_rules, parse_rule

PASSED, BROKEN, UNUSABLE, WARNED = 0, 1, 2, 3
RUN = "run.mcap"


@dataclass
class Progress:
    """Who is told how far a replay is, and who may end it early.

    Attributes:
        begin: told first and last bag time in nanoseconds.
        reach: told the bag time that is reached.
        is_interrupted: asked before each cycle.
    """

    begin: Callable[[int, int], None] = field(default=lambda first, last: None)
    reach: Callable[[int], None] = field(default=lambda now: None)
    is_interrupted: Callable[[], bool] = field(default=lambda: False)


def replay_bag(job: Job, progress: Progress | None = None) -> dict[str, Any]:
    """Replay one bag and write its report. Gives the report; whatever is wrong is in it.

    Raises:
        ContractError: ``out``, if the report would take the place of the bag or of the baseline.
        OSError: if the report cannot be written.
    """
    folder = Path(job.out)
    _spare(folder, job)
    folder.mkdir(parents=True, exist_ok=True)
    clear(folder)
    report: dict[str, Any] = {"schema": SCHEMA, "complete": False, "bag": {"name": Path(job.bag).name}}
    try:
        rules = [parse_rule(text) for text in job.fail_on]
        baseline = read_baseline(Path(job.baseline)) if job.baseline else None
        if not rules and baseline is not None:
            rules = [parse_rule(word) for word in ("regressed", "text_changed")]
        with Bag(Path(job.bag)) as bag:
            report["bag"] = bag_part(bag, None)
            report, pictures = _replay(job, bag, folder, progress or Progress())
        _judge(report, job, baseline, rules)
    except OxygenError as error:
        report["error"] = {"code": error.code, "message": error.message, "suggestion": error.suggestion}
        report["verdict"] = {"exit_code": UNUSABLE, "broken": [], "warnings": [str(error)]}
        pictures = []
    write_json(folder / "report.json", report)
    (folder / "report.md").write_text(markdown(report, pictures), encoding="utf-8")
    return report


def _spare(folder: Path, job: Job) -> None:
    """Refuse a folder whose files are needed."""
    bag, written = Path(job.bag).resolve(), folder.resolve()
    if bag in (written, written / RUN):
        raise ContractError("out", f"{job.bag} is the bag itself: no report is written into it", "--out")
    if job.baseline and Path(job.baseline).resolve() in (written, written / "report.json"):
        raise ContractError("out", f"{folder} is the baseline, the report would replace it", "--out")


def clear(folder: Path) -> None:
    """Remove what an earlier replay wrote, so that nothing of two runs is mixed."""
    for name in (RUN, "cycles.csv", "report.json", "report.md", "machine.json", "costs.json"):
        (folder / name).unlink(missing_ok=True)
    for path in (*folder.glob("picture_*.png"), *folder.glob("run.partial/*")):
        path.unlink()
    if (folder / "run.partial").is_dir():
        (folder / "run.partial").rmdir()


def _replay(
    job: Job, bag: Bag, folder: Path, progress: Progress
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    steady = SteadyClock()
    begin_ns = steady.now_ns()
    recording: Recording = read_recording(bag, job.namespace)
    settings = dict(settings_of(job, recording))
    files = {name: settings.pop(name, None) for name in FILES}
    loaded = load_config(**files, overrides=settings)
    session = Session(job, bag, loaded.config, recording, folder)
    session.notes += loaded.warnings
    if fault := session.brain.warm_up.fault:
        session.notes.append(f"the model runs {fault}")
    progress.begin(*session.span_ns)
    loaded_ns = steady.now_ns()
    try:
        is_whole = session.run(progress.reach, progress.is_interrupted)
    finally:
        session.close()
    done_ns = steady.now_ns()
    parity = None
    if session.pace.is_reproduction:
        parity = compare_runs(bag, recording, folder, job.namespace)
    report = report_of(session, is_whole, parity)
    pictures, missing = draw(session, report, folder) if job.pictures else ([], "not asked for")
    _write_machine(session, folder, loaded_ns - begin_ns, done_ns - loaded_ns, missing)
    return report, pictures


def _judge(report: dict[str, Any], job: Job, baseline: Any, rules: Any) -> None:
    """Put the verdict into the report.

    Raises:
        ConfigError: if a rule names what does not exist.
    """
    warnings = list(report["bag"]["faults"])
    if report["measures"]["unreadable"]["all"]:
        warnings.append(f"{report['measures']['unreadable']['all']} messages could not be read")
    if not report["complete"]:
        warnings.append("interrupted: the report covers the part up to then")
    if not report["measures"]["cycles"].get("acted"):
        reasons = "; ".join(report["reasons"]) or "no cycle ran"
        warnings.append(f"no cycle acted: {reasons}")
    changed = changes(report, baseline, dict(job.tolerances)) if baseline is not None else {}
    if warnings:
        changed["warnings"] = "; ".join(warnings)
    parity = report["reproduction"]
    if parity is not None and not is_equal(parity):
        changed["not_reproduced"] = (
            f"{parity['cycles_with_other_inputs']} cycles had other inputs, "
            f"{parity['texts_that_differ']} texts differ"
        )
        warnings.append(f"the recorded run was not reproduced: {changed['not_reproduced']}")
    needy = [rule.text for rule in rules if not rule.compare and rule.text.endswith(("changed", "regressed"))]
    if needy and baseline is None:
        raise ContractError("rule", f"{', '.join(needy)} compares with a baseline", "--baseline DIR")
    broken = broken_rules(rules, report["measures"], report["setup"]["experts"], changed)
    code = BROKEN if broken else WARNED if warnings else PASSED
    report["verdict"] = {
        "exit_code": code,
        "rules": [rule.text for rule in rules],
        "broken": broken,
        "warnings": warnings,
        "changes": dict(sorted(changed.items())),
    }


def _write_machine(session: Session, folder: Path, load_ns: int, run_ns: int, missing: str) -> None:
    """Times and memory of this machine, which are never the same twice."""
    is_simulated = session.pace.costs is not None
    write_json(
        folder / "machine.json",
        {
            "machine": platform.machine(),
            "python": platform.python_version(),
            "load_s": round(load_ns / 1e9, 3),
            "run_s": round(run_ns / 1e9, 3),
            "times_real_time": round(session.covered_ns / max(1, run_ns), 2),
            "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
            "warm_up": "costs are set" if is_simulated else session.brain.warm_up.in_words(),
            "pictures": missing or "drawn",
        },
    )
    if session.job.clock == "realtime":
        write_json(folder / "costs.json", measured_costs(session))


def measured_costs(session: Session) -> dict[str, float]:
    """Median costs of this machine, for ``--costs`` of a deterministic run."""
    warm_up = session.brain.warm_up
    rows = session.figures.cycles.timeline.rows()
    acted = rows[rows[:, 2] > 0] if rows.size else rows
    num_experts = len(session.config.model.experts)
    steps = {n: statistics.median(costs) / 1e6 for n, costs in warm_up.decode_step_ns.items() if costs}
    smallest, largest = min(steps, default=1), max(steps, default=1)
    token_ms = (steps[largest] - steps[smallest]) / (largest - smallest) if largest > smallest else 0.0
    return {
        "prefill_ms": float(statistics.median(acted[:, 2])) if len(acted) else 0.0,
        "act_ms": float(statistics.median(acted[:, 3])) / num_experts if len(acted) else 0.0,
        "decode_step_ms": steps.get(smallest, 0.0),
        "decode_row_ms": max(0.0, token_ms),
    }
