"""What says one sentence: a command in a process of its own, or the log. Nothing here waits."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from typing import Protocol

from oxygen_ros.clock import Clock

DEFAULT_COMMAND = ("espeak-ng", "--stdin")
TEXT = "{text}"
MAX_BYTES = 16_000
"""Of one sentence: a new pipe takes that much at once, so that writing never waits."""
TERM_TO_KILL_NS = 300_000_000


class Voice(Protocol):
    """Says one sentence at a time."""

    def begin(self, text: str) -> None:
        """Begin to say ``text``. Nothing may be under way."""
        ...

    def is_busy(self) -> bool:
        """True until the sentence has been said, has failed, or is silenced."""
        ...

    def silence(self) -> None:
        """End what is under way; ``is_busy`` tells when it has ended."""
        ...

    @property
    def failure(self) -> str:
        """Why the last sentence was not said; empty if it was, or was silenced."""
        ...


class CommandVoice:
    """Runs a command per sentence: no shell, its own process group, ended as a whole."""

    def __init__(self, command: Sequence[str], clock: Clock) -> None:
        """Nothing is run yet. ``{text}`` in an argument stands for the sentence; else it goes to stdin."""
        self.failure = ""
        self._command = tuple(command)
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the voice lives
        self._kill_at_ns: int | None = None

    def begin(self, text: str) -> None:
        """Start the command."""
        self.failure = ""
        self._kill_at_ns = None
        spoken = text.encode("utf-8", "replace")[:MAX_BYTES].decode("utf-8", "ignore")
        # A leading space: a sentence that begins with a dash is no option.
        argument = f" {spoken}" if spoken.startswith("-") else spoken
        words = [word.replace(TEXT, argument) for word in self._command]
        by_stdin = words == list(self._command)
        self._errors.seek(0)
        self._errors.truncate()
        try:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE if by_stdin else subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                start_new_session=True,
            )
        except OSError as error:
            self.failure = f"{self._command[0]}: {error.strerror or error}"
            return
        if by_stdin:
            self._write(spoken.encode())

    def is_busy(self) -> bool:
        """Look whether the command has ended; kill it if it was silenced and goes on."""
        if self._process is None:
            return False
        if self._kill_at_ns is not None and self._has_ended():
            self._signal(signal.SIGKILL)  # what it has started and left behind
        code = self._process.poll()
        if code is None:
            if self._kill_at_ns is not None and self._clock.now_ns() >= self._kill_at_ns:
                self._signal(signal.SIGKILL)
            return True
        if code != 0 and self._kill_at_ns is None:
            self.failure = f"{self._command[0]} ended with code {code}: {self._last_words()}"
        self._process = None
        return False

    def silence(self) -> None:
        """Ask the command and all it has started to end."""
        if self._process is not None and self._kill_at_ns is None:
            self._kill_at_ns = self._clock.now_ns() + TERM_TO_KILL_NS
            self._signal(signal.SIGTERM)

    def close(self) -> None:
        """End at once what is under way."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
        self._errors.close()

    def _write(self, encoded: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(encoded + b"\n")
            self._process.stdin.close()
        except BrokenPipeError:  # it has ended already; its exit code says how
            self._process.stdin = None

    def _has_ended(self) -> bool:
        """Whether the command has ended. Its number is not given to another process until ``poll``."""
        assert self._process is not None
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return

    def _last_words(self) -> str:
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 4096))
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "(nothing on stderr)"


class PrintedVoice:
    """Hands sentences to a logger, where nothing speaks."""

    failure = ""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def begin(self, text: str) -> None:
        """Log ``text``."""
        self._say(f"would say: {text}")

    def is_busy(self) -> bool:
        """Never."""
        return False

    def silence(self) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """Nothing is held."""


def make_voice(
    command: Sequence[str], clock: Clock, say: Callable[[str], None], warn: Callable[[str], None]
) -> CommandVoice | PrintedVoice:
    """The voice for a ``command``; without one espeak-ng, or the log and a warning where that is missing."""
    if command:
        return CommandVoice(command, clock)
    if shutil.which(DEFAULT_COMMAND[0]):
        return CommandVoice(DEFAULT_COMMAND, clock)
    warn(f"{DEFAULT_COMMAND[0]} is not installed and no command is given: sentences are only printed")
    return PrintedVoice(say)
