"""What texts the comparison asks for, and those that are kept to be written again by the other ways."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from oxygen_ros.demo.compare_figures import Figures
from oxygen_ros.demo.compare_ways import Written
from oxygen_ros.sim import grammar
from oxygen_ros.sim.scorer import ASK, MEMORY, NEXT
from oxygen_ros.training.episodes import MAX_TEXT_TOKENS
from oxygen_ros.types import Observation, SamplingParams, TextKind, TextRequest

STREAMS = {MEMORY: TextKind.MEMORY, NEXT: TextKind.SUBTASK, ASK: TextKind.ASK}
ASK_EVERY_NS = 500_000_000
"""All three streams ask about the newest observation this often."""
SAMPLE = 12


@dataclass
class Demand:
    """When which stream asks what. Equal seeds give equal questions, whatever the way."""

    seed: int
    begin_ns: int
    num_asked: int = 0
    alive: dict[str, tuple[str, int]] = field(default_factory=dict)

    def due(self, now_ns: int, figures: Figures) -> list[TextRequest]:
        """Requests that are due. A stream whose last text is unfinished does not ask."""
        asked_ns = self.begin_ns + self.num_asked * ASK_EVERY_NS
        if now_ns < asked_ns:
            return []
        skipped = (now_ns - asked_ns) // ASK_EVERY_NS
        self.num_asked += skipped
        figures.not_asked += skipped * len(STREAMS)
        asked_ns += skipped * ASK_EVERY_NS
        requests = []
        for stream, kind in STREAMS.items():
            if any(alive == stream for alive, _ in self.alive.values()):
                figures.not_asked += 1
                continue
            name = f"{stream}-{self.seed}-{self.num_asked}"
            sampling = SamplingParams(max_tokens=MAX_TEXT_TOKENS)
            requests.append(TextRequest(name, stream, kind, self._prompt(stream), sampling))
            self.alive[name] = (stream, asked_ns)
        figures.asked += len(requests)
        self.num_asked += 1
        return requests

    def _prompt(self, stream: str) -> str:
        if stream != ASK:
            return {MEMORY: grammar.MEMORY_PROMPT, NEXT: grammar.NEXT_PROMPT}[stream]
        known = grammar.questions()
        return known[int(np.random.default_rng((self.seed, self.num_asked)).integers(len(known)))]


@dataclass
class Sample:
    """Texts that oxygen wrote in its runs, with all that is needed to write them again."""

    requests: dict[str, TextRequest] = field(default_factory=dict)
    seen: dict[int, Observation] = field(default_factory=dict)
    written: list[Written] = field(default_factory=list)

    def chosen(self) -> list[Written]:
        """At most ``SAMPLE`` of them, spread over all."""
        return self.written[:: max(1, len(self.written) // SAMPLE)][:SAMPLE]
