"""The time that inputs and actions are timed by: steady, or simulated where the node runs on /clock."""

from __future__ import annotations

from typing import cast

from rclpy.clock import ROSClock
from rclpy.node import Node

from oxygen_ros.clock import Clock


class NodeClock:
    """A Clock. With use_sim_time it follows /clock, so that a bag played slowly makes nothing stale.

    A simulated clock may jump back; the node forgets everything that is tied to the old time then.
    """

    def __init__(self, node: Node, steady: Clock) -> None:
        self._node = node
        self._steady = steady

    def now_ns(self) -> int:
        """Nanoseconds of steady or simulated time."""
        clock = cast(ROSClock, self._node.get_clock())
        return int(clock.now().nanoseconds) if clock.ros_time_is_active else self._steady.now_ns()

    def sleep_until_ns(self, deadline_ns: int) -> None:
        """Not for sleeping: nobody may block on a simulated time.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("wait for a timer of the node instead")
