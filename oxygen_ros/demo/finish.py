"""Turns a run's bag into a run folder that people can read: timeline, summary, GIF.

Whatever the bag lacks, the folder is valid and says what is missing. Called when a demonstration ends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oxygen_ros.demo.machine import checkpoint_facts, machine_facts
from oxygen_ros.demo.movie import draw_movie
from oxygen_ros.demo.recording import RunRecording, read_run
from oxygen_ros.demo.summary import RunSummary, content_of, page_of
from oxygen_ros.demo.timeline import draw_timeline
from oxygen_ros.demo.verdict import Verdict, judge
from oxygen_ros.errors import ContractError

BAG, PARTIAL = "run.mcap", "run.partial"
TIMELINE, MOVIE, JSON, PAGE = "timeline.png", "demo.gif", "summary.json", "summary.md"


@dataclass(frozen=True)
class RunFacts:
    """What the bag does not say. All of it may be left out.

    Attributes:
        driver: what moved the robot, in words: a trained checkpoint, random weights, a stand-in.
        checkpoint: folder of the weights.
        threads: CPU threads of the model.
        task_prompts: question of a text task that asks by itself, by task.
        notes: further facts for summary.json.
    """

    driver: str = ""
    checkpoint: Path | None = None
    threads: int | None = None
    task_prompts: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


def finish_run(folder: Path, facts: RunFacts | None = None) -> RunSummary:
    """Write timeline, summary and GIF beside ``folder``/run.mcap, a file or a bag's folder.

    Raises:
        OSError: if the folder cannot be written.
    """
    facts = facts or RunFacts()
    run, missing = _read(folder)
    verdict = judge(run, facts.task_prompts)
    missing += _missing(run)
    pictures = _draw(folder, run, verdict, missing)
    about: dict[str, Any] = {"machine": machine_facts(facts.threads), **facts.notes}
    if facts.driver:
        about["driver"] = facts.driver
    if facts.checkpoint is not None:
        about["checkpoint"] = checkpoint_facts(facts.checkpoint)
    content = content_of(run, verdict, missing, about)
    text = json.dumps(content, indent=1, ensure_ascii=False)
    (folder / JSON).write_text(text + "\n", encoding="utf-8")
    (folder / PAGE).write_text(page_of(content, pictures), encoding="utf-8")
    files = (*(folder / file for file, _ in pictures), folder / JSON, folder / PAGE)
    return RunSummary(folder, files, tuple(missing), content)


def _read(folder: Path) -> tuple[RunRecording, list[str]]:
    """The recording, and why there is none or only a part."""
    paths = [path for name in (BAG, PARTIAL) if (path := folder / name).exists()]
    if not paths:
        return RunRecording(), [f"{BAG}: nothing was recorded"]
    try:
        run = read_run(paths[0])
    except ContractError as error:
        return RunRecording(), [f"{paths[0].name}: {error.message}"]
    cut_off = [f"the end of the run: it was cut off, {paths[0].name} was not closed"] if run.faults else []
    return run, cut_off


def _missing(run: RunRecording) -> list[str]:
    if not run.topics:
        return []
    found = {
        "control cycles: no cycle report in the bag": run.cycles,
        "texts: none was written": run.texts,
        "commands: the player sent none": run.ticks,
        "truth: no truth topic in the bag, so nothing can be judged": run.truths,
        "show view: no pictures in the bag (headless), so there is no demo.gif": run.show,
    }
    return [words for words, things in found.items() if not things]


def _draw(folder: Path, run: RunRecording, verdict: Verdict, missing: list[str]) -> list[tuple[str, str]]:
    """(file, caption) of each picture; what cannot be drawn is added to ``missing``."""
    for name in (TIMELINE, MOVIE):
        (folder / name).unlink(missing_ok=True)
    pictures = []
    marks = "✓ true, ✗ false, ≈ inexact when its picture was taken, so many seconds ago"
    try:
        if run.show:
            words = draw_movie(run, verdict, folder / MOVIE)
            pictures.append((MOVIE, f"What it did and what it said: {words}; {marks}"))
        draw_timeline(run, verdict.marks, folder / TIMELINE)
        pictures.append((TIMELINE, "Control cycles below, the texts that were written in their slack above"))
    except ImportError as error:
        missing.append(f"pictures: {error.name} is not installed (pip install oxygen_ros[bags,sim])")
    return pictures
