"""Pictures of a run. Without matplotlib there are none, and the report says so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from oxygen_ros.replay.session import Session

RECORDED, PREDICTED, SEAM = "#444444", "#c0392b", "#2471a3"
COLUMNS = 4
MAX_TEXT_ROWS = 40
DPI = 110


def draw(session: Session, report: Mapping[str, Any], folder: Path) -> tuple[list[tuple[str, str]], str]:
    """Draw all pictures into ``folder``. Gives (file, caption) of each, and why there are none."""
    try:
        import matplotlib.figure
    except ImportError as error:
        return [], f"not drawn: {error.name} is not installed"
    from oxygen_ros.replay.report.timeline import timeline

    del matplotlib
    pictures = {
        "actions": ("Predicted against recorded, by joint", actions(session, report)),
        "horizon": ("Error by step of the horizon", horizon_error(session, report)),
        "seams": ("Jumps where chunks take over", seams(session, report)),
        "timeline": ("Control cycles and texts", timeline(session, report)),
        "latency": ("Action latency", latency(session)),
        "texts": ("Texts from birth to end", texts(report)),
    }
    drawn = []
    for name, (caption, figure) in pictures.items():
        file = f"picture_{name}.png"
        figure.savefig(folder / file, dpi=DPI, metadata={"Software": None})
        drawn.append((file, caption))
    return drawn, ""


def blank(width: float, height: float) -> Figure:
    """An empty figure in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def nothing(axes: Axes, why: str) -> None:
    """Say that there is nothing to show."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, why, ha="center", va="center", color="#777777", wrap=True)


def actions(session: Session, report: Mapping[str, Any]) -> Figure:
    """One small chart for each joint: what the robot was told, and what the model would have told it."""
    errors = session.figures.errors
    path = errors.path.rows()
    num_joints = len(errors.joint_names)
    num_rows = -(-num_joints // COLUMNS)
    figure = blank(3.4 * COLUMNS, 1.7 * num_rows + 0.6)
    grid = figure.subplots(num_rows, COLUMNS, squeeze=False, sharex=True).reshape(-1)
    for axes in grid[num_joints:]:
        axes.set_axis_off()
    for i, name in enumerate(errors.joint_names):
        axes = grid[i]
        mae = report["measures"]["mae"]["joints"][name]
        axes.set_title(f"{name}" + (f"   MAE {mae:.3g}" if mae is not None else ""), fontsize=8, loc="left")
        axes.tick_params(labelsize=7)
        if path.size:
            seconds = path[:, 0] - session.span_ns[0] / 1e9
            axes.plot(seconds, path[:, 1 + num_joints + i], color=RECORDED, lw=1.4, label="recorded")
            axes.plot(seconds, path[:, 1 + i], color=PREDICTED, lw=0.9, label="predicted")
        else:
            nothing(axes, errors.source)
    if path.size:
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=2, fontsize=8, frameon=False)
    figure.supxlabel("s", fontsize=8)
    return figure


def horizon_error(session: Session, report: Mapping[str, Any]) -> Figure:
    """Mean absolute error of each step of the horizon: thin lines for joints, a thick one for their mean."""
    figure = blank(8, 3.2)
    axes = figure.subplots()
    by_step = session.figures.errors.by_step
    if not np.isfinite(by_step).any():
        nothing(axes, session.figures.errors.source)
        return figure
    steps = np.arange(1, len(by_step) + 1)
    axes.plot(steps, by_step, color="#bbbbbb", lw=0.7)
    known = np.isfinite(by_step)
    mean = np.where(known, by_step, 0.0).sum(axis=1) / np.maximum(1, known.sum(axis=1))
    axes.plot(steps, np.where(known.any(axis=1), mean, np.nan), color=PREDICTED, lw=2, label="mean of joints")
    axes.axvspan(
        0.5, report["setup"]["execute_horizon"] + 0.5, color=SEAM, alpha=0.08, label="rows that are run"
    )
    axes.set(xlabel="step of the horizon", ylabel="mean absolute error", xlim=(0.5, len(steps) + 0.5))
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, frameon=False)
    return figure


def seams(session: Session, report: Mapping[str, Any]) -> Figure:
    """The largest jump of any joint at each seam, beside the ordinary step."""
    figure = blank(8, 2.8)
    axes = figure.subplots()
    jumps = session.figures.seams.jumps.rows()
    if not jumps.size:
        nothing(axes, "no chunk took over from another")
        return figure
    seconds = jumps[:, 0] - session.span_ns[0] / 1e9
    axes.vlines(seconds, 0, jumps[:, 1], color=SEAM, lw=1.2, label="largest jump of a joint at a seam")
    step = float(session.figures.seams.step_mean.max(initial=0.0))
    axes.axhline(step, color=RECORDED, lw=1, ls="--", label="ordinary step of the fastest joint, mean")
    axes.set(xlabel="s", ylabel="jump", ylim=(0, None))
    axes.legend(fontsize=8, frameon=False)
    return figure


def latency(session: Session) -> Figure:
    """How often which action latency occurred."""
    figure = blank(8, 2.8)
    axes = figure.subplots()
    values = session.figures.cycles.latency_ms()
    if not values.size:
        nothing(axes, "no cycle acted")
        return figure
    axes.hist(values, bins=min(60, max(10, values.size // 4)), color=SEAM)
    for share, style in ((50, "-"), (95, "--"), (99, ":")):
        value = float(np.percentile(values, share))
        axes.axvline(value, color=PREDICTED, lw=1, ls=style, label=f"p{share} {value:.1f} ms")
    axes.set(xlabel="action latency, ms", ylabel="cycles")
    axes.legend(fontsize=8, frameon=False)
    return figure


def texts(report: Mapping[str, Any]) -> Figure:
    """Each text as a bar from the stamp of its observation to its last message, with its words."""
    shown = report["texts"][:MAX_TEXT_ROWS]
    figure = blank(11, 0.26 * max(4, len(shown)) + 0.8)
    axes = figure.subplots()
    if not shown:
        nothing(axes, "no text ended")
        return figure
    start_ns = report["setup"]["start_ns"]
    for row, text in enumerate(shown):
        born = ((text["stamp_ns"] or text["first_ns"]) - start_ns) / 1e9
        end = (text["end_ns"] - start_ns) / 1e9
        color = SEAM if text["reason"] in ("stop", "length") else PREDICTED
        axes.barh(row, max(end - born, 0.002), left=born, height=0.55, color=color)
        words = text["text"] if len(text["text"]) < 60 else text["text"][:57] + "..."
        axes.text(end, row, f"  {text['reason']}: {words}", va="center", fontsize=7)
    axes.set_yticks(range(len(shown)), [text["request_id"] for text in shown], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("s")
    axes.set_xlim(0, report["setup"]["duration_s"] * 1.35 + 0.01)
    return figure
