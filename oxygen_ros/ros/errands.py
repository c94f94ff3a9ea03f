"""Work that other threads want done on the executor's thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node


class Errands:
    """A queue with a bell. Ringing is safe while the node exists, whether or not an executor spins it."""

    def __init__(self, node: Node, group: CallbackGroup) -> None:
        self._waiting: deque[Callable[[], object]] = deque()
        self._bell = node.create_guard_condition(self._run, callback_group=group)

    def add(self, work: Callable[[], object]) -> None:
        """Have ``work`` done soon. Any thread."""
        self._waiting.append(work)
        self._bell.trigger()

    def _run(self) -> None:
        """One piece of work a ring: whatever comes out of it, the next one is done."""
        if not self._waiting:
            return
        work = self._waiting.popleft()
        if self._waiting:
            self._bell.trigger()
        work()
