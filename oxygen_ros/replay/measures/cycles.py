"""Where the time of the cycles went, and what they wrote."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from oxygen_ros.replay.measures.series import Series
from oxygen_ros.types import CycleReport, CycleStatus

TIMELINE = ("start_s", "observe", "prefill", "act", "publish", "decode", "slack")
MAX_REASONS = 20


class CycleFigures:
    """Counts and times of all cycles."""

    def __init__(self) -> None:
        self.by_status: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.num_late = self.num_tokens = self.num_steps = self.num_steps_possible = 0
        self.refusals: dict[str, int] = {}
        self.latencies = Series()
        self.timeline = Series()
        self.inputs = hashlib.blake2b(digest_size=16)

    def add(self, start_ns: int, report: CycleReport, inputs: str) -> None:
        """Take in one cycle: when it began, its report, the fingerprint of its inputs."""
        self.by_status[report.status.name.lower()] += 1
        if report.reason:
            reason = report.reason if report.reason in self.reasons else report.reason[:200]
            if reason in self.reasons or len(self.reasons) < MAX_REASONS:
                self.reasons[reason] += 1
        self.num_late += report.is_late
        self.num_tokens += report.text_tokens
        self.num_steps += report.decode_steps
        self.num_steps_possible += report.decode_steps_possible
        self.refusals = dict(sorted(report.refusals.items()))
        self.inputs.update(inputs.encode())
        if report.status is CycleStatus.ACTED:
            self.latencies.add(report.action_latency_ns / 1e6)
        sections = [getattr(report, f"{name}_ns") / 1e6 for name in TIMELINE[1:]]
        self.timeline.add(start_ns / 1e9, *sections)

    @property
    def num_cycles(self) -> int:
        """All cycles."""
        return sum(self.by_status.values())

    def latency_ms(self) -> NDArray[np.float64]:
        """Action latencies of the cycles that acted."""
        return self.latencies.rows().reshape(-1)
