"""Calls a function at a fixed rate: on a thread with absolute deadlines, or by /clock in simulated time.

Why not a timer in both cases: docs/decisions/0004-player-ticks.md.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.timer import Timer

from oxygen_ros.ros.managed_node import ManagedNode

ENDS_WITHIN_S = 1.0


class Ticker:
    """Deadlines do not drift. After a missed one the next comes a full period later: there is no burst."""

    def __init__(self, node: ManagedNode, period_ns: int, tick: Callable[[], None]) -> None:
        """Begin to tick. What ``tick`` raises goes to ``node.fail``, and nothing ticks any more."""
        self._node = node
        self._period_ns = period_ns
        self._tick = tick
        self._ended = threading.Event()
        self._timer: Timer | None = None
        self._thread: threading.Thread | None = None
        if node.get_parameter("use_sim_time").value:
            group = MutuallyExclusiveCallbackGroup()
            self._timer = node.create_timer(period_ns / 1e9, self._guarded, callback_group=group)
        else:
            self._thread = threading.Thread(target=self._run, name="control", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Tick no more. Not from within ``tick``."""
        self._ended.set()
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
        if self._thread is not None:
            self._thread.join(ENDS_WITHIN_S)

    def _run(self) -> None:
        due_ns = self._node.steady.now_ns()
        while not self._ended.is_set():
            self._guarded()
            now_ns = self._node.steady.now_ns()
            due_ns = (
                due_ns + self._period_ns if due_ns + self._period_ns > now_ns else now_ns + self._period_ns
            )
            self._ended.wait((due_ns - now_ns) / 1e9)

    def _guarded(self) -> None:
        if self._ended.is_set():
            return
        # The thread's boundary: a fault of ours ends the node's work through error processing.
        try:
            self._tick()
        except Exception as error:
            self._ended.set()
            reason = f"tick: {type(error).__name__}: {error}"
            self._node.in_executor(lambda: self._node.fail(reason))
