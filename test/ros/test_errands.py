"""Work for the executor's thread: one piece that fails does not keep the next from being done."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from rclpy.callback_groups import ReentrantCallbackGroup
from ros_bench import bench

from oxygen_ros.ros.errands import Errands


def test_errand_that_fails_does_not_hold_up_the_next():
    done = []
    with bench() as b:
        b.feed = None
        errands = Errands(b.probe, ReentrantCallbackGroup())
        errands.add(lambda: 1 // 0)
        errands.add(lambda: done.append("second"))
        with pytest.raises(ZeroDivisionError):
            b.until(lambda: done, "the first")
        b.until(lambda: done == ["second"], "the second")
