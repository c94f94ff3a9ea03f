"""Do executors give the same? Without that, no ratio between them means anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.executors.protocol import CycleRecord, Executor
from benchmarks.workloads import Job

ACTION_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Equality:
    """What was compared, and how far two executors are apart.

    Attributes:
        num_texts, num_tokens: compared token by token.
        num_other_texts: texts with a token that differs.
        num_distinct_tokens: different tokens among them; a model that repeats itself proves little.
        max_action_difference: over all chunks.
    """

    num_texts: int
    num_tokens: int
    num_other_texts: int
    num_distinct_tokens: int
    num_chunks: int
    max_action_difference: float

    @property
    def holds(self) -> bool:
        """True if every token is the same and actions are close."""
        return (
            self.num_chunks > 0
            and self.num_other_texts == 0
            and self.max_action_difference <= ACTION_TOLERANCE
        )


def check_equality(ours: Executor, theirs: Executor, jobs: Sequence[Job]) -> Equality:
    """Run both on ``jobs`` and compare all texts that end within them, and all actions."""
    mine, others = ([executor.run(job) for job in jobs] for executor in (ours, theirs))
    ours.close()
    theirs.close()
    return compare_records(mine, others)


def compare_records(mine: Sequence[CycleRecord], others: Sequence[CycleRecord]) -> Equality:
    """Compare what two executors gave for the same jobs."""
    my_texts, other_texts = (
        {text.request_id: text.token_ids for record in records for text in record.finished}
        for records in (mine, others)
    )
    both = my_texts.keys() & other_texts.keys()
    differences = [
        float(np.abs(a.actions[name] - b.actions[name]).max())
        for a, b in zip(mine, others, strict=True)
        for name in a.actions
    ]
    return Equality(
        num_texts=len(both),
        num_tokens=sum(len(my_texts[i]) for i in both),
        num_other_texts=sum(my_texts[i] != other_texts[i] for i in both),
        num_distinct_tokens=len({token for i in both for token in my_texts[i]}),
        num_chunks=len(differences),
        max_action_difference=max(differences, default=float("nan")),
    )
