"""The summary of a run: one value for programs (summary.json), one page for people (summary.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oxygen_ros.demo.figures import control_figures, text_figures
from oxygen_ros.demo.recording import RunRecording
from oxygen_ros.demo.verdict import Verdict
from oxygen_ros.sim.scene import CONTROL_HZ

SCHEMA = 1
MAX_EXAMPLES = 20


@dataclass(frozen=True)
class RunSummary:
    """What ``finish_run`` found and wrote.

    Attributes:
        files: written beside the bag, by name.
        missing: what the run does not hold, one sentence each; empty for a whole run.
        content: of summary.json.
    """

    folder: Path
    files: tuple[Path, ...]
    missing: tuple[str, ...]
    content: Mapping[str, Any]

    @property
    def num_episodes(self) -> int:
        """Episodes that came to an end."""
        return int(self.content["episodes"]["whole"])

    @property
    def num_successes(self) -> int:
        """Episodes that ended with the task done."""
        return int(self.content["episodes"]["successes"])

    @property
    def num_false_claims(self) -> int:
        """Texts that say that something is held or placed that was not."""
        return int(self.content["truth_of_texts"]["all"]["false_claims"])


def content_of(
    run: RunRecording, verdict: Verdict, missing: Sequence[str], about: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of summary.json; ``about`` is machine, checkpoint and what the caller knows."""
    tick_s = 1.0 / CONTROL_HZ
    whole = [episode for episode in verdict.episodes if episode.is_whole]
    seconds = [episode.seconds for episode in whole if episode.is_success]
    judged = {kind: tally.summary(tick_s) for kind, tally in sorted(verdict.tallies.items())}
    texts = {text.request_id: text for text in run.texts}
    return {
        "schema": SCHEMA,
        "duration_s": round(run.duration_s, 2),
        "missing": list(missing),
        "faults": run.faults,
        "episodes": {
            "whole": len(whole),
            "successes": sum(episode.is_success for episode in whole),
            "mean_seconds_of_successes": round(sum(seconds) / len(seconds), 2) if seconds else None,
            "each": [
                {
                    "episode": episode.number,
                    "seed": episode.seed,
                    "task": episode.task,
                    "success": episode.is_success,
                    "whole": episode.is_whole,
                    "seconds": round(episode.seconds, 2),
                }
                for episode in verdict.episodes
            ],
        },
        "truth_of_texts": {"all": verdict.whole.summary(tick_s), **judged, "unjudged": verdict.num_unjudged},
        "control": control_figures(run),
        "texts": text_figures(run),
        "not_right": [
            {
                "text": texts[name].name,
                "mark": mark.value,
                "wrote": texts[name].text,
                "right": verdict.right[name],
            }
            for name, mark in verdict.marks.items()
            if texts[name].text.strip() != verdict.right[name]
        ][:MAX_EXAMPLES],
        **about,
    }


def page_of(content: Mapping[str, Any], pictures: Sequence[tuple[str, str]]) -> str:
    """summary.md; ``pictures`` are (file, caption)."""
    lines = ["# Run", "", *_head(content), ""]
    lines += [f"- missing: {text}" for text in content["missing"]]
    lines += [f"- damage: {text}" for text in content["faults"]]
    for file, caption in pictures:
        lines += ["", f"![{file}]({file})", "", f"{caption}."]
    for title, table in (
        ("Episodes", _episodes(content)),
        ("What it said, against what was so", _truth(content)),
        ("Control", _control(content)),
        ("Text", _texts(content)),
        ("Not the right sentence", _wrong(content)),
        ("Machine", _machine(content)),
    ):
        if table:
            lines += ["", f"## {title}", "", *table]
    return "\n".join(lines) + "\n"


def _head(content: Mapping[str, Any]) -> list[str]:
    episodes, truth = content["episodes"], content["truth_of_texts"]["all"]
    words = [f"{content['duration_s']} s"]
    if episodes["whole"]:
        words.append(f"{episodes['successes']} of {episodes['whole']} episodes ended with the task done")
    if truth["texts"]:
        words.append(f"{truth['texts']} texts judged, {truth['false_claims']} with a false claim")
    words.append(f"{content['control']['deadline_misses']} of {content['control']['cycles']} cycles late")
    driver = content.get("driver")
    return [f"{'; '.join(words)}.", *(["", f"Driven by {driver}."] if driver else [])]


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    if not rows:
        return []
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return lines + [f"| {' | '.join(_cell(value) for value in row)} |" for row in rows]


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value).replace("|", "\\|").replace("\n", " ")


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{100 * share:.1f} %"


def _episodes(content: Mapping[str, Any]) -> list[str]:
    rows = [
        (e["episode"], e["seed"], e["task"], e["success"] if e["whole"] else "cut off", e["seconds"])
        for e in content["episodes"]["each"]
    ]
    return _table(("episode", "seed", "task", "done", "s"), rows)


def _truth(content: Mapping[str, Any]) -> list[str]:
    truth = content["truth_of_texts"]
    rows = [
        (
            kind,
            row["texts"],
            _percent(row["exact_match"]),
            _percent(row["slot_accuracy"]),
            f"{row['false_claims']} of {row['claims']}",
            _percent(row["false_claim_rate"]),
            _percent(row["stale_share"]),
            row["mean_age_s"],
        )
        for kind, row in truth.items()
        if kind != "unjudged" and row["texts"]
    ]
    head = ("texts", "judged", "exact", "facts right", "false claims", "rate", "stale when out", "age, s")
    table = _table(head, rows)
    if truth["unjudged"]:
        table += [
            "",
            f"{truth['unjudged']} complete texts could not be judged: no truth or no known question.",
        ]
    return table


def _control(content: Mapping[str, Any]) -> list[str]:
    control = content["control"]

    def quantiles(name: str) -> str:
        return " / ".join(_cell(control[name][key]) for key in ("p50", "p95", "p99", "max"))

    rows = [
        ("control rate, commands per second", control["control_rate_hz"]),
        ("time between commands p50/p95/p99/max, ms", quantiles("command_gap_ms")),
        (
            "ticks without an action, steps cut to a limit",
            f"{control['ticks_missed']}, {control['steps_clamped']}",
        ),
        ("control cycles, of them late", f"{control['cycles']}, {control['deadline_misses']}"),
        ("period of a cycle, ms", control["period_ms"]),
        ("action latency p50/p95/p99/max, ms", quantiles("action_latency_ms")),
        ("prefill p50/p95/p99/max, ms", quantiles("prefill_ms")),
        ("actions p50/p95/p99/max, ms", quantiles("act_ms")),
    ]
    return _table(("measure", "value"), rows)


def _texts(content: Mapping[str, Any]) -> list[str]:
    texts = content["texts"]
    if not texts["texts"]:
        return []
    latency = " / ".join(_cell(texts["latency_s"][key]) for key in ("p50", "p95", "p99", "max"))
    rows = [
        ("texts", ", ".join(f"{num} {end}" for end, num in texts["by_end"].items())),
        ("from observation to last word p50/p95/p99/max, s", latency),
        ("tokens, tokens per second", f"{texts['tokens']}, {_cell(texts['tokens_per_s'])}"),
        ("decode steps, tokens per step", f"{texts['decode_steps']}, {_cell(texts['tokens_per_step'])}"),
    ]
    return _table(("measure", "value"), rows)


def _wrong(content: Mapping[str, Any]) -> list[str]:
    rows = [(row["text"], row["mark"], row["wrote"], row["right"]) for row in content["not_right"]]
    return _table(("text", "mark", "wrote", "right at its birth"), rows)


def _machine(content: Mapping[str, Any]) -> list[str]:
    machine = content["machine"]
    rows = [(name.replace("_", " "), value) for name, value in machine.items() if name != "versions"]
    rows.append(
        ("versions", ", ".join(f"{name} {number}" for name, number in machine["versions"].items() if number))
    )
    if checkpoint := content.get("checkpoint"):
        rows.append(("checkpoint", f"{checkpoint['folder']}, sha256 {checkpoint['sha256']}"))
    return _table(("", ""), rows)
