"""The demonstration: a simulated robot, both nodes as processes of their own, a speaker and a memory.

Prints one line per control cycle: action sent, text grown, slack left. The model is a stand-in, and it says
so. `scripts/demo` starts it.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from oxygen_ros.clock import SteadyClock
from oxygen_ros.config import default_config_dirs
from oxygen_ros.errors import OxygenError

NAMESPACE = "oxygen_demo"
STAND_IN = "The model is a stand-in: smooth made-up actions and scripted texts at set costs, nothing learned."
NODES = ("oxygen_node", "action_player")
END_WITHIN_NS = 3_000_000_000
CLOCK = SteadyClock()


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """Flags of the demonstration."""
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long it runs (default: 20)")
    parser.add_argument("--forever", action="store_true", help="run until Ctrl-C")
    parser.add_argument("--plain", action="store_true", help="no colours, for logs")
    parser.add_argument("--preset", default="humanoid", help="robot preset (default: humanoid)")
    return parser.parse_args(arguments)


def set_transport() -> None:
    """Stay on this machine, and send pictures through shared memory, unless the user has chosen otherwise."""
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    profiles = [folder / "fastdds_shm.xml" for folder in default_config_dirs()]
    if profile := next((path for path in profiles if path.is_file()), None):
        os.environ.setdefault("FASTRTPS_DEFAULT_PROFILES_FILE", str(profile))


def node_command(name: str, preset: str) -> list[str]:
    """Command line of one of the two nodes."""
    given = {"preset": preset, "device": "cpu", "runner.kind": "fake", "enable_control": "true"}
    parameters = [word for key, value in given.items() for word in ("-p", f"{key}:={value}")]
    return [
        *(sys.executable, "-m", f"oxygen_ros.ros.{name}", "--ros-args", "-r", f"__ns:=/{NAMESPACE}"),
        *parameters,
    ]


class Nodes:
    """The two processes. Their logs go to files; what they said is shown if one ends too early."""

    def __init__(self, preset: str, folder: Path) -> None:
        self._logs = {name: folder / f"{name}.log" for name in NODES}
        self._processes = {}
        for name in NODES:
            with self._logs[name].open("w") as log:
                self._processes[name] = subprocess.Popen(
                    node_command(name, preset), stdout=log, stderr=subprocess.STDOUT, start_new_session=True
                )

    def fallen(self) -> str:
        """Name and last words of a node that has ended; empty while both run."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                words = self._logs[name].read_text(errors="replace").strip().splitlines()[-8:]
                return "\n".join((f"{name} ended with code {process.returncode}:", *words))
        return ""

    def end(self) -> dict[str, int | None]:
        """Ask both to end; exit codes by name, None for one that had to be killed."""
        for process in self._processes.values():
            process.terminate()
        until_ns = CLOCK.now_ns() + END_WITHIN_NS
        codes: dict[str, int | None] = {}
        for name, process in self._processes.items():
            try:
                codes[name] = process.wait(max(0.1, (until_ns - CLOCK.now_ns()) / 1e9))
            except subprocess.TimeoutExpired:
                process.kill()
                codes[name] = None
        return codes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration. 0 if everything arrived and both nodes ended well, 2 for a wrong preset."""
    options = options_of(sys.argv[1:] if arguments is None else arguments)
    end = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: end.set())
    set_transport()
    from oxygen_ros.ros.demo_stage import DemoStage

    try:
        stage = DemoStage(options.preset, NAMESPACE, options.plain)
    except OxygenError as error:
        print(error, file=sys.stderr)
        return 2
    stage.screen.say(STAND_IN, "warning")
    begin_ns = CLOCK.now_ns()
    with tempfile.TemporaryDirectory(prefix="oxygen_demo_") as folder:
        nodes = Nodes(options.preset, Path(folder))
        fallen = ""
        while not end.wait(0.2) and not (fallen := nodes.fallen()):
            if not options.forever and CLOCK.now_ns() - begin_ns > options.seconds * 1e9:
                break
        codes = nodes.end()
        stage.end()
    if fallen:
        stage.screen.say(fallen, "warning")
    exits = {f"{name} exit code": str(code) for name, code in codes.items()}
    stage.screen.table((CLOCK.now_ns() - begin_ns) / 1e9, exits)
    stage.screen.say(STAND_IN, "warning")
    is_good = not stage.screen.missing and not fallen and all(code == 0 for code in codes.values())
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
