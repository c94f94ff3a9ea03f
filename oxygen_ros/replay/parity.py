"""A replayed run against the recorded one, cycle by cycle: inputs by fingerprint, texts by piece."""

from __future__ import annotations

import csv
from bisect import bisect_left
from pathlib import Path
from typing import Any

from oxygen_ros.replay.bag.bag import Bag
from oxygen_ros.replay.outlet import DELTA
from oxygen_ros.replay.recording import RecordedCycle, Recording
from oxygen_ros.replay.topics import TopicFinder

DELTA_TYPE = "oxygen_ros/msg/TextDelta"
MAX_LISTED = 10
Piece = tuple[int, str, int, str, int]


def compare_runs(bag: Bag, recording: Recording, folder: Path, namespace: str) -> dict[str, Any]:
    """What is equal: counts, and the first cycles and texts that are not."""
    inputs = _inputs_of(folder / "cycles.csv")
    compared = [cycle for cycle in recording.cycles if cycle.cycle_id in inputs]
    different = [cycle.cycle_id for cycle in compared if cycle.inputs != inputs[cycle.cycle_id]]
    topic = TopicFinder(bag, namespace).find("~/text_stream")
    before = _pieces(bag, topic, recording.cycles) if topic is not None else []
    with Bag(folder / "run.mcap") as run:
        now = _pieces(run, DELTA if DELTA in run.topics else None, recording.cycles)
    ends_at = compared[-1].cycle_id if compared else 0
    before, now = _until(before, ends_at), _until(now, ends_at)
    strange = sorted({piece[1] for piece in set(before) ^ set(now)})
    return {
        "cycles": len(compared),
        "cycles_with_other_inputs": len(different),
        "first_cycles_with_other_inputs": different[:MAX_LISTED],
        "text_pieces": len(before),
        "texts_that_differ": len(strange),
        "first_texts_that_differ": strange[:MAX_LISTED],
    }


def is_equal(parity: dict[str, Any]) -> bool:
    """Whether the run reproduced the recorded one."""
    return not parity["cycles_with_other_inputs"] and not parity["texts_that_differ"]


def _inputs_of(path: Path) -> dict[int, str]:
    with path.open(encoding="utf-8", newline="") as file:
        return {int(row["cycle_id"]): row["inputs"] for row in csv.DictReader(file)}


def _pieces(bag: Bag, topic: str | None, cycles: tuple[RecordedCycle, ...]) -> list[Piece]:
    """(cycle, request, sequence, text, finish reason) of every piece of text, in order."""
    if topic is None:
        return []
    begins = [cycle.begin_ns for cycle in cycles]
    pieces = []
    for record in bag.records((topic,)):
        delta = bag.types.read(DELTA_TYPE, record.data)
        index = bisect_left(begins, record.time_ns) - 1
        cycle_id = cycles[max(0, index)].cycle_id
        pieces.append((cycle_id, delta.request_id, delta.seq, delta.text, delta.finish_reason))
    return pieces


def _until(pieces: list[Piece], cycle_id: int) -> list[Piece]:
    """Without what comes after the last cycle: the recording may have ended in another way."""
    return [piece for piece in pieces if piece[0] < cycle_id]
