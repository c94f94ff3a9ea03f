"""Brain, player, speech and memory as processes with a tiny pi0.5 at full text load, for a long time.

Counts missed actions on the player's clock, watches the resident memory of every process, and keeps books of
every text: begun, without a gap, ended once, stored. Exit code 0 if all is as it must be, 1 if not, 2 if the
run could not be made.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from rclpy.node import Node

from oxygen_ros.errors import OxygenError
from oxygen_ros.msg import CycleReport, PlayerState, TextDelta, TextRequest
from oxygen_ros.ros import qos
from oxygen_ros.ros.endurance.memory_curve import MemoryCurve
from oxygen_ros.ros.endurance.stage import CLOCK, Stage
from oxygen_ros.ros.endurance.text_ledger import TextLedger
from oxygen_ros.ros.simulated_robot import SimulatedRobot
from oxygen_ros.ros.text_inlet import from_delta_message
from oxygen_ros.srv import CancelText
from oxygen_ros.tools.make_tiny_checkpoint import write_checkpoint

NODES = ("oxygen_node", "action_player", "speech_node", "memory_node")
MAX_GROWTH = 0.01
ASK_EVERY_S = 0.7
CANCEL_SHARE = 0.15
QUESTIONS = ("What do you see? ", "Where is the red cup? ", "")
START_WITHIN_S = 180.0
TEXTS_END_WITHIN_NS = 5_000_000_000


class Watcher(Node):
    """Asks, cancels now and then, and keeps the books."""

    def __init__(self, seed: int, namespace: str) -> None:
        super().__init__("soak_watcher", namespace=namespace)
        self.ledger = TextLedger()
        self.asked: list[str] = []
        self.state: PlayerState | None = None
        self.num_cycles = self.num_late = self.num_tokens = self.num_acted = 0
        self.is_asking = False
        self._rng = Random(seed)
        self._ask = self.create_publisher(TextRequest, "oxygen_node/ask", qos.stream(50))
        self._cancel = self.create_client(CancelText, "oxygen_node/cancel_text")
        self.create_subscription(TextDelta, "oxygen_node/text_stream", self._on_delta, qos.stream(2000))
        self.create_subscription(PlayerState, "action_player/state", self._on_state, qos.newest(50))
        self.create_subscription(CycleReport, "oxygen_node/cycle_report", self._on_report, qos.stream(500))
        self.create_timer(ASK_EVERY_S, self._on_timer)

    @property
    def is_waiting(self) -> bool:
        """True while a text that has begun or was asked for has not ended."""
        return bool(self.ledger.open_ids) or not all(map(self.ledger.has_ended, self.asked))

    def begin_counting(self) -> None:
        """From here on cycles count."""
        self.num_cycles = self.num_late = self.num_tokens = self.num_acted = 0

    def _on_timer(self) -> None:
        if not self.is_asking:
            return
        request_id = f"question-{len(self.asked)}"
        self.asked.append(request_id)
        question = self._rng.choice(QUESTIONS)
        self._ask.publish(TextRequest(request_id=request_id, prompt=question, seed=len(self.asked)))
        running = self.ledger.open_ids
        if running and self._rng.random() < CANCEL_SHARE and self._cancel.service_is_ready():
            self._cancel.call_async(CancelText.Request(request_id=self._rng.choice(running)))

    def _on_delta(self, message: TextDelta) -> None:
        self.ledger.add(from_delta_message(message))

    def _on_state(self, message: PlayerState) -> None:
        self.state = message

    def _on_report(self, report: CycleReport) -> None:
        self.num_cycles += 1
        self.num_late += report.is_late
        self.num_acted += report.status == CycleReport.STATUS_ACTED
        self.num_tokens += report.text_tokens


def parameters(checkpoint: str, action_rate_hz: float) -> dict[str, object]:
    """Of brain and player: texts begin in every cycle, so that all rows are in use."""
    given: dict[str, object] = {
        "model.checkpoint": checkpoint,
        "enable_control": True,
        "instruction": "put the red cup on the table",
        "text.tasks.subtask.every_cycles": 1,
        "text.tasks.memory.every_cycles": 2,
    }
    if action_rate_hz:
        given["cycle.action_rate_hz"] = action_rate_hz
    return given


class Soak:
    """One run."""

    def __init__(self, options: argparse.Namespace, stage: Stage) -> None:
        self.stage = stage
        self.faults: list[str] = []
        self._options = options
        self._watcher = stage.add(Watcher(options.seed, stage.namespace))
        robot = SimulatedRobot(
            stage.config, namespace=stage.namespace, camera_hz=15.0, joint_hz=50.0, width=160, height=120
        )
        stage.add(robot)
        self._store = stage.folder / "memory.sqlite3"
        self._curves = {name: MemoryCurve() for name in NODES}

    def run(self) -> None:
        """Start, wait until all is warm, watch, end."""
        stage, watcher = self.stage, self._watcher
        stage.spin()
        stage.run("speech_node", {"command": ["cat"]})
        stage.run("memory_node", {"path": str(self._store)})
        stage.run("action_player")
        stage.run("oxygen_node")
        stage.until(
            lambda: watcher.state and watcher.state.actions_played > 0, "first action", START_WITHIN_S
        )
        watcher.is_asking = True
        self._wait(self._options.warm_s, is_sampled=False)
        before, begin_ns = watcher.state, CLOCK.now_ns()
        watcher.begin_counting()
        self._wait(60.0 * self._options.minutes, is_sampled=True)
        seconds, after = (CLOCK.now_ns() - begin_ns) / 1e9, watcher.state
        self._print_actions(before, after, seconds)
        self._print_memory()
        self._end()
        self._print_texts()

    def _wait(self, seconds: float, *, is_sampled: bool) -> None:
        begin_ns = CLOCK.now_ns()
        sample_every_ns = min(10e9, seconds * 1e9 / 20)
        next_ns = begin_ns

        def is_over() -> bool:
            nonlocal next_ns
            now_ns = CLOCK.now_ns()
            if is_sampled and now_ns >= next_ns:
                next_ns = now_ns + round(sample_every_ns)
                for name, curve in self._curves.items():
                    curve.add((now_ns - begin_ns) / 1e9, self.stage.programs[name].resident_bytes())
            return now_ns - begin_ns >= seconds * 1e9

        self.stage.until(is_over, "the run", seconds + 60.0)

    def _print_actions(self, before: PlayerState, after: PlayerState, seconds: float) -> None:
        watcher = self._watcher
        missed = after.ticks_missed - before.ticks_missed
        played = after.actions_played - before.actions_played
        print(f"run:     {seconds:.0f} s, {watcher.num_cycles} cycles, {watcher.num_late} late")
        print(f"actions: {played} played ({played / seconds:.2f} Hz), {missed} missed on the player's clock")
        print(f"decode:  {watcher.num_tokens} tokens, {watcher.num_tokens / seconds:.1f} a second")
        if missed:
            self.faults.append(f"{missed} actions missed")
        if not played or not watcher.num_tokens:
            self.faults.append("no actions or no text at all")

    def _print_memory(self) -> None:
        for name, curve in self._curves.items():
            print(f"memory:  {name}: {curve.in_words()}")
            if curve.growth() > MAX_GROWTH:
                self.faults.append(f"resident memory of {name} grew by {curve.growth():.2%}")

    def _end(self) -> None:
        watcher = self._watcher
        watcher.is_asking = False
        codes = self.stage.end_programs(["oxygen_node"])
        patience_ns = CLOCK.now_ns() + TEXTS_END_WITHIN_NS
        self.stage.until(
            lambda: not watcher.is_waiting or CLOCK.now_ns() > patience_ns, "ends of texts", START_WITHIN_S
        )
        for program in self.stage.programs.values():
            self.faults += [f"{program.name}: {line}" for line in program.faults()[:3]]
        codes |= self.stage.end_programs(["speech_node", "memory_node", "action_player"])
        self.faults += [f"{name} ended with {code}" for name, code in codes.items() if code != 0]

    def _print_texts(self) -> None:
        ledger = self._watcher.ledger
        without_end = [request_id for request_id in self._watcher.asked if not ledger.has_ended(request_id)]
        ends = ", ".join(f"{count} {reason}" for reason, count in sorted(ledger.num_ended.items()))
        print(f"texts:   {sum(ledger.num_ended.values())} ended once ({ends}), {len(ledger.open_ids)} open")
        self.faults += ledger.faults[:5]
        if ledger.open_ids or without_end:
            self.faults.append(f"without an end: {', '.join((*ledger.open_ids, *without_end)[:5])}")
        with sqlite3.connect(self._store) as connection:
            (num_stored,) = connection.execute("SELECT count(*) FROM texts").fetchone()
        print(f"stored:  {num_stored} of {ledger.num_with_text} texts with words")
        if num_stored != ledger.num_with_text:
            self.faults.append("the memory differs from the stream")


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(prog="soak_nodes", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=0.5, help="default: 0.5")
    parser.add_argument("--warm-s", type=float, default=10.0, help="seconds before it counts (default: 10)")
    parser.add_argument("--rate", type=float, default=0.0, help="actions per second (default: the preset's)")
    parser.add_argument("--preset", default="libero", help="robot preset (default: libero)")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    options = options_of(arguments)
    with tempfile.TemporaryDirectory() as folder:
        try:
            checkpoint = Path(folder) / "tiny"
            write_checkpoint(checkpoint, options.preset, options.seed)
            stage = Stage(parameters(str(checkpoint), options.rate), options.preset, "soak_nodes")
        except OxygenError as fault:
            print(fault, file=sys.stderr)
            return 2
        try:
            soak = Soak(options, stage)
            soak.run()
        except TimeoutError as fault:
            print(fault, file=sys.stderr)
            return 2
        finally:
            stage.close()
    for line in soak.faults:
        print(f"FAULT:   {line}")
    print("good" if not soak.faults else f"{len(soak.faults)} faults")
    return int(bool(soak.faults))


if __name__ == "__main__":
    sys.exit(main())
