"""Starts the installed programs with the arguments launch gives them, and ends them. No test by itself.

`drive_nodes.py FOLDER` takes the folder of the programs (`lib/oxygen_ros`) and exits with 0 when both nodes
became active by themselves, sent messages, and ended well on Ctrl-C.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import rclpy
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.srv import GetState

from oxygen_ros.msg import CycleReport
from oxygen_ros.tools.launch_arguments import ARGUMENTS, parameters_from

LIMIT_S = 60.0
END_LIMIT_S = 10
ANSWER_S = 3.0
"""An answer that a node sends before it has discovered its client's reader is lost: it is asked again."""
NAMESPACE = "left"
PROGRAMS = ("oxygen_node", "action_player")
USER_FILE = {"runner": {"kind": "fake"}, "instruction": "put the cube in the bowl"}


def start(program: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Start a program as `ros2 launch oxygen_ros oxygen.launch.py preset:=libero ...` does."""
    user_file = folder / "robot.yaml"
    user_file.write_text(yaml.safe_dump(USER_FILE))
    values = {argument.name: argument.default for argument in ARGUMENTS}
    values |= {"preset": "libero", "device": "cpu", "params_file": str(user_file), "namespace": NAMESPACE}
    launch_file = folder / f"launch_params_{program.name}"
    section = {"ros__parameters": parameters_from(values)}
    launch_file.write_text(yaml.safe_dump({f"/{NAMESPACE}/{program.name}": section}))
    remaps = ["-r", f"__node:={program.name}", "-r", f"__ns:=/{NAMESPACE}"]
    return subprocess.Popen(
        [program, "--ros-args", *remaps, "--params-file", launch_file], start_new_session=True
    )


def watch(limit_s: float) -> list[str]:
    """Return what did not happen: a state other than active, or no message."""
    node = rclpy.create_node("drive_nodes")
    states: dict[str, str] = {}
    reports: list[CycleReport] = []
    healthy: set[str] = set()

    def on_health(message: DiagnosticArray) -> None:
        healthy.update(name for name in PROGRAMS for line in message.status if name in line.name)

    node.create_subscription(CycleReport, f"/{NAMESPACE}/oxygen_node/cycle_report", reports.append, 10)
    node.create_subscription(DiagnosticArray, "/diagnostics", on_health, 10)
    clients = {name: node.create_client(GetState, f"/{NAMESPACE}/{name}/get_state") for name in PROGRAMS}
    asked: dict[str, tuple[rclpy.Future, float]] = {}
    give_up = time.monotonic() + limit_s
    while time.monotonic() < give_up:
        rclpy.spin_once(node, timeout_sec=0.1)
        for name, client in clients.items():
            answer, asked_s = asked.get(name, (None, -ANSWER_S))
            if answer is not None and answer.done():
                states[name] = answer.result().current_state.label
                del asked[name]
            elif time.monotonic() - asked_s > ANSWER_S and client.service_is_ready():
                asked[name] = (client.call_async(GetState.Request()), time.monotonic())
        if reports and len(healthy) == 2 and all(states.get(name) == "active" for name in PROGRAMS):
            break
    faults = [f"{name} is {states.get(name, 'silent')}" for name in PROGRAMS if states.get(name) != "active"]
    faults += [f"{name} sent no diagnostics" for name in PROGRAMS if name not in healthy]
    return faults if reports else [*faults, "oxygen_node sent no cycle report"]


def main() -> int:
    """Start, watch and end both nodes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the programs are")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds to wait for both nodes")
    options = parser.parse_args()
    programs = [options.folder / name for name in PROGRAMS]
    rclpy.init()
    with tempfile.TemporaryDirectory() as folder:
        running = [start(program, Path(folder)) for program in programs]
        try:
            faults = watch(options.limit)
            for process in running:
                process.send_signal(signal.SIGINT)
            codes = [process.wait(timeout=END_LIMIT_S) for process in running]
        finally:
            for process in running:
                process.kill()
    faults += [
        f"{program.name} ended with {code}" for program, code in zip(programs, codes, strict=True) if code
    ]
    print("; ".join(faults) or "both nodes ran", flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
