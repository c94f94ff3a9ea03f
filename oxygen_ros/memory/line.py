"""One line of the memory, and what can be asked of it."""

from __future__ import annotations

from dataclasses import dataclass

from oxygen_ros.types import FinishReason, TextKind


@dataclass(frozen=True)
class Line:
    """One ended text.

    Attributes:
        stamp_ns: ROS time of the observation it is about; 0 if it never started.
        received_ns: ROS time at which its last piece came.
        is_whole: False when a piece of it never came.
    """

    stamp_ns: int
    received_ns: int
    task: str
    kind: TextKind
    request_id: str
    text: str
    finish_reason: FinishReason
    is_whole: bool = True


@dataclass(frozen=True)
class Query:
    """What is looked for; empty or None stands for any.

    Attributes:
        begin_ns, end_ns: first and last stamp of an observation, inclusive.
        words: each must occur in the text, in any case.
    """

    begin_ns: int | None = None
    end_ns: int | None = None
    words: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    finish_reasons: tuple[FinishReason, ...] = ()
    max_lines: int = 100
