"""The thread that runs control cycles when it is woken, and errands between two of them. Knows no ROS."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class ControlThread:
    """Runs one thing at a time. Wake-ups that come while a cycle runs start one more cycle, not a burst."""

    def __init__(
        self,
        run: Callable[[int], object],
        fail: Callable[[Exception], None],
        former: ControlThread | None = None,
    ) -> None:
        """Make a thread that does not run yet.

        Args:
            run: one cycle; gets the steady time at which it was due.
            fail: told what came out of a cycle or an errand, from this thread.
            former: nothing runs here before that one has ended: both would work on the same engine.
        """
        self._run = run
        self._fail = fail
        self._former = former
        self._changed = threading.Condition()
        self._errands: deque[Callable[[], object]] = deque()
        self._due_ns: int | None = None
        self._is_ending = False
        self._thread = threading.Thread(target=self._work, name="control", daemon=True)

    def start(self) -> None:
        """Begin to wait for wake-ups."""
        self._thread.start()

    def wake(self, due_ns: int) -> None:
        """Run a cycle that is due now; if one runs, right after it. Any thread."""
        with self._changed:
            self._due_ns = due_ns
            self._changed.notify()

    def do(self, errand: Callable[[], object]) -> None:
        """Run ``errand`` before the next cycle. Any thread. Nothing happens once the thread ends."""
        with self._changed:
            self._errands.append(errand)
            self._changed.notify()

    def stop(self, last: Callable[[], object], timeout_s: float) -> bool:
        """Run ``last`` after what runs now, then end. Any other thread; may be called again.

        Returns:
            False if it has not ended within ``timeout_s``; it will when it can.
        """
        with self._changed:
            if not self._is_ending:
                self._is_ending = True
                self._errands.append(last)
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _next(self) -> Callable[[], object] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._errands or self._due_ns is not None or self._is_ending)
            if self._errands:
                return self._errands.popleft()
            if self._is_ending or self._due_ns is None:
                return None
            due_ns, self._due_ns = self._due_ns, None
            return lambda: self._run(due_ns)

    def _work(self) -> None:
        if self._former is not None:
            self._former._thread.join()
            self._former = None
        while (job := self._next()) is not None:
            # The thread's own boundary: whatever comes out is told to the node, which holds and ends it.
            try:
                job()
            except Exception as error:
                self._fail(error)
