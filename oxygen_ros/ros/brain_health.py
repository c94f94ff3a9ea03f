"""What the brain's diagnostics say: the cycle, the inputs, the model. Fed by reports; asked once a second."""

from __future__ import annotations

from pathlib import Path

from diagnostic_msgs.msg import DiagnosticStatus

from oxygen_ros.assembly import Brain
from oxygen_ros.clock import Clock
from oxygen_ros.ros.diagnostics import ERROR, OK, WARN, status, worst
from oxygen_ros.ros.sensors import QosWatch
from oxygen_ros.runtime.mailbox import Mailbox
from oxygen_ros.runtime.rtc import ChunkGuide
from oxygen_ros.types import CycleReport, CycleStatus

_PAGE_BYTES = 4096
SILENT_AFTER_NS = 5_000_000_000
"""An active node that has ended no cycle for so long, and for three periods, hangs or has no clock."""
_LEVELS = {
    CycleStatus.ACTED: OK,
    CycleStatus.WAITING: WARN,
    CycleStatus.HOLDING: WARN,
    CycleStatus.FAILED: ERROR,
}


class BrainHealth:
    """Keeps the newest report and sums since the last time it was asked."""

    def __init__(
        self,
        name: str,
        brain: Brain,
        mailbox: Mailbox,
        watch: QosWatch,
        clock: Clock,
        guide: ChunkGuide | None = None,
    ) -> None:
        self._name = name
        self._guide = guide
        self._brain = brain
        self._mailbox = mailbox
        self._watch = watch
        self._clock = clock
        self._asked_ns = self._cycled_ns = clock.now_ns()
        self._misses_told = 0
        self._num_tokens = self._num_cycles = 0
        self.report: CycleReport | None = None

    def note(self, report: CycleReport) -> None:
        """Take in one report. Control thread."""
        self.report = report
        self._num_tokens += report.text_tokens
        self._num_cycles += 1

    def lines(self, is_active: bool = True) -> list[DiagnosticStatus]:
        """Health now; ``is_active`` if cycles are to run."""
        return [self._cycle(is_active), self._inputs(), self._model()]

    def _cycle(self, is_active: bool) -> DiagnosticStatus:
        now_ns = self._clock.now_ns()
        if self._num_cycles or not is_active:
            self._cycled_ns = now_ns
        silent_ns = now_ns - self._cycled_ns
        seconds = max(1e-3, (now_ns - self._asked_ns) / 1e9)
        rate_hz, tokens_per_s = self._num_cycles / seconds, self._num_tokens / seconds
        self._asked_ns, self._num_tokens, self._num_cycles = now_ns, 0, 0
        name, report = f"{self._name}: cycle", self.report
        if silent_ns > max(SILENT_AFTER_NS, 3 * self._brain.config.cycle.period_ns):
            return status(name, ERROR, f"no cycle for {silent_ns / 1e9:.1f} s", {"rate_hz": rate_hz})
        if report is None:
            return status(name, WARN, "no cycle yet")
        is_missing = report.deadline_misses > self._misses_told
        self._misses_told = report.deadline_misses
        message = report.reason or ("deadline missed" if is_missing else "acting")
        values = {
            "cycle_id": report.cycle_id,
            "rate_hz": rate_hz,
            "period_ms": report.period_ns / 1e6,
            "action_latency_ms": report.action_latency_ns / 1e6,
            "slack_ms": report.slack_ns / 1e6,
            "deadline_misses": report.deadline_misses,
            "decode_steps": report.decode_steps,
            "tokens_per_s": tokens_per_s,
            "texts_waiting": report.texts_waiting,
            "text_rows": f"{report.memory.rows_used}/{report.memory.rows_total}",
            "prefixes": f"{report.memory.prefixes_used}/{report.memory.prefixes_total}",
            "kv_bytes": report.memory.kv_bytes,
            "resident_mb": resident_mb(),
        }
        if self._guide is not None:
            values |= {"delay_actions": self._guide.delay, "delay_clamped": self._guide.num_clamped}
        values |= {f"refused_{kind}": count for kind, count in sorted(report.refusals.items())}
        return status(name, worst((_LEVELS[report.status], WARN if is_missing else OK)), message, values)

    def _inputs(self) -> DiagnosticStatus:
        rates, slow = self._mailbox.rates_hz(), []
        rules = self._mailbox.rules
        for rule in (*rules.cameras.values(), *rules.joint_sources.values()):
            if rates[rule.name] < rule.expected_rate_hz / 2:
                slow.append(f"{rule.name} at {rates[rule.name]:.1f} Hz of {rule.expected_rate_hz:g}")
        problems = list(self._watch.problems.values())
        level = ERROR if problems else WARN if slow else OK
        message = "; ".join((*problems, *slow)) or "all streams as expected"
        values = {f"rx_rate {name}": rate for name, rate in rates.items()}
        return status(
            f"{self._name}: inputs", level, message, values | {"decodes": self._mailbox.num_decodes}
        )

    def _model(self) -> DiagnosticStatus:
        warm = self._brain.warm_up
        values: dict[str, object] = {
            "device": warm.device,
            "dtype": warm.dtype,
            "dtype_asked": self._brain.config.runner.dtype,
            "backend": warm.backend,
            "compilations": self._brain.model.runner.num_compilations,
        }
        values |= dict(self._brain.model.counts())
        faults = self._brain.model_faults()
        kind = (
            "stand-in: no model is behind the actions and texts"
            if self._brain.model.is_stand_in
            else "loaded"
        )
        return status(f"{self._name}: model", WARN if faults else OK, "; ".join(faults) or kind, values)


def resident_mb() -> float:
    """Resident memory of this process in MiB; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0.0
    return pages * _PAGE_BYTES / 2**20
