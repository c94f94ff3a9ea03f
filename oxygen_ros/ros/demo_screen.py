"""What the demonstration prints: lines while it runs, a table at its end. No ROS."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TextIO

NEEDED = ("actions", "text", "sentence", "stream", "report", "diagnostics")
_COLOURS = {"speech": "\x1b[36m", "memory": "\x1b[35m", "warning": "\x1b[33m", "end": "\x1b[0m"}


@dataclass
class Screen:
    """Prints to one stream, in colour only on a terminal and not if ``is_plain``."""

    is_plain: bool = False
    out: TextIO = field(default_factory=lambda: sys.stdout)
    counts: Counter[str] = field(default_factory=Counter)

    def say(self, text: str, kind: str = "") -> None:
        """One line; ``kind`` chooses its colour."""
        is_coloured = not self.is_plain and self.out.isatty() and kind in _COLOURS
        self.out.write(f"{_COLOURS[kind]}{text}{_COLOURS['end']}\n" if is_coloured else f"{text}\n")
        self.out.flush()

    def count(self, what: str) -> None:
        """One more message of a kind."""
        self.counts[what] += 1

    def table(self, seconds: float, notes: dict[str, str]) -> None:
        """What arrived, how often, and what else there is to say."""
        self.say("")
        self.say(f"{'topic':<28} {'messages':>9} {'per second':>11}")
        for what, count in sorted(self.counts.items()):
            self.say(f"{what:<28} {count:>9} {count / max(seconds, 1e-3):>11.1f}")
        for key, value in notes.items():
            self.say(f"{key:<28} {value:>21}")
        if missing := self.missing:
            self.say(f"Nothing arrived of: {', '.join(missing)}", "warning")
        else:
            self.say("Everything arrived: actions, text, sentences, stream, reports, diagnostics.")

    @property
    def missing(self) -> list[str]:
        """Needed kinds of which nothing came."""
        return [what for what in NEEDED if not self.counts[what]]
