"""Whether a decode step may begin: noted in a recorded run, answered alike in one that reproduces it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from oxygen_ros.engine.budget import CycleBudget, FixedSteps, StepPolicy


@dataclass(frozen=True)
class NotedSteps(FixedSteps):
    """Another rule, whose answers are noted. Control thread."""

    rule: StepPolicy = field(default_factory=lambda: FixedSteps(0))
    answers: list[bool] = field(default_factory=list)

    def allows(self, num_done: int, cost_ns: int, budget: CycleBudget, now_ns: int) -> bool:
        """As the other rule."""
        answer = self.rule.allows(num_done, cost_ns, budget, now_ns)
        self.answers.append(answer)
        return answer

    def take(self) -> str:
        """Answers since the last call, 1 for yes."""
        text = "".join("01"[answer] for answer in self.answers)
        self.answers.clear()
        return text


@dataclass(frozen=True)
class RecordedSteps(FixedSteps):
    """The answers of a recorded run by cycle; no where there is none left."""

    by_cycle: Mapping[int, str] = field(default_factory=dict)
    given: dict[int, int] = field(default_factory=dict)

    def allows(self, num_done: int, cost_ns: int, budget: CycleBudget, now_ns: int) -> bool:
        """As it was answered then."""
        number = self.given.get(budget.cycle_id, 0)
        self.given[budget.cycle_id] = number + 1
        return self.by_cycle.get(budget.cycle_id, "")[number : number + 1] == "1"
