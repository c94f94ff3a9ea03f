"""One of our nodes as a process of its own: its log, its memory, its end."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

END_WITHIN_S = 20.0
FAULTS = ("Traceback", "callback_error", "terminate called", "Fatal Python error")
"""What a log must not have: an exception that left a callback, or a crash."""


class Program:
    """Started when made. The log collects all lives; ``start`` begins the next one."""

    def __init__(self, name: str, namespace: str, parameters: Mapping[str, object], folder: Path) -> None:
        """Write the parameters to ``folder`` and start."""
        self.name = name
        self._params = folder / f"{name}.yaml"
        self._params.write_text(
            yaml.safe_dump({"/**": {"ros__parameters": dict(parameters)}}), encoding="utf-8"
        )
        self._log = folder / f"{name}.log"
        self._log.touch()
        self._namespace = namespace
        self.start()

    def start(self) -> None:
        """Begin a life."""
        words = (f"__ns:={self._namespace}", "--params-file", str(self._params))
        with self._log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"oxygen_ros.ros.{self.name}", "--ros-args", "-r", *words],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def is_alive(self) -> bool:
        """True while the process runs."""
        return self.process.poll() is None

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.wait()

    def end(self) -> int | None:
        """Ask it to end; its exit code, or None if it had to be killed."""
        if self.is_alive:
            self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def resident_bytes(self) -> int:
        """Resident memory; 0 when it has ended."""
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        except OSError:
            return 0
        sizes = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
        return 1024 * int(sizes[0]) if sizes else 0

    def log(self) -> str:
        """All that it has printed."""
        return self._log.read_text(errors="replace")

    def faults(self) -> list[str]:
        """Lines of the log that tell of an exception outside of its place."""
        return [line for line in self.log().splitlines() if any(word in line for word in FAULTS)]
