"""Judges texts while a robot runs: remembers what was so, and looks up the instant each text was born at.

Knows no topics: whoever hears truth and texts hands them over. One thread.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from oxygen_ros.sim import grammar
from oxygen_ros.sim.scene import CONTROL_HZ
from oxygen_ros.sim.scorer import ASK, MEMORY, NEXT, Birth, TextTally
from oxygen_ros.sim.truth import parse_instruction
from oxygen_ros.sim.truth_message import TruthMessage

KINDS = (MEMORY, NEXT, ASK)
REMEMBERED_TICKS = 60 * CONTROL_HZ
_PROMPTS = {MEMORY: grammar.MEMORY_PROMPT, NEXT: grammar.NEXT_PROMPT}


@dataclass(frozen=True)
class Verdict:
    """What a text is worth.

    Attributes:
        is_right: every fact in it was so when it was born.
        is_false_claim: it says that something is held or placed, and it was not so.
        true_text: what would have been right.
    """

    is_right: bool
    is_false_claim: bool
    true_text: str


class Judge:
    """Keeps the truth of the last minute and counts what it has judged in ``tally``."""

    def __init__(self) -> None:
        self.tally = TextTally()
        self._seen: OrderedDict[int, TruthMessage] = OrderedDict()

    def see(self, message: TruthMessage) -> None:
        """Take note of what is so."""
        self._seen[message.stamp_ns] = message
        while len(self._seen) > REMEMBERED_TICKS:
            self._seen.popitem(last=False)

    def judge(self, kind: str, prompt: str, text: str, stamp_ns: int, instruction: str) -> Verdict | None:
        """The verdict on a whole text; None where nobody can judge.

        Args:
            kind: of KINDS.
            prompt: the question of an ASK; else not used.
            text: as it was written.
            stamp_ns: of the observation it is about.
            instruction: what the robot had been told then; empty for what the truth says.
        """
        born = self._seen.get(stamp_ns)
        if born is None or kind not in KINDS or (kind == ASK and not knows(prompt)):
            return None
        now = next(reversed(self._seen.values()))
        task = parse_instruction(instruction) or born.task
        birth = Birth(kind, _PROMPTS.get(kind, prompt), born.truth, task, 0)
        one = TextTally()
        age_ticks = max(0, now.stamp_ns - stamp_ns) * CONTROL_HZ // 1_000_000_000
        one.add(text, birth, now.truth, age_ticks)
        self.tally.merge(one)
        return Verdict(one.slots_right == one.slots, bool(one.false_claims), birth.true_text())


def knows(question: str) -> bool:
    """True if the grammar has a true answer to ``question``."""
    return " ".join(question.split()) in grammar.questions()
