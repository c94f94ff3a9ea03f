"""Choices of an engine that hold while it lives. Plain data, made from the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from oxygen_ros.engine.budget import AutoSteps, StepPolicy


@dataclass(frozen=True)
class TextRules:
    """What a text may be, and when it is taken for none or for a loop.

    Attributes:
        is_enabled: False refuses every request.
        max_prompt_tokens, max_tokens: longest suffix prompt, most tokens that may be asked for; None: what
            fits a row.
        max_special_share: largest share of control and unused tokens; above it the text is an error.
        loop_ngram: longest repeated run of tokens that is taken for a loop; 0 looks for none.
        loop_repeats: times a run has to stand in a row to be a loop.
    """

    is_enabled: bool = True
    max_prompt_tokens: int | None = None
    max_tokens: int | None = None
    max_special_share: float = 0.3
    loop_ngram: int = 0
    loop_repeats: int = 4


@dataclass(frozen=True)
class EngineSettings:
    """How the engine shares out time and rows.

    Attributes:
        steps: how many decode steps a cycle takes.
        steps_per_round: decode steps between two reads of tokens.
        cost_quantile, cost_window: quantile of the last so many measured costs that a step is taken to cost.
        max_waiting: requests that wait for a row.
        aging_ns: waiting time that is worth one unit of priority.
        rules: of every text.
    """

    steps: StepPolicy = field(default_factory=AutoSteps)
    steps_per_round: int = 4
    cost_quantile: float = 0.95
    cost_window: int = 64
    max_waiting: int = 16
    aging_ns: int = 1_000_000_000
    rules: TextRules = field(default_factory=TextRules)
