"""Text: what the model is asked to write, how long, and what happens when it does not end."""

from __future__ import annotations

from dataclasses import dataclass, field

from oxygen_ros.config.field import named_sections, parameter
from oxygen_ros.types import MAX_PRIORITY

ASK_TASK = "ask"
"""Task of a question that names none."""


@dataclass(frozen=True)
class TextTaskConfig:
    """One reason to write text: its prompt, trigger, limits and sampling."""

    kind: str = parameter(
        "other", choices=("ask", "subtask", "memory", "other"), help="What consumers take the text for."
    )
    prompt: str = parameter("", help="Suffix prompt after the shared prefix. Empty: the prefix goes on.")
    every_cycles: int = parameter(
        0, unit="cycles", minimum=0, maximum=100_000, help="Starts every so many cycles. 0: on request only."
    )
    max_tokens: int = parameter(48, unit="tokens", minimum=1, maximum=8192, help="Tokens before it is cut.")
    priority: int = parameter(0, minimum=-MAX_PRIORITY, maximum=MAX_PRIORITY, help="Higher goes first.")
    supersedes: bool = parameter(False, help="A newer request replaces a waiting one of the same task.")
    supersedes_running: bool = parameter(False, help="A newer request also ends a running one of its task.")
    max_age_s: float = parameter(
        30.0, unit="s", minimum=0.001, maximum=86_400.0, help="Older unfinished requests end as expired."
    )
    temperature: float = parameter(
        0.0, minimum=0.0, maximum=10.0, help="Randomness of the choice. 0: the likeliest token each time."
    )
    top_k: int = parameter(
        0, unit="tokens", minimum=0, maximum=1_000_000, help="Draw among so many likeliest tokens. 0: all."
    )
    stop_strings: tuple[str, ...] = parameter((), help="The text ends before the first of these.")

    @property
    def max_age_ns(self) -> int:
        """The age limit in nanoseconds."""
        return round(self.max_age_s * 1e9)


DEFAULT_TASKS = {
    ASK_TASK: TextTaskConfig(kind="ask", priority=20),
    "subtask": TextTaskConfig(
        kind="subtask", prompt="Subtask: ", every_cycles=3, max_tokens=24, priority=10, supersedes=True
    ),
    "memory": TextTaskConfig(kind="memory", prompt="Memory: ", every_cycles=10, supersedes=True),
}


@dataclass(frozen=True)
class TextConfig:
    """Limits that hold for all texts, and the text tasks by name."""

    enabled: bool = parameter(True, help="False: no text is ever decoded; requests are refused.")
    max_waiting: int = parameter(
        32, unit="requests", minimum=1, maximum=10_000, help="Requests that may wait; more are refused."
    )
    aging_s: float = parameter(
        1.0, unit="s", minimum=0.001, maximum=3600.0, help="Waiting time that is worth one unit of priority."
    )
    max_tokens: int = parameter(
        64, unit="tokens", minimum=1, maximum=8192, help="No text gets longer, whatever a request asks for."
    )
    max_prompt_tokens: int = parameter(
        64,
        unit="tokens",
        minimum=1,
        maximum=8192,
        help="Longest suffix prompt; longer questions are refused.",
    )
    max_calls_per_s: float = parameter(
        20.0,
        unit="1/s",
        minimum=0.1,
        maximum=10_000.0,
        help="Questions and cancels taken per second; others are refused.",
    )
    on_stale_input: str = parameter(
        "continue",
        choices=("continue", "hold"),
        help="What running texts do while cameras or joints are stale.",
    )
    loop_guard: bool = parameter(True, help="Ends a text that repeats itself, with reason length.")
    loop_ngram: int = parameter(
        6, unit="tokens", minimum=1, maximum=256, help="Longest repeated piece that the loop guard looks for."
    )
    loop_repeats: int = parameter(
        4, unit="times", minimum=2, maximum=100, help="Times in a row that make a loop."
    )
    max_special_fraction: float = parameter(
        0.3, minimum=0.0, maximum=1.0, help="More special or unused tokens than this: the text ends as error."
    )
    seed: int = parameter(0, minimum=0, maximum=2**31 - 1, help="Seed of texts whose request gives none.")
    task_names: tuple[str, ...] = parameter(
        tuple(DEFAULT_TASKS), help="Text tasks; each has its own section and topics."
    )
    tasks: dict[str, TextTaskConfig] = field(
        default_factory=lambda: dict(DEFAULT_TASKS),
        metadata=named_sections(TextTaskConfig, noun="task", names_from=("task_names",)),
    )

    @property
    def aging_ns(self) -> int:
        """The aging time in nanoseconds."""
        return round(self.aging_s * 1e9)
