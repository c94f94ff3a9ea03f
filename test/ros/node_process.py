"""One of our nodes as a process of its own, as `ros2 run` would start it, and what it printed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from oxygen_ros.clock import SteadyClock

CLOCK = SteadyClock()
END_WITHIN_S = 3.0


def patience() -> float:
    """How much longer things may take here: 1 on a machine with a free CPU, more where several share one."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def may_take_s(seconds: float) -> float:
    """``seconds`` on a free machine, as seconds on this one."""
    return seconds * patience()


class NodeProcess:
    """Start a node with parameters; end it; read its output."""

    def __init__(self, name: str, namespace: str, parameters: dict[str, Any], *words: str) -> None:
        self.name = name
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        params = folder / "params.yaml"
        params.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}))
        self._log = folder / "log.txt"
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", f"oxygen_ros.ros.{name}", "--ros-args"),
                    *("-r", f"__ns:={namespace}", "--params-file", str(params), *words),
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def maps(self) -> str:
        """Libraries it has loaded: tells how far its start has come."""
        return Path(f"/proc/{self.process.pid}/maps").read_text()

    def end(self, number: int = signal.SIGINT, limit_s: float = 120.0) -> tuple[int, float]:
        """Send a signal; exit code and seconds until the end."""
        begin_ns = CLOCK.now_ns()
        self.process.send_signal(number)
        code = self.process.wait(limit_s)
        return code, (CLOCK.now_ns() - begin_ns) / 1e9

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._folder.cleanup()
