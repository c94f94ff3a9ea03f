"""What a run needs beside the nodes: a context of ROS, spun by a thread, and the programs under test."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import rclpy.utilities
from rclpy.executors import ExternalShutdownException, ShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from oxygen_ros.clock import SteadyClock
from oxygen_ros.config import OxygenConfig, load_config
from oxygen_ros.ros.endurance.program import Program
from oxygen_ros.ros.parameters import config_dirs

CLOCK = SteadyClock()
LOOK_EVERY_NS = 20_000_000


class Stage:
    """Programs and helper nodes in one namespace. ``until`` is how time passes."""

    def __init__(self, overrides: Mapping[str, object], preset: str, namespace: str) -> None:
        """Start ROS; nothing else runs yet. ``overrides`` are the parameters of brain and player."""
        self.namespace = f"/{namespace}_{os.getpid()}"
        self.folder = Path(tempfile.mkdtemp(prefix=f"{namespace}_"))
        self.parameters = {"preset": preset, "device": "cpu", **overrides}
        self.config: OxygenConfig = load_config(
            preset=preset, device="cpu", overrides=dict(overrides), config_dirs=config_dirs()
        ).config
        self.programs: dict[str, Program] = {}
        os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        # Alone in a domain: whoever comes and goes beside the run costs all nodes time and memory.
        os.environ.setdefault("ROS_DOMAIN_ID", str(10 + os.getpid() % 90))
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        # An end from outside runs through ``close``: no program is left behind.
        self._on_term = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        self._nodes: list[Node] = []
        self._executor = SingleThreadedExecutor()
        self._thread = threading.Thread(target=self._spin, daemon=True)

    def add(self, node: Any) -> Any:
        """Spin ``node`` from ``spin`` on."""
        self._nodes.append(node)
        self._executor.add_node(node)
        return node

    def spin(self) -> None:
        """Serve the helper nodes in a thread of their own."""
        self._thread.start()

    def run(self, name: str, parameters: Mapping[str, object] | None = None) -> Program:
        """Start a node as a process, with the parameters of brain and player unless others are given."""
        given = self.parameters if parameters is None else parameters
        program = self.programs[name] = Program(name, self.namespace, given, self.folder)
        return program

    def until(self, condition: Callable[[], object], what: str, limit_s: float) -> None:
        """Wait for ``condition``.

        Raises:
            TimeoutError: if it does not come true in time, or a program has ended.
        """
        until_ns = CLOCK.now_ns() + round(limit_s * 1e9)
        while not condition():
            now_ns = CLOCK.now_ns()
            fallen = [name for name, program in self.programs.items() if not program.is_alive]
            if now_ns > until_ns or fallen:
                ends = [f"{name} ended with {self.programs[name].process.returncode}" for name in fallen]
                why = ", ".join(ends) or f"not within {limit_s:g} s"
                raise TimeoutError(f"{what}: {why}\n{self._last_words(fallen)}")
            CLOCK.sleep_until_ns(now_ns + LOOK_EVERY_NS)

    def wait(self, seconds: float) -> None:
        """Let time pass; a program that ends meanwhile is an error."""
        until_ns = CLOCK.now_ns() + round(seconds * 1e9)
        self.until(lambda: CLOCK.now_ns() >= until_ns, "the run", seconds + 60.0)

    def end_programs(self, names: Sequence[str]) -> dict[str, int | None]:
        """End programs one after the other; exit codes by name."""
        return {name: self.programs.pop(name).end() for name in names if name in self.programs}

    def close(self) -> None:
        """End everything and remove the files."""
        for program in self.programs.values():
            program.kill()
        self._executor.shutdown(timeout_sec=1.0)
        self._thread.join(2.0)
        for node in self._nodes:
            node.destroy_node()
        rclpy.utilities.try_shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)
        signal.signal(signal.SIGTERM, self._on_term)

    def _spin(self) -> None:
        try:
            self._executor.spin()
        except (ShutdownException, ExternalShutdownException):
            return

    def _last_words(self, names: Sequence[str]) -> str:
        texts = [self.programs[name].log() for name in names or self.programs]
        return "\n".join("\n".join(text.strip().splitlines()[-8:]) for text in texts)
