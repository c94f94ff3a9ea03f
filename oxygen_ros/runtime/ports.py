"""Where a control cycle takes from and gives to. ROS, replay and tests plug in here.

Every method is called from the control thread and must return at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from oxygen_ros.models.protocol import Guidance
from oxygen_ros.types import ActionChunk, CycleReport, CycleStatus, FloatArray, Observation, TextDelta


@dataclass(frozen=True)
class NotReady:
    """Why there is no observation now: a value, since it is to be expected.

    Attributes:
        status: WAITING before the first complete set of inputs, HOLDING once inputs went bad.
        reason: names the stream, e.g. "waiting: joints" or "stale: camera wrist (0.35 s)".
    """

    status: CycleStatus
    reason: str


class ObservationSource(Protocol):
    """Gives the newest synchronised inputs."""

    def take(self) -> Observation | NotReady:
        """Newest observation, with a new observation_id, or why there is none."""
        ...

    def refusals(self) -> dict[str, int]:
        """Inputs refused since the start, by kind."""
        ...


class ActionGuide(Protocol):
    """Says what pulls the next chunk, from the chunks before. Control thread."""

    def guidance(self, expert: str, observation: Observation) -> Guidance | None:
        """What pulls the chunk that ``expert`` makes of ``observation``; None for no pull."""
        ...

    def made(self, expert: str, observation: Observation, actions: FloatArray) -> None:
        """Take note of a chunk, in model space, that has been published."""
        ...

    def forget(self) -> None:
        """All chunks have been withdrawn."""
        ...


class ActionSink(Protocol):
    """Takes action chunks."""

    def publish_action(self, chunk: ActionChunk) -> None:
        """Send one chunk on its way."""
        ...


class TextSink(Protocol):
    """Takes text as it grows."""

    def publish_text(self, delta: TextDelta) -> None:
        """Send one delta on its way. The last one of a text has a finish reason."""
        ...


class ReportSink(Protocol):
    """Takes one report per cycle."""

    def publish_report(self, report: CycleReport) -> None:
        """Send one report on its way."""
        ...
