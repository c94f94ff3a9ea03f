"""Puts a demonstration's view on a terminal: a panel that is drawn anew, or a line per event. No ROS."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TextIO

from oxygen_ros.ros.demo_view import EXACT, FALSE, INEXACT, DemoView

_COLOURS = {EXACT: "\x1b[32m", INEXACT: "\x1b[33m", FALSE: "\x1b[31m"}
_END, _CLEAR_LINE = "\x1b[0m", "\x1b[2K"
FIGURES_EVERY_NS = 5_000_000_000


def is_live(out: TextIO, is_plain: bool) -> bool:
    """True where a panel can be drawn: a terminal, and nobody has asked for plain lines."""
    return out.isatty() and not is_plain and not os.environ.get("NO_COLOR") and _is_capable()


def _is_capable() -> bool:
    return os.environ.get("TERM", "") not in ("", "dumb")


class DemoTerminal:
    """Shows a view. One thread."""

    def __init__(self, view: DemoView, *, is_plain: bool, out: TextIO | None = None) -> None:
        self._view = view
        self._out = out or sys.stdout
        self.is_live = is_live(self._out, is_plain)
        self._height = 0
        self._figures_ns = 0

    def draw(self, now_ns: int) -> None:
        """Show what is so now. Whoever changes the view waits meanwhile."""
        if self.is_live:
            self._draw_panel(now_ns)
            return
        while self._view.events:
            self._out.write(f"{self._view.events.popleft()}\n")
        if self._view.begin_ns and now_ns - max(self._figures_ns, self._view.begin_ns) > FIGURES_EVERY_NS:
            self._figures_ns = now_ns
            trouble = self._view.trouble(now_ns)
            words = "; ".join(filter(None, (self._view.figures(now_ns), trouble)))
            self._out.write(f"{self._view.seconds(now_ns):6.1f} s  {words}\n")
        self._out.flush()

    def say(self, text: str) -> None:
        """Lines for good, below what is drawn."""
        self._height = 0
        self._out.write(f"{text}\n")
        self._out.flush()

    def _draw_panel(self, now_ns: int) -> None:
        width = shutil.get_terminal_size().columns - 1
        lines = [self._coloured(line[:width]) for line in self._view.panel(now_ns)]
        up = f"\x1b[{self._height}A" if self._height else ""
        self._out.write(up + "".join(f"\r{_CLEAR_LINE}{line}\n" for line in lines))
        self._out.flush()
        self._height = len(lines)

    @staticmethod
    def _coloured(line: str) -> str:
        mark = line.strip()[:1]
        if mark not in _COLOURS:
            return line
        return line.replace(mark, f"{_COLOURS[mark]}{mark}{_END}", 1)
