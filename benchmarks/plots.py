"""Pictures of a result file. matplotlib is imported here alone and only when pictures are wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Results = dict[str, Any]
COLOURS = {
    "isolated": "#b05050",
    "shared": "#d09050",
    "reference": "#5070b0",
    "isolated-own-kernels": "#c09090",
    "shared-own-kernels": "#e0c090",
    "oxygen": "#208050",
}

SHADES = {"prefill": "#7090c0", "act": "#70b080", "decode": "#d0a060"}


def draw_all(results: Results, folder: Path) -> list[Path]:
    """Draw what the results have data for; paths of the pictures.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    if "workloads" in results and "W1" in results["workloads"]:
        drawn += [_rates(results, folder), _timeline(results, folder), _latencies(results, folder)]
    if "ablations" in results:
        drawn.append(_ablation_bars(results, folder))
    if "scaling" in results:
        drawn.append(_scaling(results, folder))
    return drawn


def _save(figure: Any, path: Path) -> Path:
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    import matplotlib.pyplot as plt

    plt.close(figure)
    return path


def _conditions(results: Results) -> str:
    machine, model = results["machine"], results["model"]
    millions = model["parameters"]["total"] / 1e6
    return (
        f"{machine['processor']} {machine['device']}, {machine['num_threads']} thread, {model['dtype']}, "
        f"{millions:.1f} M parameters, commit {machine['commit']}"
    )


def _rates(results: Results, folder: Path) -> Path:
    """Action rate against text throughput, as in the paper: up and to the right is better."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.6))
    measured = {**results["workloads"], **results.get("sweep", {})}
    points: dict[str, list[tuple[float, float, int]]] = {}
    for workload in measured.values():
        shape = workload["workload"]
        if shape["max_tokens"] != 30 or shape["robot"]["name"] != "LIBERO" or len(shape["texts"]) != 1:
            continue
        if shape["arrivals"] != "uniform" or shape["num_experts"] != 1:
            continue
        for name, metrics in workload["executors"].items():
            point = (metrics["text_tokens_per_second"], metrics["actions_per_second"])
            points.setdefault(name, []).append((*point, shape["steps_per_cycle"]))
    for name, its_points in points.items():
        batched = name in ("reference", "oxygen")
        chosen = sorted(its_points, key=lambda p: p[2]) if batched else its_points[:1]
        x, y = [p[0] for p in chosen], [p[1] for p in chosen]
        axes.plot(x, y, "o-" if batched else "s", color=COLOURS[name], label=name)
        if batched:
            for tokens, actions, steps in chosen:
                axes.annotate(
                    f"k={steps}", (tokens, actions), textcoords="offset points", xytext=(5, 5), fontsize=8
                )
    axes.set_xlabel("text tokens per second")
    axes.set_ylabel("actions per second")
    axes.margins(0.12)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    if points:
        axes.legend(fontsize=8)
    axes.set_title(f"LIBERO, N = 30\n{_conditions(results)}", fontsize=8)
    return _save(figure, folder / "rates.png")


def _timeline(results: Results, folder: Path) -> Path:
    """One steady cycle of each executor: what runs when, and when the actions are out."""
    import matplotlib.pyplot as plt

    executors = results["workloads"]["W1"]["executors"]
    figure, axes = plt.subplots(figsize=(8, 3.4))
    names = list(executors)
    for row, name in enumerate(names):
        left = 0.0
        for phase, width in _phases(executors[name]):
            axes.barh(row, width, left=left, color=SHADES[phase])
            left += width
        axes.plot(
            [executors[name]["action_latency"]["p50_ms"]] * 2, [row - 0.45, row + 0.45], color="black", lw=2
        )
    for phase, colour in SHADES.items():
        axes.bar(0, 0, color=colour, label=phase)
    axes.plot([], [], color="black", lw=2, label="actions are out")
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("ms after taking the observation, medians by phase")
    axes.set_xlim(left=0)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes.set_title(f"One cycle of W1\n{_conditions(results)}", fontsize=8)
    return _save(figure, folder / "timeline.png")


def _phases(metrics: Results) -> list[tuple[str, float]]:
    """Phases in the order they run: what of the prefills is not before the actions comes after them."""
    prefill, act, decode = (metrics[phase]["p50_ms"] for phase in SHADES)
    first = min(prefill, max(0.0, metrics["action_latency"]["p50_ms"] - act))
    is_second = prefill - first > 0.2 * prefill
    second = [("prefill", prefill - first)] if is_second else []
    return [("prefill", first if is_second else prefill), ("act", act), *second, ("decode", decode)]


def _latencies(results: Results, folder: Path) -> Path:
    """Share of cycles whose actions were out within a time."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    for name, values in results["workloads"]["W1"]["latencies_ms"].items():
        ordered = sorted(values)
        shares = [(index + 1) / len(ordered) for index in range(len(ordered))]
        axes.step(ordered, shares, where="post", color=COLOURS[name], label=f"{name} ({len(ordered)})")
    axes.set_xlabel("action latency, ms")
    axes.set_ylabel("share of cycles")
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    axes.set_title(f"Action latency in W1\n{_conditions(results)}", fontsize=8)
    return _save(figure, folder / "latency.png")


def _ablation_bars(results: Results, folder: Path) -> Path:
    """Each feature off alone, and the ladder from all off to all on."""
    import matplotlib.pyplot as plt

    ablations = results["ablations"]
    base = ablations["oxygen"]["cycle_processor"]["p50_ms"]
    figure, (alone, ladder) = plt.subplots(1, 2, figsize=(12, 4.4))
    features = list(ablations["alone"])
    costs = [ablations["alone"][f]["cycle_processor"]["p50_ms"] / base for f in features]
    alone.barh(features, costs, color="#7090c0")
    alone.axvline(1.0, color="black", lw=1)
    alone.invert_yaxis()
    alone.tick_params(axis="y", labelsize=8)
    alone.set_xlabel("cycle without it, times the whole")
    steps = ablations["ladder"]
    labels = ["all off", *(f"+ {step['switched_on']}" for step in steps[1:])]
    ladder.barh(labels, [s["metrics"]["cycle_processor"]["p50_ms"] for s in steps], color="#70b080")
    ladder.invert_yaxis()
    ladder.tick_params(axis="y", labelsize=8)
    ladder.set_xlabel("cycle, ms of processor time")
    figure.suptitle(f"Ablations on W1. {_conditions(results)}", fontsize=8)
    return _save(figure, folder / "ablations.png")


def _scaling(results: Results, folder: Path) -> Path:
    """Phases against requests, prefix length, cameras and experts."""
    import matplotlib.pyplot as plt

    curves = results["scaling"]
    figure, all_axes = plt.subplots(1, len(curves), figsize=(3.6 * len(curves), 3.6))
    for axes, curve in zip(all_axes, curves, strict=True):
        x = [point["x"] for point in curve["points"]]
        for field, style in (
            ("cycle_ms", "o-"),
            ("prefill_ms", "s--"),
            ("act_ms", "^--"),
            ("decode_step_ms", "d--"),
        ):
            label = field.removesuffix("_ms").replace("_", " ")
            axes.plot(x, [point[field] for point in curve["points"]], style, label=label, ms=4)
        axes.set_xlabel(curve["name"])
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    all_axes[0].set_ylabel("ms of processor time")
    all_axes[0].legend(fontsize=7)
    figure.suptitle(f"Scaling around W1 (cycle: k = 5). {_conditions(results)}", fontsize=8)
    return _save(figure, folder / "scaling.png")
