"""Finds stop strings in streamed text, also across the seams of its pieces."""

from __future__ import annotations


class StopStringFilter:
    """Lets text through up to the first stop string; holds back what may become the start of one."""

    def __init__(self, stop_strings: tuple[str, ...]) -> None:
        self._stops = tuple(stop for stop in stop_strings if stop)
        self._held = ""
        self.is_stopped = False

    def add(self, text: str) -> str:
        """The part of the text so far that can be shown now. Empty after a stop string."""
        if self.is_stopped:
            return ""
        self._held += text
        # The one that is complete first counts, so that the cuts between pieces do not matter.
        found = [(at + len(stop), at) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if found:
            self.is_stopped = True
            shown, self._held = self._held[: min(found)[1]], ""
            return shown
        keep = self._num_held_back()
        shown, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return shown

    def flush(self) -> str:
        """What was held back, at the end of a text."""
        shown, self._held = self._held, ""
        return shown

    def _num_held_back(self) -> int:
        longest = max((len(stop) for stop in self._stops), default=1) - 1
        for length in range(min(longest, len(self._held)), 0, -1):
            if any(stop.startswith(self._held[-length:]) for stop in self._stops):
                return length
        return 0
