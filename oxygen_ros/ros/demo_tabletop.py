"""The demonstration itself: tabletop, brain with a checkpoint, player, speech, memory; then a run folder."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import rclpy.utilities
from rclpy.signals import SignalHandlerOptions

from oxygen_ros.clock import SteadyClock
from oxygen_ros.config import load_config
from oxygen_ros.ros.demo_nodes import NAMESPACE, Nodes, params_file, tabletop_commands
from oxygen_ros.ros.demo_observer import DemoObserver
from oxygen_ros.ros.demo_recorder import BAG, RunRecorder
from oxygen_ros.ros.demo_terminal import DemoTerminal
from oxygen_ros.ros.demo_view import DemoView, S
from oxygen_ros.ros.parameters import config_dirs
from oxygen_ros.sim.grammar import questions
from oxygen_ros.sim.judge import knows

START_WITHIN_S = 180.0
DRAW_EVERY_S = 0.2
POLL_EVERY_S = 0.03
SHOW_HZ = 10.0
SLOW_HZ = 10.0
"""Suggested where the CPU is too busy for the full rate."""


@dataclass(frozen=True)
class TabletopOptions:
    """What the user wants.

    Attributes:
        seconds: from the first action on; None until ``end`` is set.
        rate_hz: actions per second. Below 30 the simulated time runs slower.
        task: instruction of all episodes; empty for all six in turn.
        asked: questions, in turn; none for those of the grammar.
        is_headless: no panel and no show view.
        is_checked: the exit code says whether the robot did and said well.
    """

    checkpoint: Path
    folder: Path
    seconds: float | None
    task: str
    seed: int
    rate_hz: float
    asked: tuple[str, ...]
    is_headless: bool
    is_plain: bool
    is_checked: bool


class TabletopRun:
    """One run from start to run folder."""

    def __init__(self, options: TabletopOptions) -> None:
        """Make the run folder, the bag and the observer.

        Raises:
            OSError: if the folder cannot be made.
            OxygenError: if the package's own parameters cannot be read.
        """
        self._options = options
        self._steady = SteadyClock()
        config = load_config(
            params_file=params_file(),
            overrides={"cycle.action_rate_hz": options.rate_hz},
            config_dirs=config_dirs(),
        ).config
        driver = f"the weights in {options.checkpoint}"
        self._view = DemoView(driver, config.cycle.action_rate_hz, config.cycle.period_ns, options.seconds)
        self._terminal = DemoTerminal(self._view, is_plain=options.is_plain or options.is_headless)
        self._config = config
        self._recorder = RunRecorder(options.folder, checkpoint=str(options.checkpoint))
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        self._observer = DemoObserver(config, self._view, self._recorder, options.asked, namespace=NAMESPACE)
        self._trouble = self._fault = ""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="io", daemon=True)

    def run(self, end: threading.Event) -> int:
        """Run until the time is up, a node has ended or ``end`` is set. Returns the exit code."""
        options, terminal = self._options, self._terminal
        terminal.say(f"run folder: {options.folder}")
        for question in options.asked:
            if not knows(question):
                terminal.say(
                    f"The robot was not trained on {question!r}: it answers, and nobody judges it. "
                    f"It knows: {' '.join(questions())}"
                )
        self._thread.start()
        show_hz = 0.0 if options.is_headless else SHOW_HZ
        commands = tabletop_commands(
            options.checkpoint,
            options.folder,
            task=options.task,
            seed=options.seed,
            rate_hz=options.rate_hz,
            show_hz=show_hz,
        )
        nodes = Nodes(commands, options.folder / "logs")
        trouble = self._watch(nodes, end)
        end_ns = self._steady.now_ns()
        with self._observer.lock:
            self._view.is_ending = True
            self._trouble = self._view.trouble(end_ns)
        nodes.end()
        self._close(end_ns)
        if trouble:
            terminal.say(trouble)
        self._finish()
        return self._exit_code(bool(trouble))

    def _watch(self, nodes: Nodes, end: threading.Event) -> str:
        """Show the run until it ends; what went wrong."""
        limit_s, begin_ns = self._options.seconds, self._steady.now_ns()
        while not end.wait(DRAW_EVERY_S):
            now_ns = self._steady.now_ns()
            with self._observer.lock:
                self._terminal.draw(now_ns)
                seconds = self._view.seconds(now_ns)
            if fallen := self._fault or nodes.fallen():
                return fallen
            if not self._view.begin_ns and now_ns - begin_ns > START_WITHIN_S * S:
                return f"The robot did not move within {START_WITHIN_S:.0f} s.\n{nodes.last_words()}"
            if limit_s is not None and seconds >= limit_s:
                return ""
        return ""

    def _close(self, end_ns: int) -> None:
        """Stop listening, show how it was at its end, and finish the bag."""
        self._is_over.set()
        self._thread.join(1.0)
        self._terminal.draw(end_ns)
        self._recorder.close()
        self._observer.destroy_node()
        rclpy.utilities.try_shutdown()

    def _listen(self) -> None:
        # The thread's boundary: a disk that is full, or a fault of ours, ends the run.
        try:
            while not self._is_over.wait(POLL_EVERY_S):
                self._observer.poll()
            self._observer.poll()
        except Exception as error:
            self._fault = f"The observer has failed: {type(error).__name__}: {error}"

    def _finish(self) -> None:
        """Make the run folder readable for people, and say where it is."""
        view, folder, say = self._view, self._options.folder, self._terminal.say
        say(f"\n{view.num_successes} of {view.num_ended} episodes done; {view.truth()}.")
        files = [folder / BAG]
        try:
            from oxygen_ros.demo.finish import RunFacts, finish_run

            say("Writing timeline, summary and film ...")
            facts = RunFacts(
                driver=view.driver,
                checkpoint=self._options.checkpoint,
                threads=self._config.runner.num_threads,
                notes={
                    "seed": self._options.seed,
                    "task": self._options.task or "all six in turn",
                    "rate_hz": self._options.rate_hz,
                },
            )
            summary = finish_run(folder, facts)
            files += summary.files
            for sentence in summary.missing:
                say(f"missing: {sentence}")
        except ImportError as error:
            say(f"no summary: {error.name} is not installed (pip install 'oxygen_ros[bags,sim]')")
        for file in files:
            say(f"  {file}")

    def _exit_code(self, has_failed: bool) -> int:
        faults, is_checked, say = self._view.shortcomings(), self._options.is_checked, self._terminal.say
        if faults and is_checked and not has_failed:
            say(f"Not good enough: {'; '.join(faults)}.")
        if self._trouble and self._options.rate_hz > SLOW_HZ:
            say(f"{self._trouble}.\nnext: scripts/demo --rate {SLOW_HZ:g}")
        elif faults or has_failed:
            say(f"next: less {self._options.folder}/summary.md")
        else:
            say('next: scripts/demo --task "put the red cube on the plate" --say "What do you hold?"')
        return int(has_failed or bool(faults and is_checked))
