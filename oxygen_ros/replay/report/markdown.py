"""report.md: the report in words and tables, with the pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MAX_TEXTS = 40
PASSED = {0: "passed", 1: "FAILED", 2: "unusable", 3: "finished with warnings"}


def markdown(report: Mapping[str, Any], pictures: Sequence[tuple[str, str]]) -> str:
    """The report as Markdown; ``pictures`` are (file, caption)."""
    verdict = report["verdict"]
    lines = [f"# Replay of {report['bag'].get('name', '')}", ""]
    lines += [f"**{PASSED[verdict['exit_code']]}** (exit code {verdict['exit_code']})", ""]
    lines += [f"- broken rule: {text}" for text in verdict["broken"]]
    lines += [f"- warning: {text}" for text in verdict["warnings"]]
    if "measures" not in report:
        return "\n".join([*lines, f"- {report['error']}", "", *_bag(report)]) + "\n"
    parts = [_setup(report), _measures(report), _joints(report)]
    parts += [[f"## {caption}", "", f"![{caption}]({file})", ""] for file, caption in pictures]
    parts += [_texts(report), _reasons(report), _bag(report), _log(report)]
    for part in parts:
        lines += ["", *part]
    return "\n".join(lines).rstrip() + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value).replace("|", "\\|").replace("\n", " ")


def _setup(report: Mapping[str, Any]) -> list[str]:
    setup = report["setup"]
    model = "a stand-in: no model is behind its actions and texts" if setup["stand_in"] else setup["family"]
    rows = [
        ("robot", setup["preset"] or "by parameters"),
        ("model", model),
        ("checkpoint", setup["checkpoint"] or "-"),
        ("seed", setup["seed"]),
        ("clock", f"{setup['clock']}, costs {setup['costs']}"),
        ("messages ordered by", f"{setup['time']} time"),
        ("part of the bag", f"{setup['duration_s']:.2f} s" + ("" if report["complete"] else ", interrupted")),
        ("compared with", setup["compared_with"]),
    ]
    if report["reproduction"] is not None:
        parity = report["reproduction"]
        same = f"{parity['cycles'] - parity['cycles_with_other_inputs']} of {parity['cycles']} cycles"
        rows.append(("recorded run", f"{same} with equal inputs, {parity['texts_that_differ']} texts differ"))
    return ["## Run", "", *_table(("", ""), rows)]


def _measures(report: Mapping[str, Any]) -> list[str]:
    m = report["measures"]
    cycles, decode, texts = m["cycles"], m["decode"], m["texts"]
    ways = ", ".join(f"{n} {key}" for key, n in cycles.items() if key != "all")
    latency = "/".join(_cell(m["latency_ms"][key]) for key in ("p50", "p95", "p99", "max"))
    endings = ", ".join(
        f"{n} {key}" for key, n in texts.items() if key not in ("all", "completed", "completion")
    )
    refused = ", ".join(f"{n} {key}" for key, n in m["refusals"].items() if key != "all")
    rows = [
        ("control cycles", f"{cycles['all']}: {ways}"),
        ("deadline misses", m["misses"]),
        ("action latency p50/p95/p99/max, ms", latency),
        ("mean absolute error", m["mae"]["all"]),
        ("largest error", m["max_error"]["all"]),
        ("rows compared", m["rows_compared"]),
        ("jump at a seam, mean and max", f"{_cell(m['seam_jump']['all'])}, {_cell(m['seam_jump']['max'])}"),
        ("ordinary step, mean", m["seam_jump"]["step"]),
        ("decode steps used of those possible", f"{decode['steps']} of {decode['steps_possible']}"),
        ("tokens, tokens per second", f"{decode['tokens']}, {_cell(decode['tokens_per_s'])}"),
        ("texts", f"{texts['all']}: {endings}"),
        ("refusals", f"{m['refusals']['all']}" + (f": {refused}" if refused else "")),
        ("unreadable messages", m["unreadable"]["all"]),
        ("player: ticks missed, steps cut", f"{m['player']['ticks_missed']}, {m['player']['steps_clamped']}"),
    ]
    return ["## Measures", "", *_table(("measure", "value"), rows)]


def _joints(report: Mapping[str, Any]) -> list[str]:
    m = report["measures"]
    rows = [
        (name, m["mae"]["joints"][name], m["max_error"]["joints"][name], m["seam_jump"]["joints"][name])
        for name in m["mae"]["joints"]
    ]
    return ["## By joint", "", *_table(("joint", "MAE", "max", "jump at a seam"), rows)]


def _texts(report: Mapping[str, Any]) -> list[str]:
    start_ns = report["setup"]["start_ns"]
    rows = []
    for text in report["texts"][:MAX_TEXTS]:
        born = (text["stamp_ns"] - start_ns) / 1e9 if text["stamp_ns"] else None
        end = (text["end_ns"] - start_ns) / 1e9
        rows.append((text["request_id"], born, end, text["reason"], text["text"]))
    more = len(report["texts"]) - len(rows)
    lines = ["## Texts", "", *_table(("request", "born, s", "ended, s", "reason", "text"), rows)]
    return [*lines, "", f"and {more} more in report.json"] if more else lines


def _reasons(report: Mapping[str, Any]) -> list[str]:
    if not report["reasons"]:
        return []
    rows = list(report["reasons"].items())
    return ["## Why cycles did not act", "", *_table(("reason", "cycles"), rows)]


def _bag(report: Mapping[str, Any]) -> list[str]:
    bag = report["bag"]
    if "topics" not in bag:
        return []
    rows = [(n, t["type"], t["messages"], ", ".join(t["feeds"])) for n, t in bag["topics"].items()]
    lines = ["## Bag", "", *_table(("topic", "type", "messages", "used as"), rows), ""]
    lines += [f"- damage: {text}" for text in bag["faults"]]
    lines += [f"- {text}" for text in bag["notes"]]
    for name, unknown in bag["unknown_types"].items():
        lines.append(f"- {name}: {unknown['messages']} messages of unknown type {unknown['type']} skipped")
    return lines


def _log(report: Mapping[str, Any]) -> list[str]:
    if not report["log"]:
        return []
    lines = [f"- {line['time_s']:.2f} s: {line['text']}" for line in report["log"]]
    return ["## Log", "", *lines]
