"""Bags of made-up runs: a simulated world driven by the scripted expert, cycles and texts by a plan.

For tests of what reads a run. Messages, topics and clocks are those of a real run; times are exact.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from oxygen_ros.replay.bag.message_types import MessageTypes
from oxygen_ros.replay.bag.writer import BagWriter
from oxygen_ros.replay.messages import MessageMaker
from oxygen_ros.runtime.playback import Mode, PlayerStatus
from oxygen_ros.runtime.text_intake import Question
from oxygen_ros.sim import expert
from oxygen_ros.sim.pictures import background, draw
from oxygen_ros.sim.scorer import ASK, MEMORY, NEXT, Birth
from oxygen_ros.sim.truth import ALL_TASKS
from oxygen_ros.sim.truth_message import to_json
from oxygen_ros.sim.world import Tabletop, random_layout
from oxygen_ros.types import ActionChunk, CycleReport, CycleStatus, FinishReason, TextDelta, TextKind

S, MS = 1_000_000_000, 1_000_000
START_NS = 1_700_000_000 * S
TICK_NS = S // 30
CYCLE_TICKS = 8
ROOT = "/oxygen_demo"
BRAIN, PLAYER, WORLD = f"{ROOT}/oxygen_node", f"{ROOT}/action_player", f"{ROOT}/tabletop_node"
KINDS = {ASK: TextKind.ASK, NEXT: TextKind.SUBTASK, MEMORY: TextKind.MEMORY}
PROMPTS = {ASK: "Where is the red cube?", NEXT: "Next:", MEMORY: "Memory:"}
WORDS_A_STEP, STEPS_A_CYCLE = 1, 7
JPEG = [cv2.IMWRITE_JPEG_QUALITY, 85]


@dataclass
class RunPlan:
    """What is written.

    Attributes:
        ticks: control ticks in all; episodes follow one another.
        write: the words of a text, from what is right and how many were born before it.
        cut_bytes: so many bytes are cut from the end of the file.
        show: a picture of the world, or None to write no show view.
    """

    ticks: int = 240
    seed: int = 0
    has_truth: bool = True
    has_texts: bool = True
    has_questions: bool = True
    cut_bytes: int = 0
    write: Callable[[str, int], str] = field(default=lambda right, index: right)
    show: Callable[[Tabletop, int], Any] | None = field(default=lambda world, tick: _drawn(world, tick))


@dataclass
class _Growing:
    name: str
    birth: Birth
    observation_id: int
    stamp_ns: int
    words: list[str]
    num_done: int = 0
    seq: int = 0


def _drawn(world: Tabletop, tick: int) -> Any:
    return draw(background(90, 120), tick, world.joint_positions().tolist())


class _Writer:
    def __init__(self, bag: BagWriter, make: MessageMaker, plan: RunPlan) -> None:
        self.bag, self.make, self.plan = bag, make, plan
        self.growing: list[_Growing] = []
        self.num_cycles = self.num_born = 0
        self.born_of = dict.fromkeys(KINDS, 0)

    def tick(self, world: Tabletop, tick: int, episode: int, seed: int) -> None:
        at_ns, plan = START_NS + tick * TICK_NS, self.plan
        task = ALL_TASKS[seed % len(ALL_TASKS)]
        if plan.has_truth:
            line = to_json(
                world.truth(), stamp_ns=at_ns, episode=episode, seed=seed, task=task, ticks=world.ticks
            )
            self.bag.write(f"{WORLD}/truth", self.make.text(line), at_ns + MS)
        if plan.show is not None and tick % 2 == 0:
            _, jpeg = cv2.imencode(".jpg", plan.show(world, tick)[:, :, ::-1], JPEG)
            message = self.make.compressed(jpeg.tobytes(), at_ns, "show")
            self.bag.write(f"{WORLD}/show/compressed", message, at_ns + 2 * MS)
        if tick % CYCLE_TICKS == 0:
            self.cycle(world, at_ns, task)
        action = expert.act(world.truth(), task)
        self.bag.write(f"{PLAYER}/joint_command", self.make.array(action), at_ns + 20 * MS)
        status = PlayerStatus(Mode.PLAYING, self.num_cycles, 1, tick, 0, 0, "")
        self.bag.write(f"{PLAYER}/state", self.make.player(status, at_ns), at_ns + 20 * MS)
        world.step(action)

    def cycle(self, world: Tabletop, at_ns: int, task: Any) -> None:
        self.num_cycles += 1
        chunk = ActionChunk(
            self.num_cycles, at_ns, self.num_cycles, self.num_cycles, "default", task.instruction,
            tuple(f"joint_{i}" for i in range(7)), np.zeros((10, 7), np.float32), TICK_NS,
            CYCLE_TICKS, 20 * MS,
        )  # fmt: skip
        self.bag.write(f"{BRAIN}/action_chunk", self.make.chunk(chunk), at_ns + 21 * MS)
        if self.plan.has_texts:
            self.bear(world, at_ns, task)
        rows, tokens, end_ns = len(self.growing), 0, at_ns + 22 * MS
        for _ in range(STEPS_A_CYCLE if rows else 0):
            end_ns += 3 * MS
            tokens += len(self.growing)
            for text in list(self.growing):
                self.grow(text, end_ns)
        is_late = self.num_cycles == 6
        slack_ns = -5 * MS if is_late else at_ns + CYCLE_TICKS * TICK_NS - end_ns
        report = CycleReport(
            cycle_id=self.num_cycles, observation_id=self.num_cycles, stamp_ns=at_ns,
            status=CycleStatus.ACTED, period_ns=CYCLE_TICKS * TICK_NS, observe_ns=MS, prefill_ns=6 * MS,
            act_ns=13 * MS, publish_ns=MS, action_latency_ns=20 * MS, decode_ns=end_ns - at_ns - 21 * MS,
            slack_ns=slack_ns, is_late=is_late, decode_steps=STEPS_A_CYCLE if rows else 0, text_rows=rows,
            text_tokens=tokens,
        )  # fmt: skip
        self.bag.write(f"{BRAIN}/cycle_report", self.make.report(report, at_ns), end_ns)

    def bear(self, world: Tabletop, at_ns: int, task: Any) -> None:
        kind = (MEMORY, ASK, NEXT)[self.num_born % 3]
        if kind == ASK and not self.plan.has_questions:
            kind = MEMORY
        self.born_of[kind] += 1
        name = f"{kind}-{self.born_of[kind]}"
        birth = Birth(kind, PROMPTS[kind], world.truth(), task, 0)
        words = self.plan.write(birth.true_text(), self.num_born).split(" ")
        if kind == ASK:
            question = Question(prompt=PROMPTS[ASK], request_id=name)
            self.bag.write(f"{BRAIN}/ask", self.make.question(question), at_ns)
        self.growing.append(_Growing(name, birth, self.num_cycles, at_ns, words))
        self.num_born += 1

    def grow(self, text: _Growing, at_ns: int) -> None:
        done = text.num_done
        words = text.words[done : done + WORDS_A_STEP]
        text.num_done += len(words)
        is_last = text.num_done == len(text.words)
        delta = TextDelta(
            text.name, text.birth.kind, KINDS[text.birth.kind], text.observation_id, text.stamp_ns, text.seq,
            ("" if done == 0 else " ") + " ".join(words), text.num_done,
            FinishReason.STOP if is_last else None,
        )  # fmt: skip
        self.bag.write(f"{BRAIN}/text_stream", self.make.delta(delta), at_ns)
        text.seq += 1
        if is_last:
            self.growing.remove(text)


def _instants(world: Tabletop, plan: RunPlan) -> Iterator[tuple[int, int, int]]:
    """(tick, episode, seed); the world is reset where an episode has ended, some ticks after it is done."""
    episode, seed, num_done = 1, plan.seed, 0
    world.reset(random_layout(np.random.default_rng(seed)))
    for tick in range(plan.ticks):
        if num_done == 12:
            episode, seed, num_done = episode + 1, seed + 1, 0
            world.reset(random_layout(np.random.default_rng(seed)))
        yield tick, episode, seed
        num_done += world.truth().is_done(ALL_TASKS[seed % len(ALL_TASKS)])


def make_run(folder: Path, **plan: Any) -> Path:
    """A run folder that holds run.mcap; ``plan`` changes RunPlan."""
    chosen, types, world = RunPlan(**plan), MessageTypes(), Tabletop()
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / "writing"
    with BagWriter(partial, types) as bag:
        writer = _Writer(bag, MessageMaker(types), chosen)
        for tick, episode, seed in _instants(world, chosen):
            writer.tick(world, tick, episode, seed)
    data = (partial / "writing.mcap").read_bytes()
    shutil.rmtree(partial)
    (folder / "run.mcap").write_bytes(data[: len(data) - chosen.cut_bytes])
    return folder
