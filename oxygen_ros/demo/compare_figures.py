"""What the comparison counts, its table, and what the table says in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oxygen_ros.demo.compare_robot import Episode
from oxygen_ros.demo.figures import percentiles

OXYGEN = "oxygen"
WAYS = ("isolated", "shared", OXYGEN)
NOISE = 0.03
"""Relative differences up to this are not called a gain."""
MISS_NOISE = 0.02
"""Shares of missed deadlines that differ by no more than this count as equal."""


@dataclass
class Figures:
    """Counts of one way over all its episodes.

    Attributes:
        windows: action-execution windows that went by.
        on_time: of these, windows whose cycle ran and ended before the next one was due.
        action_latencies_ms: from when a cycle was due to when its chunk was out.
        text_latencies_ms: from when a text was asked for to its last word.
        asked, not_asked: texts asked for; those that were not, since the stream's last was still unfinished.
    """

    episodes: list[Episode] = field(default_factory=list)
    windows: int = 0
    on_time: int = 0
    chunks: int = 0
    action_latencies_ms: list[float] = field(default_factory=list)
    text_latencies_ms: list[float] = field(default_factory=list)
    asked: int = 0
    not_asked: int = 0

    def summary(self) -> dict[str, Any]:
        """Rates for people and files."""
        seconds = sum(episode.seconds for episode in self.episodes)
        successes = [episode for episode in self.episodes if episode.is_success]
        missed = self.windows - self.on_time
        return {
            "control_rate_hz": _rate(sum(episode.played for episode in self.episodes), seconds),
            "chunks_per_s": _rate(self.chunks, seconds),
            "windows": self.windows,
            "missed_deadlines": missed,
            "missed_share": round(missed / self.windows, 4) if self.windows else None,
            "action_latency_ms": percentiles(self.action_latencies_ms, 1),
            "text_latency_ms": percentiles(self.text_latencies_ms, 1),
            "texts_per_s": _rate(len(self.text_latencies_ms), seconds),
            "texts_asked": self.asked,
            "texts_not_asked": self.not_asked,
            "episodes": len(self.episodes),
            "successes": len(successes),
            "episode_s": round(seconds / len(self.episodes), 2) if self.episodes else None,
            "late_world_ticks": sum(episode.late_ticks for episode in self.episodes),
            "each": [
                {"seed": e.seed, "success": e.is_success, "seconds": round(e.seconds, 2), "ticks": e.ticks}
                for e in self.episodes
            ],
        }


def _rate(count: int, seconds: float) -> float | None:
    return round(count / seconds, 2) if seconds else None


def table(ways: Mapping[str, Mapping[str, Any]]) -> str:
    """The figures side by side."""
    rows = [("", *ways)]
    for label, cell in (
        ("control rate, actions played per second", lambda w: w["control_rate_hz"]),
        ("fresh action chunks per second", lambda w: w["chunks_per_s"]),
        ("missed deadlines", lambda w: f"{w['missed_deadlines']} of {w['windows']}"),
        ("action latency p50 / p95, ms", lambda w: _pair(w["action_latency_ms"])),
        ("text latency p50 / p95, ms", lambda w: _pair(w["text_latency_ms"])),
        ("texts finished per second", lambda w: w["texts_per_s"]),
        ("episode time (not done: all of it), s", lambda w: w["episode_s"]),
        ("success", lambda w: f"{w['successes']} of {w['episodes']}"),
    ):
        rows.append((label, *(_shown(cell(figures)) for figures in ways.values())))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(cells))
        for row in rows
        if (cells := list(zip(row, widths, strict=True)))
    ]
    return "\n".join(lines)


def gains(ways: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """For each other way what oxygen gains over it and what it pays, or that it gains nothing."""
    ours = ways[OXYGEN]
    return [_sentence(name, theirs, ours) for name, theirs in ways.items() if name != OXYGEN]


def _sentence(name: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    better: list[str] = []
    worse: list[str] = []
    for label, key, quantile, wants_more in (
        ("control rate", "control_rate_hz", None, True),
        ("action latency p95", "action_latency_ms", "p95", False),
        ("episode time", "episode_s", None, False),
        ("texts per second", "texts_per_s", None, True),
        ("text latency p50", "text_latency_ms", "p50", False),
    ):
        a, b = (w[key] if quantile is None else w[key][quantile] for w in (theirs, ours))
        if a and not b and wants_more:
            worse.append(f"{label} 0 instead of {_shown(a)}")
        if not a or not b:
            continue
        ratio = b / a if wants_more else a / b
        if abs(ratio - 1) > NOISE:
            words = f"{label} {_shown(b)} instead of {_shown(a)} ({b / a:.2f}x)"
            (better if ratio > 1 else worse).append(words)
    a, b = theirs["missed_share"], ours["missed_share"]
    if a is not None and b is not None and abs(a - b) > MISS_NOISE:
        words = f"{100 * b:.0f} % of the deadlines missed instead of {100 * a:.0f} %"
        (better if b < a else worse).append(words)
    a, b = theirs["successes"], ours["successes"]
    if a != b:
        words = f"{b} of {ours['episodes']} episodes done instead of {a} of {theirs['episodes']}"
        (better if b > a else worse).append(words)
    head = f"oxygen against {name}: "
    if not better:
        head += "on this machine, in this run, there is no gain"
    else:
        head += "; ".join(better)
    return head + (f". It pays with {'; '.join(worse)}." if worse else ".")


def _pair(quantiles: Mapping[str, float | None]) -> str:
    return f"{_shown(quantiles['p50'])} / {_shown(quantiles['p95'])}"


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return str(value)


def unequal_words(pairs: Sequence[tuple[str, str, str]]) -> list[str]:
    """Texts that differ, as (way, its text, oxygen's)."""
    return [f"{way} wrote {theirs!r}, oxygen {ours!r}" for way, theirs, ours in pairs]
