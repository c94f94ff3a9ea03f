"""Judges texts against what was so when they were born, and keeps count. Knows no model and no topics."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from oxygen_ros.sim import grammar
from oxygen_ros.sim.truth import COLOURS, TARGETS, Task, Truth

ASK, MEMORY, NEXT = "ask", "memory", "next"
PLACE_TOLERANCE_CM = 5.0


@dataclass(frozen=True)
class Birth:
    """What a text is about: the instant of its observation.

    Attributes:
        kind: ASK, MEMORY or NEXT.
        prompt: the suffix prompt; the question for ASK.
        tick: control tick of the observation.
    """

    kind: str
    prompt: str
    truth: Truth
    task: Task
    tick: int

    def true_text(self, truth: Truth | None = None) -> str:
        """The sentence that is right at birth, or for another ``truth``."""
        now = self.truth if truth is None else truth
        if self.kind == MEMORY:
            return grammar.memory_sentence(now, self.task)
        if self.kind == NEXT:
            return grammar.next_sentence(now, self.task)
        return grammar.answer(self.prompt, now)


@dataclass
class TextTally:
    """Counts over texts of one kind or of all.

    Attributes:
        texts, exact: texts judged; equal to the right sentence word for word.
        slots, slots_right: facts asked for; facts told rightly.
        claims, false_claims: texts that say that something is held or placed; those where it was not so.
        true_at_birth, stale: texts that were right at birth; those of them that were no longer right when
            they were out.
        ages: ticks from birth to the end of the text.
        place_errors_cm: distance between told and true place.
    """

    texts: int = 0
    exact: int = 0
    slots: int = 0
    slots_right: int = 0
    claims: int = 0
    false_claims: int = 0
    true_at_birth: int = 0
    stale: int = 0
    ages: list[int] = field(default_factory=list)
    place_errors_cm: list[float] = field(default_factory=list)

    def add(self, text: str, birth: Birth, truth_at_end: Truth, tick_at_end: int) -> None:
        """Judge one text."""
        right, claims = birth.true_text(), grammar.read_claims(text)
        is_exact = text == right
        self.texts += 1
        self.exact += is_exact
        self.claims += claims.is_claim
        self.false_claims += not claims.is_true(birth.truth)
        self.true_at_birth += is_exact
        self.stale += is_exact and birth.true_text(truth_at_end) != right
        self.ages.append(tick_at_end - birth.tick)
        self._add_slots(text, right, claims, birth)

    def _add_slots(self, text: str, right: str, claims: grammar.Claims, birth: Birth) -> None:
        wanted = grammar.read_claims(right)
        if birth.kind == NEXT:
            results = [text == right]
        else:
            results = [claims.held == wanted.held, claims.placed == wanted.placed]
        if wanted.place_cm is not None:
            error = place_error_cm(claims, birth)
            results.append(error is not None and error <= PLACE_TOLERANCE_CM)
            if error is not None:
                self.place_errors_cm.append(error)
        self.slots += len(results)
        self.slots_right += sum(results)

    def merge(self, other: TextTally) -> None:
        """Add the counts of ``other``."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def summary(self, tick_s: float) -> dict[str, float | int | None]:
        """Rates for people and files."""
        errors = self.place_errors_cm
        return {
            "texts": self.texts,
            "exact_match": share(self.exact, self.texts),
            "slot_accuracy": share(self.slots_right, self.slots),
            "claims": self.claims,
            "false_claims": self.false_claims,
            "false_claim_rate": share(self.false_claims, self.claims),
            "false_claims_per_text": share(self.false_claims, self.texts),
            "median_place_error_cm": round(float(np.median(errors)), 2) if errors else None,
            "stale_share": share(self.stale, self.true_at_birth),
            "mean_age_s": round(float(np.mean(self.ages)) * tick_s, 3) if self.ages else None,
        }


def share(part: int, whole: int) -> float | None:
    """``part`` of ``whole``; None where there is nothing to share."""
    return round(part / whole, 4) if whole else None


def place_error_cm(claims: grammar.Claims, birth: Birth) -> float | None:
    """Distance in cm between the place that a text tells and the true one; None without a place."""
    names = [f"the {colour} cube" for colour in COLOURS]
    names += [f"the {target}" for target in TARGETS]
    index = next((i for i, name in enumerate(names) if name in birth.prompt), None)
    if claims.place_cm is None or index is None:
        return None
    truth = birth.truth
    true = truth.cubes[index, :2] if index < len(truth.cubes) else truth.containers[index - len(truth.cubes)]
    return float(np.linalg.norm(np.array(claims.place_cm) - true * 100))
