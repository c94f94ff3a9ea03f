"""Judges a run: every text against what was so when it was born, every episode by how it ended."""

from __future__ import annotations

import bisect
import enum
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from oxygen_ros.demo.recording import RunRecording, Text
from oxygen_ros.runtime.stamps import S
from oxygen_ros.sim import grammar
from oxygen_ros.sim.judge import knows
from oxygen_ros.sim.scene import CONTROL_HZ
from oxygen_ros.sim.scorer import ASK, MEMORY, NEXT, Birth, TextTally
from oxygen_ros.sim.truth_message import TruthMessage

NEAR_NS = 100_000_000
"""A text is judged only if the truth is known this near to its birth."""


class Mark(enum.Enum):
    """What a finished text turned out to be. Values are what people read."""

    TRUE = "true"
    """Word for word what was right at its birth."""
    INEXACT = "inexact"
    """Not the right sentence, but nothing that it says is held or placed is false."""
    FALSE = "false"
    """It says that something is held or placed, and it was not so."""

    @property
    def sign(self) -> str:
        """One character for pictures."""
        return {Mark.TRUE: "✓", Mark.INEXACT: "≈", Mark.FALSE: "✗"}[self]


@dataclass(frozen=True)
class Episode:
    """How one episode ended.

    Attributes:
        is_whole: False for the one that was running when the bag ended.
        done_ns: when the task was done, to stay so; None if it was not.
    """

    number: int
    seed: int
    task: str
    is_whole: bool
    begin_ns: int
    end_ns: int
    done_ns: int | None

    @property
    def is_success(self) -> bool:
        """True when it ended with the task done."""
        return self.done_ns is not None

    @property
    def seconds(self) -> float:
        """From its first truth until the task was done, or to its last truth."""
        return ((self.done_ns or self.end_ns) - self.begin_ns) / S


@dataclass
class Verdict:
    """What the truth says of a run.

    Attributes:
        tallies: counts by kind of text.
        marks: by request id; texts that cannot be judged have none.
        right: what would have been right at birth, by request id.
        num_unjudged: complete texts without a truth at birth or without a known question.
    """

    episodes: list[Episode] = field(default_factory=list)
    tallies: dict[str, TextTally] = field(default_factory=dict)
    marks: dict[str, Mark] = field(default_factory=dict)
    right: dict[str, str] = field(default_factory=dict)
    num_unjudged: int = 0

    @property
    def whole(self) -> TextTally:
        """Counts over all kinds."""
        total = TextTally()
        for tally in self.tallies.values():
            total.merge(tally)
        return total


class Truths:
    """The truths of a run in the order of time."""

    def __init__(self, messages: Iterable[TruthMessage]) -> None:
        self._messages = sorted(messages, key=lambda message: message.stamp_ns)
        self._stamps = [message.stamp_ns for message in self._messages]

    def near(self, stamp_ns: int) -> TruthMessage | None:
        """The truth nearest to ``stamp_ns``; None if the nearest is too far away."""
        at = bisect.bisect_left(self._stamps, stamp_ns)
        near = self._messages[max(0, at - 1) : at + 1]
        found = min(near, key=lambda message: abs(message.stamp_ns - stamp_ns), default=None)
        return found if found is not None and abs(found.stamp_ns - stamp_ns) <= NEAR_NS else None

    def last_of(self, episode: int, until_ns: int) -> TruthMessage | None:
        """The newest truth of ``episode`` that is not newer than ``until_ns``."""
        at = bisect.bisect_right(self._stamps, until_ns)
        return next((m for m in reversed(self._messages[:at]) if m.episode == episode), None)

    def episodes(self) -> list[Episode]:
        """All episodes; the last one is whole only if it ended in success."""
        by_number: dict[int, list[TruthMessage]] = {}
        for message in self._messages:
            by_number.setdefault(message.episode, []).append(message)
        last = max(by_number, default=0)
        return [_episode(messages, number == last) for number, messages in sorted(by_number.items())]


def _episode(messages: list[TruthMessage], is_last: bool) -> Episode:
    done = list(itertools.takewhile(lambda message: message.is_done, reversed(messages)))
    return Episode(
        number=messages[-1].episode,
        seed=messages[-1].seed,
        task=messages[-1].instruction,
        is_whole=bool(done) or not is_last,
        begin_ns=messages[0].stamp_ns,
        end_ns=messages[-1].stamp_ns,
        done_ns=done[-1].stamp_ns if done else None,
    )


def judge(run: RunRecording, task_prompts: Mapping[str, str] | None = None) -> Verdict:
    """Judge the whole run.

    Args:
        run: what the bag holds.
        task_prompts: question of a text task that asks by itself, by task.
    """
    truths = Truths(run.truths)
    verdict = Verdict(episodes=truths.episodes())
    prompts = _prompts(run, task_prompts or {})
    for text in run.texts:
        if not text.is_complete:
            continue
        born = truths.near(text.stamp_ns)
        prompt = prompts.get(text.request_id, "")
        if born is None or not (text.kind in (MEMORY, NEXT) or knows(prompt)):
            verdict.num_unjudged += 1
            continue
        birth = Birth(text.kind, prompt, born.truth, born.task, _tick(born.stamp_ns))
        _add(verdict, text, birth, truths.last_of(born.episode, text.end_ns) or born)
    return verdict


def _add(verdict: Verdict, text: Text, birth: Birth, end: TruthMessage) -> None:
    words, right = text.text.strip(), birth.true_text()
    tally = verdict.tallies.setdefault(birth.kind, TextTally())
    tally.add(words, birth, end.truth, _tick(text.end_ns))
    is_so = grammar.read_claims(words).is_true(birth.truth)
    mark = Mark.TRUE if words == right else Mark.INEXACT if is_so else Mark.FALSE
    verdict.marks[text.request_id], verdict.right[text.request_id] = mark, right


def _tick(stamp_ns: int) -> int:
    """Control ticks since the epoch: ages are differences of two."""
    return round(stamp_ns * CONTROL_HZ / S)


def _prompts(run: RunRecording, task_prompts: Mapping[str, str]) -> dict[str, str]:
    """Question by request id. Questions that came without an id belong to the texts without one, in order."""
    found = dict(run.prompts)
    loose = iter(run.loose_prompts)
    for text in run.texts:
        if text.kind != ASK or text.request_id in found:
            continue
        prompt = task_prompts.get(text.task) or next(loose, "")
        if prompt:
            found[text.request_id] = prompt
    return found
