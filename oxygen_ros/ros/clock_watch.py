"""Watches ROS time of a node: jumps of a simulated clock, and a clock that nobody publishes."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.clock import JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.node import Node

from oxygen_ros.clock import Clock
from oxygen_ros.runtime.throttle import Throttle

FORWARD_JUMP_S = 3600.0
NO_CLOCK_AFTER_NS = 5_000_000_000


class ClockWatch:
    """Warns of what it sees; says each jump to ``on_jump`` on the executor's thread."""

    def __init__(self, node: Node, steady: Clock, on_jump: Callable[[str], None]) -> None:
        """Watch from now on. The first time of a simulated clock counts as a jump on."""
        self._node = node
        self._steady = steady
        self._on_jump = on_jump
        self._throttle = Throttle(steady)
        self._since_ns = steady.now_ns()
        back, on = Duration(nanoseconds=-1), Duration(seconds=FORWARD_JUMP_S)
        threshold = JumpThreshold(min_forward=on, min_backward=back)
        self._jumps = node.get_clock().create_jump_callback(threshold, post_callback=self._on_time_jump)

    @property
    def is_known(self) -> bool:
        """False while ROS time is simulated and no /clock has come."""
        return bool(self._node.get_clock().now().nanoseconds)

    def check(self) -> None:
        """Warn if no /clock has come for five seconds, throttled. Called now and then."""
        is_overdue = self._steady.now_ns() - self._since_ns > NO_CLOCK_AFTER_NS
        if is_overdue and not self.is_known and self._throttle.held_back("clock") is not None:
            self._node.get_logger().warning("no /clock: use_sim_time is set, and nobody publishes the time")

    def _on_time_jump(self, jump: TimeJump) -> None:
        seconds = jump.delta.nanoseconds / 1e9
        description = f"clock jumped {'back' if seconds < 0 else 'on'} {abs(seconds):.1f} s"
        self._node.get_logger().warning(description)
        self._on_jump(description)
