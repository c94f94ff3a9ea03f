"""A progress bar with the time left, on one line of a terminal; now and then a line where there is none."""

from __future__ import annotations

from typing import TextIO

from oxygen_ros.clock import Clock

WIDTH = 30
EVERY_NS = 200_000_000
LINES_PER_RUN = 10


class ProgressBar:
    """Shows how much of a whole is done. One thread."""

    def __init__(self, stream: TextIO, clock: Clock, label: str) -> None:
        """Begin; ``clock`` is steady time."""
        self._stream = stream
        self._clock = clock
        self._label = label
        self._is_terminal = stream.isatty()
        self._begin_ns = clock.now_ns()
        self._shown_ns = 0
        self._num_lines = 0

    def show(self, share: float) -> None:
        """Show that ``share`` of the whole, 0 to 1, is done; not more often than anybody can read."""
        now_ns = self._clock.now_ns()
        share = min(1.0, max(0.0, share))
        if self._is_terminal:
            if now_ns - self._shown_ns < EVERY_NS and share < 1.0:
                return
            self._stream.write("\r" + self.line(share) + "\x1b[K")
        elif share * LINES_PER_RUN < self._num_lines + 1:
            return
        else:
            self._num_lines = int(share * LINES_PER_RUN)
            self._stream.write(self.line(share) + "\n")
        self._shown_ns = now_ns
        self._stream.flush()

    def line(self, share: float) -> str:
        """The bar in words and signs."""
        spent_s = (self._clock.now_ns() - self._begin_ns) / 1e9
        left = f"{spent_s * (1 - share) / share:.0f} s left" if share > 0.01 else "- s left"
        done = round(WIDTH * share)
        return f"{self._label} [{'#' * done}{'.' * (WIDTH - done)}] {share:4.0%} {spent_s:.0f} s, {left}"

    def end(self) -> None:
        """Leave the line."""
        if self._is_terminal:
            self._stream.write("\n")
            self._stream.flush()
