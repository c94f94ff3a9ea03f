"""Runs many control cycles with three text tasks and random cancels, then checks the accounts.

Usage: python -m oxygen_ros.tools.soak_engine [--cycles 300] [--seed 0] [--checkpoint DIR] [--preset libero]
[--solo 60]. Without a checkpoint a tiny random pi0.5 is made in a temporary folder. Prints what the KV memory
holds before and after, and compares texts with those of the same request alone on its observation.
Exit code 0 if both are equal, 1 if not, 2 if the checkpoint cannot be used.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import numpy as np

from oxygen_ros.assembly.brain import Brain, build_brain
from oxygen_ros.clock import SimClock
from oxygen_ros.config import ASK_TASK, OxygenConfig, load_config
from oxygen_ros.engine.budget import CycleBudget, FixedSteps
from oxygen_ros.engine.engine import Engine
from oxygen_ros.errors import OxygenError
from oxygen_ros.runtime.control_cycle import Numbering
from oxygen_ros.runtime.ports import NotReady
from oxygen_ros.tools.make_tiny_checkpoint import write_checkpoint
from oxygen_ros.types import (
    ActionChunk,
    CycleReport,
    CycleStatus,
    FinishReason,
    MemoryUse,
    Observation,
    TextDelta,
    TextRequest,
)

INSTRUCTIONS = ("pick up the red cup", "open the drawer", "put the plate on the stove and close the door")
QUESTIONS = ("", "What is this? ", "Where is the red cup, and what lies beside it? ")
STALE_SHARE, ASK_SHARE, CANCEL_SHARE, CANCEL_ALL_SHARE = 0.05, 0.4, 0.06, 0.005


@dataclass
class Told:
    """Source and sinks of the run: makes observations by number, keeps every delta by request."""

    config: OxygenConfig
    rng: Random
    num_seen: int = 0
    num_actions: int = 0
    on_action: Callable[[], None] = lambda: None
    deltas: dict[str, list[TextDelta]] = field(default_factory=dict)

    def observation(self, number: int) -> Observation:
        """Observation ``number``, the same each time."""
        rng = np.random.default_rng(number)
        robot = self.config.robot
        return Observation(
            observation_id=number,
            stamp_ns=number,
            images={role: rng.integers(0, 256, (96, 128, 3), np.uint8) for role in robot.camera_roles},
            state=rng.uniform(-1, 1, robot.state_dim).astype(np.float32),
            instruction=INSTRUCTIONS[number % len(INSTRUCTIONS)],
        )

    def take(self) -> Observation | NotReady:
        """The next observation; now and then none."""
        if self.rng.random() < STALE_SHARE:
            return NotReady(CycleStatus.HOLDING, "stale: made so")
        self.num_seen += 1
        return self.observation(self.num_seen)

    def refusals(self) -> dict[str, int]:
        """None."""
        return {}

    def publish_action(self, chunk: ActionChunk) -> None:
        """Count it, unless it withdraws."""
        self.num_actions += len(chunk.actions) > 0
        self.on_action()

    def publish_text(self, delta: TextDelta) -> None:
        """Keep it."""
        self.deltas.setdefault(delta.request_id, []).append(delta)

    def publish_report(self, report: CycleReport) -> None:
        """Nothing to do with it."""

    def text(self, request_id: str) -> str:
        """What was written of one text."""
        return "".join(delta.text for delta in self.deltas[request_id])


class Soak:
    """One run on a clock that only cycles move on: the same seed and checkpoint give the same run."""

    def __init__(self, config: OxygenConfig, seed: int) -> None:
        self._clock = SimClock()
        self._rng = Random(seed)
        self.brain: Brain = build_brain(config, self._clock)
        self.told = Told(config, self._rng)
        self._asked: dict[str, TextRequest] = {}

    def memory(self) -> MemoryUse:
        """What the KV memory holds, with its accounts proved."""
        self.brain.engine.check_integrity()
        return self.brain.engine.memory()

    def run(self, num_cycles: int) -> str:
        """Run the cycles and end what is left. A line or two on what happened."""
        told = self.told
        cycle = self.brain.cycle(
            source=told, actions=told, texts=told, reports=told, clock=self._clock, numbering=Numbering()
        )
        told.on_action = self._cancel_some
        steps = tokens = rows = 0
        for _ in range(num_cycles):
            self._ask()
            self._cancel_some()
            report = cycle.run()
            self._clock.advance_ns(report.period_ns)
            steps, tokens = steps + report.decode_steps, tokens + report.text_tokens
            rows = max(rows, self.memory().rows_used)
        cycle.halt("end of the run")
        ends = Counter(deltas[-1].finish_reason for deltas in told.deltas.values())
        words = ", ".join(f"{ends[reason]} {reason.name.lower()}" for reason in FinishReason)
        return (
            f"{num_cycles} cycles: {told.num_actions} chunks, {steps} decode steps, {tokens} tokens, "
            f"at most {rows} texts at once\ntexts: {words}"
        )

    def differences(self, num_texts: int) -> tuple[list[str], int, int]:
        """Texts of the run beside the same request alone on its observation.

        Returns:
            Ids of those that differ, and how many texts and tokens were compared. A text that was cut short
            must be the beginning of its solo run.
        """
        told = self.told
        written = [i for i, deltas in told.deltas.items() if deltas[-1].num_tokens]
        chosen = written if len(written) <= num_texts else self._rng.sample(written, num_texts)
        differ = [i for i in chosen if not self._is_as_alone(i)]
        return differ, len(chosen), sum(told.deltas[i][-1].num_tokens for i in chosen)

    def _is_as_alone(self, request_id: str) -> bool:
        model, final = self.brain.model, self.told.deltas[request_id][-1]
        settings = replace(self.brain.engine.settings, steps=FixedSteps(1_000_000))
        engine = Engine(model.runner, model.tokenizer, self._clock, settings)
        seen = self.told.observation(final.observation_id)
        engine.prefill(model.processor.prepare(seen), seen.stamp_ns)
        engine.submit(replace(self._request(request_id), max_age_ns=1 << 60))
        engine.decode(CycleBudget(0, 0, 1 << 62, 0))
        alone = engine.take_deltas()
        engine.check_integrity()
        whole, part = "".join(delta.text for delta in alone), self.told.text(request_id)
        if final.finish_reason in (FinishReason.STOP, FinishReason.LENGTH):
            return (whole, alone[-1].num_tokens) == (part, final.num_tokens)
        return whole.startswith(part)

    def _request(self, request_id: str) -> TextRequest:
        task, _, number = request_id.rpartition("-")
        return self._asked.get(request_id) or self.brain.tasks[task].request(int(number))

    def _ask(self) -> None:
        if self._rng.random() < ASK_SHARE:
            made = self.brain.tasks.ask(ASK_TASK)
            sampling = replace(made.sampling, temperature=self._rng.choice((0.0, 1.0)), seed=len(self._asked))
            question = self._rng.choice(QUESTIONS)
            self._asked[made.request_id] = replace(made, prompt=question, sampling=sampling)
            self.brain.engine.submit(self._asked[made.request_id])

    def _cancel_some(self) -> None:
        if self._rng.random() < CANCEL_ALL_SHARE:
            self.brain.engine.cancel()
        alive = [i for i in self.told.deltas if self.brain.engine.is_alive(i)]
        if alive and self._rng.random() < CANCEL_SHARE:
            self.brain.engine.cancel(self._rng.choice(alive))


def in_words(use: MemoryUse) -> str:
    """One line on what is held."""
    return (
        f"{use.prefixes_used} of {use.prefixes_total} prefixes, {use.rows_used} of {use.rows_total} rows, "
        f"{use.kv_bytes} bytes"
    )


def soak(checkpoint: Path, preset: str, num_cycles: int, num_solo: int, seed: int) -> int:
    """Run and print. 0 if memory and texts are as they must be, else 1.

    Raises:
        OxygenError: if the checkpoint cannot be used.
    """
    overrides = {
        "model.checkpoint": str(checkpoint),
        "cycle.decode_policy": "fixed",
        "cycle.fixed_decode_steps": 5,
        "text.tasks.subtask.every_cycles": 2,
        "text.tasks.memory.every_cycles": 5,
        "runner.warm_up_runs": 1,
    }
    run = Soak(load_config(preset=preset, device="cpu", overrides=overrides).config, seed)
    before = run.memory()
    print(f"before: {in_words(before)}")
    print(run.run(num_cycles))
    after = run.memory()
    print(f"after:  {in_words(after)} - {'equal' if after == before else 'NOT EQUAL'}")
    differ, num_texts, num_tokens = run.differences(num_solo)
    print(f"alone:  {num_texts} texts, {num_tokens} tokens - {f'DIFFER: {differ}' if differ else 'equal'}")
    return int(after != before or bool(differ))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="soak_engine", description=summary)
    parser.add_argument("--cycles", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path, help="folder; a tiny random one is made if not given")
    parser.add_argument("--preset", default="libero", help="robot preset that fits the checkpoint")
    parser.add_argument("--solo", type=int, default=60, help="most texts that are run again alone")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = options.checkpoint or Path(folder) / "tiny"
        try:
            if options.checkpoint is None:
                write_checkpoint(checkpoint, options.preset, options.seed)
            return soak(checkpoint, options.preset, options.cycles, options.solo, options.seed)
        except OxygenError as fault:
            print(fault, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
