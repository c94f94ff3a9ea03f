"""The processes of the demonstration: command lines, logs, an end. No ROS in here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from oxygen_ros.clock import SteadyClock
from oxygen_ros.config import default_config_dirs

NAMESPACE = "oxygen_demo"
END_WITHIN_NS = 3_000_000_000
SPOKEN = "oxygen_node/text/ask/sentence"
CLOCK = SteadyClock()


def node_command(name: str, parameters: Mapping[str, object], *files: Path) -> list[str]:
    """Command line of one node; values as YAML."""
    words = [word for file in files for word in ("--params-file", str(file))]
    words += [word for key, value in parameters.items() for word in ("-p", f"{key}:={_yaml(value)}")]
    return [
        *(sys.executable, "-m", f"oxygen_ros.ros.{name}", "--ros-args", "-r", f"__ns:=/{NAMESPACE}"),
        *words,
    ]


def _yaml(value: object) -> str:
    return json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)


def stand_in_commands(preset: str, folder: Path) -> dict[str, list[str]]:
    """The nodes with the fake runner, on any robot."""
    given = {"preset": preset, "device": "cpu", "runner.kind": "fake", "enable_control": True}
    return {
        "oxygen_node": node_command("oxygen_node", given),
        "action_player": node_command("action_player", given),
        **_consumers(folder),
    }


def tabletop_commands(
    checkpoint: Path, folder: Path, *, task: str, seed: int, rate_hz: float, show_hz: float
) -> dict[str, list[str]]:
    """The tabletop and the nodes that drive it with the weights of ``checkpoint``."""
    params = params_file()
    world: dict[str, object] = {"seed": seed, "control_hz": rate_hz, "show_hz": show_hz}
    if task:
        world["task"] = task
    player = {"cycle.action_rate_hz": rate_hz, "enable_control": True}
    brain = {"model.checkpoint": checkpoint, **player}
    return {
        "tabletop_node": node_command("tabletop_node", world),
        "oxygen_node": node_command("oxygen_node", brain, params),
        "action_player": node_command("action_player", player, params),
        **_consumers(folder, text_sentence=SPOKEN),
    }


def _consumers(folder: Path, **speech: object) -> dict[str, list[str]]:
    return {
        "speech_node": node_command("speech_node", speech),
        "memory_node": node_command("memory_node", {"path": folder.absolute() / "memory.sqlite3"}),
    }


def params_file() -> Path:
    """The parameters of the tabletop.

    Raises:
        FileNotFoundError: if the package is not complete.
    """
    paths = [folder / "tabletop.yaml" for folder in default_config_dirs()]
    found = next((path for path in paths if path.is_file()), None)
    if found is None:
        raise FileNotFoundError(f"tabletop.yaml is in none of: {', '.join(map(str, paths))}")
    return found


def find_checkpoint() -> Path | None:
    """The checkpoint that comes with the package: beside ``config``, in a checkout and installed."""
    paths = [folder.parent / "checkpoints" / "tabletop" for folder in default_config_dirs()]
    return next((path for path in paths if (path / "config.json").is_file()), None)


class Nodes:
    """The processes. Their logs go to files; what they said is shown if one ends too early."""

    def __init__(self, commands: Mapping[str, Sequence[str]], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._logs = {name: folder / f"{name}.log" for name in commands}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        for name, command in commands.items():
            with self._logs[name].open("w") as log:
                self._processes[name] = subprocess.Popen(
                    command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
                )

    def fallen(self) -> str:
        """Name and last words of a node that has ended; empty while all run."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                return "\n".join((f"{name} ended with code {process.returncode}:", *self._last_words(name)))
        return ""

    def last_words(self) -> str:
        """What each node said last."""
        return "\n".join(f"{name}: {line}" for name in self._logs for line in self._last_words(name)[-1:])

    def end(self) -> dict[str, int | None]:
        """Ask all to end; exit codes by name, None for one that had to be killed."""
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

    def _last_words(self, name: str) -> list[str]:
        return self._logs[name].read_text(errors="replace").strip().splitlines()[-8:]
