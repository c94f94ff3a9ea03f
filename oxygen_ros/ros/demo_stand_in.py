"""The demonstration without a trained model: any robot, made-up actions, scripted texts."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

from oxygen_ros.ros.demo_nodes import CLOCK, NAMESPACE, Nodes, stand_in_commands
from oxygen_ros.ros.demo_stage import DemoStage

STAND_IN = "The model is a stand-in: smooth made-up actions and scripted texts at set costs, nothing learned."


def run_stand_in(preset: str, seconds: float | None, is_plain: bool, end: threading.Event) -> int:
    """Run for so long, or until ``end``. 0 if everything arrived and all nodes ended well.

    Raises:
        ConfigError: an unknown preset.
    """
    stage = DemoStage(preset, NAMESPACE, is_plain)
    stage.screen.say(STAND_IN, "warning")
    begin_ns = CLOCK.now_ns()
    with tempfile.TemporaryDirectory(prefix="oxygen_demo_") as name:
        folder = Path(name)
        nodes = Nodes(stand_in_commands(preset, folder), folder)
        fallen = ""
        while not end.wait(0.2) and not (fallen := nodes.fallen()):
            if seconds is not None and CLOCK.now_ns() - begin_ns > seconds * 1e9:
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
