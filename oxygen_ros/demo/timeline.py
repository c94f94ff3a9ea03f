"""timeline.png: the control cycles of about three seconds, and above them the life of every text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from oxygen_ros.demo.recording import Cycle, RunRecording, Text
from oxygen_ros.demo.verdict import Mark
from oxygen_ros.runtime.stamps import S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WINDOW_S = 3.0
DPI = 110
MAX_TEXTS = 40
SECTIONS = {
    "observe": "#95a5a6",
    "prefill": "#2471a3",
    "act": "#c0392b",
    "publish": "#2c3e50",
    "decode": "#27ae60",
}
LABELS = {"act": "action", "decode": "batched decode steps"}
SLACK = "#e8e8e8"
TASKS = ("#8e44ad", "#d68910", "#16a085", "#2e4053", "#a04000")
MARKS = {Mark.TRUE: "#1e8449", Mark.INEXACT: "#b7950b", Mark.FALSE: "#c0392b"}


def draw_timeline(run: RunRecording, marks: Mapping[str, Mark], path: Path) -> None:
    """Write the picture; a run without a cycle gives one that says so."""
    from matplotlib.figure import Figure

    window = busiest_window(run.cycles)
    begin_ns, end_ns = window
    texts = [text for text in run.texts if text.born_ns < end_ns and text.end_ns > begin_ns]
    shown = texts[:MAX_TEXTS]
    height = 2.6 + 0.21 * max(4, len(shown))
    figure = Figure(figsize=(13, height), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(height - 2.2, 1.5))
    _draw_texts(upper, shown, marks, window)
    _draw_cycles(lower, run, window)
    lower.set_xlim(0.0, (end_ns - begin_ns) / S)
    lower.set_xlabel(f"seconds; 0 is {max(0, begin_ns - run.span_ns[0]) / S:.1f} s into the run")
    _title(figure, run, window, len(texts) - len(shown))
    figure.savefig(path, dpi=DPI, metadata={"Software": None})


def busiest_window(cycles: list[Cycle]) -> tuple[int, int]:
    """Begin and end, in log time, of the ``WINDOW_S`` with most text tokens that begin with a cycle."""
    if not cycles:
        return 0, round(WINDOW_S * S)
    length_ns = round(WINDOW_S * S)
    last_ns = max(cycles[0].begin_ns, cycles[-1].end_ns - length_ns)
    starts = [cycle.begin_ns for cycle in cycles if cycle.begin_ns <= last_ns]

    def tokens(begin_ns: int) -> int:
        inside = (c for c in cycles if begin_ns <= c.begin_ns < begin_ns + length_ns)
        return sum(cycle.text_tokens for cycle in inside)

    begin_ns = max(starts, key=tokens)
    return begin_ns, begin_ns + length_ns


def _title(figure: Figure, run: RunRecording, window: tuple[int, int], num_hidden: int) -> None:
    begin_ns, end_ns = window
    inside = [cycle for cycle in run.cycles if begin_ns <= cycle.begin_ns < end_ns]
    words = (
        f"{len(inside)} control cycles, one prefill each; {sum(c.decode_steps for c in inside)} decode steps "
        f"wrote {sum(c.text_tokens for c in inside)} tokens"
    )
    if num_hidden:
        words += f"; {num_hidden} more texts not drawn"
    figure.suptitle(words if inside else "no control cycle in the bag", fontsize=10)


def _draw_cycles(axes: Axes, run: RunRecording, window: tuple[int, int]) -> None:
    begin_ns, end_ns = window
    inside = [cycle for cycle in run.cycles if begin_ns <= cycle.end_ns and cycle.begin_ns < end_ns]
    for cycle in inside:
        _draw_cycle(axes, cycle, begin_ns)
    ticks = [(tick - begin_ns) / S for tick in run.ticks if begin_ns <= tick < end_ns]
    axes.vlines(ticks, -0.72, -0.46, color="#444444", lw=0.7)
    late = [(cycle.end_ns - begin_ns) / S for cycle in inside if cycle.is_late]
    axes.plot(late, [0.62] * len(late), "v", color=SECTIONS["act"], ms=6)
    for name, color in SECTIONS.items():
        axes.barh(0, 0, color=color, label=LABELS.get(name, name))
    axes.barh(0, 0, color=SLACK, label="slack")
    axes.plot([], [], "|", color="#444444", label="control tick")
    axes.plot([], [], "v", color=SECTIONS["act"], label="late")
    axes.set_yticks([-0.59, 0], [f"{len(ticks)} ticks", "cycles"], fontsize=8)
    axes.set_ylim(-0.8, 0.8)
    axes.legend(fontsize=8, ncols=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.42))


def _draw_cycle(axes: Axes, cycle: Cycle, begin_ns: int) -> None:
    """One row of bars: the sections in their order, decode cut into its steps, then the slack."""
    at = (cycle.begin_ns - begin_ns) / S
    for name, color in SECTIONS.items():
        width = getattr(cycle, f"{name}_ms") / 1e3
        steps = cycle.decode_steps if name == "decode" else 1
        for step in range(steps):
            left = at + step * width / steps
            axes.barh(0, width / steps, left=left, height=0.8, color=color, edgecolor="white", lw=0.25)
        at += width
    if cycle.slack_ms > 0:
        axes.barh(0, cycle.slack_ms / 1e3, left=at, height=0.8, color=SLACK)
    axes.vlines((cycle.begin_ns - begin_ns) / S, -0.42, 0.5, color="#777777", lw=0.8)


def _draw_texts(axes: Axes, shown: list[Text], marks: Mapping[str, Mark], window: tuple[int, int]) -> None:
    begin_ns, end_ns = window
    length_s = (end_ns - begin_ns) / S
    colors = {task: TASKS[i % len(TASKS)] for i, task in enumerate(sorted({text.task for text in shown}))}
    for row, text in enumerate(shown):
        color = colors[text.task]
        born, end = (text.born_ns - begin_ns) / S, (text.end_ns - begin_ns) / S
        axes.plot([born, end], [row, row], color=color, lw=1.6, alpha=0.7, solid_capstyle="butt")
        pieces = [(time - begin_ns) / S for time, words in text.pieces if words]
        axes.plot(pieces, [row] * len(pieces), "o", color=color, ms=3)
        axes.plot(born, row, "D", color="white", markeredgecolor=color, ms=5)
        axes.text(
            max(born, 0.0) - 0.006 * length_s,
            row,
            text.name,
            ha="right",
            va="center",
            fontsize=7,
            color=color,
        )
        if end < length_s:
            mark = marks.get(text.request_id)
            words = mark.sign if mark else "" if text.is_complete else f"({text.reason or 'unfinished'})"
            ink = MARKS[mark] if mark else color
            axes.text(end + 0.006 * length_s, row, words, va="center", fontsize=8, color=ink)
    axes.set_ylim(max(4, len(shown)) - 0.4, -0.6)
    axes.set_yticks([])
    axes.grid(axis="x", color="#eeeeee")
    axes.tick_params(labelbottom=False)
    title = "texts: diamond = observation it is about, dots = words; at the end ✓ true, ✗ false, ≈ inexact"
    axes.set_title(title if shown else "no text in this time", fontsize=9, loc="left")
