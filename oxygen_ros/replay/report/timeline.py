"""The picture of control cycles over time: what each spent where, and which texts were alive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from oxygen_ros.replay.measures.cycles import TIMELINE
from oxygen_ros.replay.report import pictures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from oxygen_ros.replay.session import Session

COLORS = {
    "observe": "#95a5a6",
    "prefill": "#2471a3",
    "act": "#c0392b",
    "publish": "#000000",
    "decode": "#27ae60",
    "slack": "#eaeaea",
}
MAX_CYCLES = 24


def timeline(session: Session, report: Mapping[str, Any]) -> Figure:
    """The busiest stretch of cycles as bars, and below it the lifelines of the texts of that stretch."""
    rows = session.figures.cycles.timeline.rows()
    figure = pictures.blank(12, 5)
    if not rows.size:
        pictures.nothing(figure.subplots(), "no cycle ran")
        return figure
    rows = rows[_busiest(rows)]
    start_s = session.span_ns[0] / 1e9
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2, 3))
    _draw_cycles(upper, rows, start_s)
    begin_s = rows[0, 0] - start_s
    period_s = float(rows[-1, 1:].sum()) / 1e3
    end_s = rows[-1, 0] - start_s + max(period_s, 0.001)
    _draw_texts(lower, report, begin_s, end_s)
    lower.set_xlim(begin_s, end_s)
    lower.set_xlabel("s")
    return figure


def _busiest(rows: Any) -> slice:
    """The stretch of ``MAX_CYCLES`` cycles with most time spent on decoding."""
    decode = rows[:, TIMELINE.index("decode")]
    size = min(MAX_CYCLES, len(rows))
    sums = np.convolve(decode, np.ones(size), mode="valid")
    first = int(np.argmax(sums))
    return slice(first, first + size)


def _draw_cycles(axes: Axes, rows: Any, start_s: float) -> None:
    at = rows[:, 0] - start_s
    for column, name in enumerate(TIMELINE[1:], start=1):
        width = np.maximum(rows[:, column], 0.0) / 1e3
        axes.barh(np.zeros(len(at)), width, left=at, height=0.8, color=COLORS[name], label=name)
        at = at + width
    axes.vlines(rows[:, 0] - start_s, -0.55, 0.55, color="#777777", lw=0.6)
    late = rows[rows[:, -1] < 0]
    axes.plot(late[:, 0] - start_s, np.full(len(late), 0.62), "v", color=COLORS["act"], ms=5)
    axes.set_yticks([])
    axes.set_ylim(-0.7, 0.8)
    axes.set_title("control cycles (triangle: late)", fontsize=9, loc="left")
    axes.legend(fontsize=8, ncols=6, frameon=False, loc="upper right", bbox_to_anchor=(1.0, 1.25))


def _draw_texts(axes: Axes, report: Mapping[str, Any], begin_s: float, end_s: float) -> None:
    start_ns = report["setup"]["start_ns"]
    shown = []
    for text in report["texts"]:
        born = ((text["stamp_ns"] or text["first_ns"]) - start_ns) / 1e9
        end = (text["end_ns"] - start_ns) / 1e9
        if born < end_s and end > begin_s:
            shown.append((text, born, end))
    for row, (text, born, end) in enumerate(shown[: pictures.MAX_TEXT_ROWS]):
        color = pictures.SEAM if text["reason"] in ("stop", "length") else pictures.PREDICTED
        axes.plot([born, end], [row, row], color=color, lw=2, solid_capstyle="butt")
        axes.plot(born, row, "o", color=color, ms=4)
        axes.plot(end, row, "s" if text["reason"] == "stop" else "x", color=color, ms=4)
    names = [text["request_id"] for text, _, _ in shown[: pictures.MAX_TEXT_ROWS]]
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.invert_yaxis()
    axes.grid(axis="x", color="#eeeeee")
    axes.set_title("texts: from the observation they are about to their end", fontsize=9, loc="left")
