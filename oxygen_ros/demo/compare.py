"""The comparison: the same weights, seeds and questions run isolated, shared and as oxygen, in real time.

``compare`` measures on this machine, prints a table and writes compare.json. Texts of all ways are compared
word for word before any ratio is told.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from oxygen_ros.clock import Clock, SteadyClock
from oxygen_ros.demo.compare_figures import OXYGEN, WAYS, Figures, gains, table, unequal_words
from oxygen_ros.demo.compare_robot import STOPS_WITHIN_S, TICK_NS, LiveRobot
from oxygen_ros.demo.compare_texts import ASK_EVERY_NS, STREAMS, Demand, Sample
from oxygen_ros.demo.compare_ways import OxygenWay, Parts, SerialWay, Way, Written, oxygen_engine
from oxygen_ros.demo.machine import checkpoint_facts, machine_facts
from oxygen_ros.demo.recording import COMPLETE
from oxygen_ros.engine.engine import Engine
from oxygen_ros.runners.protocol import WarmUp
from oxygen_ros.sim.rules import FIRST_SEED, MAX_TICKS
from oxygen_ros.training.product import ProductPolicy
from oxygen_ros.types import FloatArray, Observation, TextRequest

FILE = "compare.json"
DEFAULT_SEEDS = range(FIRST_SEED, FIRST_SEED + 4)
ROOM = 1.5
"""The window is the smallest number of ticks that holds a cycle without text this many times."""
TRIAL_SEED, NUM_TRIALS = FIRST_SEED - 1, 15
RESERVE = 0.1
PASSED, UNEQUAL = 0, 1
NO_RATIO = "no ratio is told: that the ways write the same texts was not seen"


@dataclass(frozen=True)
class _Setting:
    """What holds for all ways: rows played of each chunk, ticks an episode may take, time."""

    execute: int
    max_ticks: int
    clock: Clock

    @property
    def window_ns(self) -> int:
        """The action-execution window."""
        return self.execute * TICK_NS

    def in_words(self, costs: WarmUp, cycle_ns: int) -> str:
        """One line: the machine's costs, and the window that follows."""
        words = f"a cycle without text beside the living robot {cycle_ns / 1e6:.1f} ms: "
        words += f"window of {self.execute} actions, {self.window_ns / 1e6:.0f} ms"
        if cycle_ns > self.window_ns:
            words += ". Prefill and actions alone do not fit: this machine is too slow or too busy"
        return f"{costs.in_words()}; {words}"

    def facts(self, seeds: Sequence[int]) -> dict[str, Any]:
        """For compare.json."""
        return {
            "window_ms": round(self.window_ns / 1e6, 1),
            "execute_horizon": self.execute,
            "max_ticks": self.max_ticks,
            "streams": list(STREAMS),
            "streams_ask_every_s": ASK_EVERY_NS / 1e9,
            "seeds": list(seeds),
        }


def print_line(line: str) -> None:
    """Print at once, also where nobody looks on."""
    print(line, flush=True)


def compare(
    checkpoint: Path,
    seeds: Sequence[int] = DEFAULT_SEEDS,
    folder: Path | None = None,
    *,
    threads: int = 1,
    max_ticks: int = MAX_TICKS,
    say: Callable[[str], None] = print_line,
) -> int:
    """Run all ways, say the table, write ``folder``/compare.json.

    Args:
        checkpoint: folder of the weights.
        seeds: one episode of each way for each seed; the ways take turns.
        folder: of the run; None writes nothing.
        threads: CPU threads of the model.
        max_ticks: control ticks after which an episode is given up.
        say: told one line or table at a time.

    Returns:
        0, or 1 if the ways were not seen to write the same texts.

    Raises:
        OxygenError: if there is no GL, or the checkpoint cannot be used.
    """
    torch.set_num_threads(threads)
    parts, clock = _load(checkpoint)
    engine = oxygen_engine(parts)
    costs = engine.warm_up()
    robot = LiveRobot(engine.spec.experts[0].horizon, clock, max_ticks)
    try:
        cycle_ns = _cycle_beside_robot(robot, parts)
        robot.execute = window_ticks(cycle_ns, robot.execute)
        ways, setting = make_ways(parts, engine, robot.execute), _Setting(robot.execute, max_ticks, clock)
        say(setting.in_words(costs, cycle_ns))
        figures, sample = _run_all(ways, robot, seeds, setting, say)
    finally:
        robot.close()
    summaries = {name: figures[name].summary() for name in ways}
    unequal, num_compared = check_texts(sample, ways, clock)
    sentences = gains(summaries) if num_compared and not unequal else []
    compared = f"greedy texts written again by the other ways: {num_compared}, that differ: {len(unequal)}"
    for line in (table(summaries), compared, *(sentences or [*unequal_words(unequal), NO_RATIO])):
        say(line)
    if folder is not None:
        texts = {"texts_compared": num_compared, "texts_that_differ": len(unequal), "in_words": sentences}
        about = {"checkpoint": checkpoint_facts(checkpoint), "machine": machine_facts(threads)}
        content = {"ways": summaries, **texts, **setting.facts(seeds), "costs": costs.in_words(), **about}
        say(f"written: {_write(folder, content)}")
    return PASSED if sentences else UNEQUAL


def _load(checkpoint: Path) -> tuple[Parts, Clock]:
    policy, clock = ProductPolicy(checkpoint, decode_steps=1), SteadyClock()
    return Parts(policy.runner, policy.tokenizer, policy.processor, clock), clock


def _write(folder: Path, content: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def _cycle_beside_robot(robot: LiveRobot, parts: Parts) -> int:
    """Median time of a cycle without text, in nanoseconds, while the world lives in the same process."""
    way, clock, times = SerialWay("trial", parts, shares_prefix=True), parts.clock, []
    robot.begin(TRIAL_SEED)
    for _ in range(NUM_TRIALS):
        begin_ns = clock.now_ns()
        way.cycle(begin_ns, robot.take, robot.give, [])
        times.append(clock.now_ns() - begin_ns)
    robot.stop()
    way.forget()
    return round(median(times))


def window_ticks(cycle_ns: int, horizon: int) -> int:
    """Actions per window: the fastest control that leaves this machine room after prefill and actions."""
    return min(horizon, max(1, math.ceil(ROOM * cycle_ns / TICK_NS)))


def make_ways(parts: Parts, engine: Engine, execute: int) -> dict[str, Way]:
    """The three ways by name; ``engine`` is that of oxygen."""
    window_ns = execute * TICK_NS
    reserve_ns = round(RESERVE * window_ns)
    made: dict[str, Way] = {
        "isolated": SerialWay("isolated", parts, shares_prefix=False),
        "shared": SerialWay("shared", parts, shares_prefix=True),
        OXYGEN: OxygenWay(parts, engine, window_ns=window_ns, reserve_ns=reserve_ns, execute=execute),
    }
    return {name: made[name] for name in WAYS}


def _run_all(
    ways: dict[str, Way],
    robot: LiveRobot,
    seeds: Sequence[int],
    setting: _Setting,
    say: Callable[[str], None],
) -> tuple[dict[str, Figures], Sample]:
    """All episodes; the ways take turns, so that a machine that changes its speed hits all of them."""
    figures, sample = {name: Figures() for name in ways}, Sample()
    for seed in seeds:
        for name, way in ways.items():
            kept = sample if name == OXYGEN else None
            _run_episode(way, robot, seed, setting, figures[name], kept)
            episode = figures[name].episodes[-1]
            outcome = "done" if episode.is_success else "not done"
            say(f"seed {seed} {name}: {outcome} after {episode.seconds:.1f} s")
    return figures, sample


def _run_episode(
    way: Way, robot: LiveRobot, seed: int, setting: _Setting, figures: Figures, sample: Sample | None
) -> None:
    clock, window_ns = setting.clock, setting.window_ns
    robot.begin(seed)
    due_ns = clock.now_ns()
    demand = Demand(seed, due_ns)
    while not robot.is_over:
        requests = demand.due(clock.now_ns(), figures)
        ended = _run_cycle(way, robot, due_ns, requests, figures, sample, clock)
        for written in ended:
            _, asked_ns = demand.alive.pop(written.request_id)
            if written.reason in COMPLETE:
                figures.text_latencies_ms.append((written.end_ns - asked_ns) / 1e6)
        now_ns = clock.now_ns()
        # As the product's timer: after a cycle that overran the next runs at once, due at the newest point.
        gone = max(1, (now_ns - due_ns) // window_ns)
        figures.windows += gone
        figures.on_time += now_ns <= due_ns + window_ns
        due_ns += gone * window_ns
        clock.sleep_until_ns(due_ns)
    robot.join(STOPS_WITHIN_S)
    way.forget()
    figures.episodes.append(robot.episode)


def _run_cycle(
    way: Way,
    robot: LiveRobot,
    due_ns: int,
    requests: list[TextRequest],
    figures: Figures,
    sample: Sample | None,
    clock: Clock,
) -> list[Written]:
    seen: list[Observation] = []

    def observe() -> Observation:
        seen.append(robot.take())
        return seen[0]

    def give(actions: FloatArray) -> None:
        robot.give(actions)
        figures.chunks += 1
        figures.action_latencies_ms.append((clock.now_ns() - due_ns) / 1e6)

    ended = way.cycle(due_ns, observe, give, requests)
    if sample is not None:
        sample.requests |= {request.request_id: request for request in requests}
        if requests:
            sample.seen[seen[0].observation_id] = seen[0]
        sample.written += [w for w in ended if w.observation_id in sample.seen and w.reason in COMPLETE]
    return ended


def check_texts(sample: Sample, ways: dict[str, Way], clock: Clock) -> tuple[list[tuple[str, str, str]], int]:
    """Let the other ways write what oxygen wrote, from the same observations.

    Returns:
        (way, its text, oxygen's) of those that differ, and how many were compared.
    """
    unequal, num_compared = [], 0
    for ours in sample.chosen():
        for name in ("isolated", "shared"):
            observation, request = sample.seen[ours.observation_id], sample.requests[ours.request_id]
            (theirs,) = ways[name].cycle(
                clock.now_ns(), functools.partial(_same, observation), lambda actions: None, [request]
            )
            num_compared += 1
            if theirs.text != ours.text:
                unequal.append((name, theirs.text, ours.text))
            ways[name].forget()
    return unequal, num_compared


def _same(observation: Observation) -> Observation:
    return observation
