"""Work that takes long, done beside the executor: a coroutine callback awaits it while others are served."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from typing import Any


class Loading:
    """One piece of work in a thread of its own. ``await`` it in a callback of the executor.

    A cancelled one counts as done at once; its thread runs to its end, and what it gives is thrown away.
    """

    def __init__(self, work: Callable[[], Any], wake: Callable[[], object]) -> None:
        """Begin. ``wake`` is called, from that thread, when there is something to see."""
        self._work = work
        self._wake = wake
        self._done = threading.Event()
        self.is_cancelled = False
        self.result: Any = None
        self.error: Exception | None = None
        self.thread = threading.Thread(target=self._run, name="loading", daemon=True)
        self.thread.start()

    def cancel(self) -> None:
        """Stop waiting for it."""
        self.is_cancelled = True
        self._done.set()
        self._wake()

    def wait(self) -> None:
        """Block until it is done or cancelled: for callers that are not coroutines."""
        self._done.wait()

    def _run(self) -> None:
        # Handed to whoever waits; the thread itself has nobody to raise to.
        try:
            self.result = self._work()
        except Exception as error:
            self.error = error
        self._done.set()
        self._wake()

    def __await__(self) -> Generator[None, None, None]:
        while not self._done.is_set():
            yield
