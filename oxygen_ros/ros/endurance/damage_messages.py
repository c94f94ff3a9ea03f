"""Sends damaged messages to every input of brain, player, speech and memory, and watches what comes of it.

While an input gets damaged messages it gets no good one: an action from an observation that is younger than
its last good message plus its age limit came from a damaged one. Afterwards the robot must act again. Exit
code 0 if all is as it must be, 1 if not, 2 if the run could not be made.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from oxygen_ros.errors import OxygenError
from oxygen_ros.ros.endurance.damaged_inputs import DamagedInputs, Input
from oxygen_ros.ros.endurance.stage import CLOCK, Stage

NODES = ("speech_node", "memory_node", "action_player", "oxygen_node")
START_WITHIN_S = 120.0
RECOVERS_WITHIN_S = 120.0
BURST = 50
GAP_NS = 10_000_000
MARGIN_NS = 300_000_000
"""Between the driver's clock reading and the arrival of the last good message."""


class DamageRun:
    """One run."""

    def __init__(self, options: argparse.Namespace, stage: Stage) -> None:
        self.stage = stage
        self.faults: list[str] = []
        self._rng = Random(options.seed)
        self._inputs: DamagedInputs = stage.add(DamagedInputs(stage.config, stage.namespace))
        self._num_sent: Counter[str] = Counter()
        self._slowest_s = 0.0

    def run(self, num_messages: int) -> None:
        """Send ``num_messages`` in bursts, one input after the other."""
        stage, inputs = self.stage, self._inputs
        stage.spin()
        stage.run("speech_node", {"command": ["cat"]})
        stage.run("memory_node", {"path": str(Path(stage.folder) / "memory.sqlite3")})
        stage.run("action_player")
        stage.run("oxygen_node")
        stage.until(lambda: inputs.newest_chunk_ns, "first action", START_WITHIN_S)
        names = list(inputs.inputs)
        while (left := num_messages - self._num_sent.total()) > 0:
            self._burst(inputs.inputs[self._next(names)], min(BURST, left))

    def report(self) -> None:
        """Print what was measured, and note the faults of the logs."""
        inputs = self._inputs
        for name, count in sorted(self._num_sent.items()):
            print(f"sent:     {count:6d} to {name}")
        print(f"damages:  {self._num_sent.total()} messages of {len(inputs.kinds_sent)} kinds")
        for name, counts in sorted(inputs.refused.items()):
            print(f"refused:  {name}: {', '.join(f'{kind} {n}' for kind, n in sorted(counts.items()))}")
        print(f"actions:  {inputs.num_chunks} chunks, none may come from a damaged input")
        print(f"recovery: slowest {self._slowest_s:.1f} s")
        self.faults += inputs.faults
        for program in self.stage.programs.values():
            self.faults += [f"{program.name}: {line}" for line in program.faults()[:3]]

    def _next(self, names: Sequence[str]) -> str:
        return min(names, key=lambda name: (self._num_sent[name], self._rng.random()))

    def _burst(self, target: Input, num_messages: int) -> None:
        """Damaged messages alone, then good ones alone until the robot acts again."""
        stage, inputs = self.stage, self._inputs
        inputs.mute(target, MARGIN_NS)
        for _ in range(num_messages):
            inputs.send_damaged(target, self._rng)
            CLOCK.sleep_until_ns(CLOCK.now_ns() + GAP_NS)
        self._num_sent[target.name] += num_messages
        if target.max_age_ns:
            stage.wait(2 * target.max_age_ns / 1e9)
        begin_ns = inputs.restore()
        before = CLOCK.now_ns()
        stage.until(
            lambda: inputs.newest_chunk_ns > begin_ns, f"actions after {target.name}", RECOVERS_WITHIN_S
        )
        self._slowest_s = max(self._slowest_s, (CLOCK.now_ns() - before) / 1e9)


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(prog="damage_messages", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=500, help="messages (default: 500)")
    parser.add_argument("--preset", default="humanoid", help="robot preset (default: humanoid)")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line. The model is a stand-in with set costs."""
    options = options_of(arguments)
    overrides: dict[str, object] = {
        "runner.kind": "fake",
        "enable_control": True,
        "instruction": "wave to the visitor",
        "robot.cameras.left_wrist.type": "CompressedImage",
        "text.tasks.subtask.every_cycles": 2,
    }
    stage = Stage(overrides, options.preset, "damage_messages")
    try:
        run = DamageRun(options, stage)
        try:
            run.run(options.count)
        finally:
            run.report()
        codes = stage.end_programs(NODES)
    except (OxygenError, TimeoutError) as fault:
        print(fault, file=sys.stderr)
        return 2
    finally:
        stage.close()
    run.faults += [f"{name} ended with {code}" for name, code in codes.items() if code != 0]
    for line in run.faults:
        print(f"FAULT:    {line}")
    print("good" if not run.faults else f"{len(run.faults)} faults")
    return int(bool(run.faults))


if __name__ == "__main__":
    sys.exit(main())
