"""Results as text for people: ratios first, then times, then what was counted.

Size: one function per section of one printed page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.gates import Verdict

Results = dict[str, Any]
Rows = list[tuple[str, ...]]


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of ``rows`` with aligned columns, the first one to the left."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        yield "  " + "  ".join(cells).rstrip()


def report(results: Results) -> str:
    """The whole report."""
    lines = [*_head(results)]
    sections: dict[str, Callable[[Any], Iterator[str]]] = {
        "workloads": _workloads,
        "sweep": _workloads,
        "ablations": _ablations,
        "decode": _decode,
        "decode_bfloat16": _decode,
        "memory": _memory,
        "operators": _operators,
        "overhead": _overhead,
        "text_effect": _text_effect,
        "deadlines": _deadlines,
        "roofline": _roofline,
        "scaling": _scaling,
        "soak": _soak,
    }
    for name, section in sections.items():
        if name in results:
            lines += ["", TITLES[name], *section(results[name])]
    return "\n".join(lines)


TITLES = {
    "workloads": "Workloads: how many times faster ours is (cycle), and its action latency by theirs",
    "sweep": "Decode steps per cycle",
    "ablations": "Ours minus one feature; then all off and on again one by one",
    "decode": "One decode step, processor time, ms; times faster per token",
    "decode_bfloat16": "One decode step in bfloat16, processor time, ms; times faster per token",
    "memory": "KV memory per text request",
    "operators": "What decode steps do",
    "overhead": "No text: the control cycle by its bare calls",
    "text_effect": "Action latency from the due time of the cycle, with full text and without",
    "deadlines": "Deadlines",
    "roofline": "Time over what this machine could do at best",
    "scaling": "Scaling",
    "soak": "Soak",
}


def _head(results: Results) -> Iterator[str]:
    machine, model = results["machine"], results["model"]
    counts = model["parameters"]
    yield (
        f"{machine['processor']} ({machine['device']}, {machine['capability']}), {machine['num_threads']} of "
        f"{machine['num_cores']} threads, "
        f"load {machine['load_average']:.1f} to {results['load_average_at_end']:.1f}, "
        f"torch {machine['torch_version']}, commit {machine['commit']}"
    )
    rates = ", ".join(f"{dtype} {rate / 1e9:.0f} GFLOP/s" for dtype, rate in machine["gemm_flops"].items())
    yield f"best GEMM rates: {rates}; memory {machine['read_bytes_per_s'] / 1e9:.1f} GB/s"
    yield (
        f"model {model['name']}, {counts['total'] / 1e6:.1f} M parameters "
        f"(vision {counts['vision'] / 1e6:.1f}, "
        f"backbone {counts['backbone'] / 1e6:.1f}, embedding {counts['embedding'] / 1e6:.1f}, "
        f"expert {counts['expert'] / 1e6:.1f}), {model['dtype']}, linear layers: {model['linear_kernels']}"
    )
    if model["opponents_dtype"] != model["dtype"]:
        yield (
            f"isolated, shared and reference run in {model['opponents_dtype']} on the same weights: "
            f"on this processor that is faster than their {model['dtype']}"
        )
    if machine["device"] != "cpu":
        yield "not verified on a GPU"
    tokens = sum(e["num_tokens"] for e in results["equality"].values())
    worst = max(e["max_action_difference"] for e in results["equality"].values())
    yield f"equal outputs in float32: {tokens} tokens the same, actions within {worst:.1e}"


def _workloads(workloads: Results) -> Iterator[str]:
    for name, measured in workloads.items():
        yield f" {name} {measured['title']}; load {measured['load_average'][0]:.1f}"
        rows: Rows = [HEADER]
        for executor, metrics in measured["executors"].items():
            rows.append(_row(executor, metrics, measured["ratios"].get(executor)))
        yield from columns(rows)


HEADER = (
    "against",
    "cycle",
    "(processor)",
    "latency",
    "cycle ms",
    "p95",
    "p99",
    "action latency ms",
    "p99",
    "prefill",
    "act",
    "decode",
    "rows",
    "actions/s",
    "tokens/s",
    "text done ms",
    "cycles",
)


def _row(executor: str, metrics: Results, ratios: Results | None) -> tuple[str, ...]:
    def ms(field: str, quantile: str = "p50_ms") -> str:
        return f"{metrics[field][quantile]:.0f}" if metrics[field] else "-"

    ours = ("", "", "") if ratios is None else _ratio_cells(ratios)
    return (
        executor,
        *ours,
        ms("cycle"),
        ms("cycle", "p95_ms"),
        ms("cycle", "p99_ms"),
        ms("action_latency"),
        ms("action_latency", "p99_ms"),
        ms("prefill"),
        ms("act"),
        ms("decode"),
        f"{metrics['mean_rows']:.1f}",
        f"{metrics['actions_per_second']:.1f}",
        f"{metrics['text_tokens_per_second']:.1f}",
        ms("completion"),
        f"{metrics['completion_cycles']:.1f}" if metrics["completion_cycles"] else "-",
    )


def _ratio_cells(ratios: Results) -> tuple[str, ...]:
    cycle, processor = f"{ratios['cycle']:.2f}x", f"{ratios['cycle_processor']:.2f}x"
    return cycle, processor, f"{ratios['action_latency']:.2f}x"


def _ablations(ablations: Results) -> Iterator[str]:
    base = ablations["oxygen"]["cycle_processor"]["p50_ms"]
    latency = ablations["oxygen"]["action_latency"]["p50_ms"]
    rows: Rows = [("without", "cycle", "processor ms", "more", "latency")]
    for feature, metrics in ablations["alone"].items():
        spent = metrics["cycle_processor"]["p50_ms"]
        mark = " *" if feature in ablations["changes_outputs"] else ""
        by = metrics["action_latency"]["p50_ms"] / latency
        rows.append(
            (feature + mark, f"{spent / base:.2f}x", f"{spent:.0f}", f"{spent - base:+.0f}", f"{by:.2f}x")
        )
    yield from columns(rows)
    yield "  * computed as if valid: the right cost, other outputs"
    first = ablations["ladder"][0]["metrics"]["cycle_processor"]["p50_ms"]
    rows = [("switched on, one after another", "processor ms", "saves", "faster so far")]
    before = first
    for step in ablations["ladder"]:
        spent = step["metrics"]["cycle_processor"]["p50_ms"]
        rows.append((step["switched_on"], f"{spent:.0f}", f"{before - spent:.0f}", f"{first / spent:.2f}x"))
        before = spent
    yield from columns(rows)


def _decode(steps: list[Results]) -> Iterator[str]:
    head = ("rows", "oxygen", "one prefix", "isolated", "own kernels", "reference", "(joining)", "x isolated")
    rows: Rows = [(*head, "x own kernels", "x reference")]
    for step in steps:
        cells = [
            step[name]
            for name in (
                "oxygen",
                "oxygen_one_prefix",
                "isolated",
                "isolated_own_kernels",
                "reference",
                "reference_per_cycle",
            )
        ]
        own = step["isolated_own_kernels"] / step["oxygen"]
        ratios = (step["against_isolated"], own, step["against_reference"])
        rows.append((str(step["rows"]), *(f"{c:.1f}" for c in cells), *(f"{r:.1f}x" for r in ratios)))
    yield from columns(rows)


def _memory(memory: Results) -> Iterator[str]:
    rows: Rows = [("", "bytes", "by reference", "bytes by slots")]
    for name, slots in (
        ("reference", None),
        ("one_task", "one_task_slots"),
        ("each_of_three", "each_of_three_slots"),
    ):
        by = memory[name] / memory["reference"]
        slot_bytes = f"{memory[slots]:,}" if slots else ""
        rows.append((name.replace("_", " "), f"{memory[name]:,}", f"{by:.2f}x", slot_bytes))
    yield from columns(rows)


def _operators(found: Results) -> Iterator[str]:
    yield (
        f"  {found['num_steps']} steps of {found['mean_rows']:.0f} rows: "
        f"{found['kv_sized_allocations']} KV-sized allocations, {found['prefix_copies']} copies of prefixes, "
        f"{found['host_reads']} reads by the host, "
        f"{found['token_transfers_per_cycle']} token transfer per cycle; "
        f"{found['operators_per_step']:.0f} operators per step, "
        f"largest new tensor {found['largest_allocation']:,} bytes"
    )


def _overhead(overhead: Results) -> Iterator[str]:
    yield (
        f"  {overhead['ratio']:.3f}x ({overhead['processor_ratio']:.3f}x in processor time): "
        f"{overhead['cycle_ms']:.0f} ms against {overhead['action_only_ms']:.0f} ms, "
        f"{overhead['pairs']} pairs"
    )


def _text_effect(effect: Results) -> Iterator[str]:
    rows: Rows = [("", "p50 ms", "p95", "p99")]
    for name in ("with_text", "without_text"):
        spread = effect[name]
        cells = (f"{spread[q]:.0f}" for q in ("p50_ms", "p95_ms", "p99_ms"))
        rows.append((name.replace("_", " "), *cells))
    yield from columns(rows)
    step_ms, allowed_ms = effect["decode_step_ms"], effect["allowed_p99_ms"]
    yield f"  allowed p99 {allowed_ms:.0f} ms; one decode step {step_ms:.0f} ms"


def _deadlines(runs: list[Results]) -> Iterator[str]:
    rows: Rows = [
        ("clock", "period", "period ms", "cycles", "misses", "steps/cycle", "tokens", "texts", "refused")
    ]
    for run in runs:
        rows.append(
            (
                run["clock"],
                f"{run['period_factor']:.2f}x",
                f"{run['period_ms']:.0f}",
                str(run["cycles"]),
                str(run["misses"]),
                f"{run['steps_per_cycle']:.1f}",
                str(run["tokens"]),
                str(run["texts_finished"]),
                str(run["texts_refused"]),
            )
        )
    yield from columns(rows)


def _roofline(roofline: Results) -> Iterator[str]:
    rows: Rows = [("phase", "over bound", "ms", "bound ms", "compute ms", "memory ms", "GFLOP", "MB")]
    for phase, found in roofline.items():
        bound = found["bound"]
        rows.append(
            (
                phase.replace("_", " "),
                f"{found['over_bound']:.1f}x",
                f"{found['measured_ms']:.1f}",
                f"{bound['bound_ms']:.1f}",
                f"{bound['compute_ms']:.1f}",
                f"{bound['memory_ms']:.1f}",
                f"{bound['operations'] / 1e9:.2f}",
                f"{bound['num_bytes'] / 1e6:.0f}",
            )
        )
    yield from columns(rows)


def _scaling(curves: list[Results]) -> Iterator[str]:
    for curve in curves:
        rows: Rows = [
            (curve["name"], "prefix tokens", "rows", "prefill ms", "act ms", "decode step ms", "cycle ms")
        ]
        for p in curve["points"]:
            times = (f"{p[f]:.0f}" for f in ("prefill_ms", "act_ms", "decode_step_ms", "cycle_ms"))
            rows.append((str(p["x"]), str(p["prefix_tokens"]), str(p["rows"]), *times))
        yield from columns(rows)


def _soak(soak: Results) -> Iterator[str]:
    asked, finished, refused = (soak[f"texts_{what}"] for what in ("asked", "finished", "refused"))
    yield (
        f"  {soak['cycles']} cycles: {asked} texts asked for, {finished} finished, {refused} refused, "
        f"{soak['texts_open']} open at the end"
    )
    yield (
        f"  then {soak['rows_held']} rows and {soak['prefixes_held']} prefixes held; KV memory changed by "
        f"{soak['kv_bytes_changed']} bytes, peak memory of the process grew by "
        f"{soak['resident_growth_kib']} KiB"
    )


def gate_table(verdicts: Sequence[Verdict]) -> str:
    """Gates and what was found."""
    rows: Rows = [("gate", "found", "limit", "")]
    for v in verdicts:
        found = "-" if v.value is None else f"{v.value:.3g}"
        rows.append((v.name, found, f"{v.comparison} {v.limit:.3g}", "holds" if v.holds else "MISSED"))
    return "\n".join(columns(rows))
