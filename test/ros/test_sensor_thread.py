"""The thread that serves cameras, joints and the player's state: its life, and what it survives."""

from __future__ import annotations

import threading

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from ros_bench import bench


def num_sensor_threads() -> int:
    return sum(thread.name == "sensors" for thread in threading.enumerate())


def change(b, transition: int) -> None:
    request = ChangeState.Request(transition=Transition(id=transition))
    assert b.call(ChangeState, "oxygen_node/change_state", request).success


def test_error_of_a_callback_is_counted_and_the_next_message_is_served():
    with bench() as b:
        brain = b.brain()
        b.until(lambda: len(b.acted()) > 2, "cycles")
        mailbox = brain._parts.mailbox
        stored = mailbox.put_joints

        def broken(*_) -> None:
            mailbox.put_joints = stored
            raise RuntimeError("broken")

        mailbox.put_joints = broken
        b.until(lambda: brain.refusals.counts().get("callback_error") == 1, "the count")
        seen = len(b.acted())
        b.until(lambda: len(b.acted()) > seen + 2, "cycles after it")
        assert brain.refusals.counts()["callback_error"] == 1


def test_thread_ends_with_clean_up_and_begins_with_configure():
    before = num_sensor_threads()
    with bench() as b:
        b.brain()
        b.until(lambda: len(b.acted()) > 2, "cycles")
        assert num_sensor_threads() == before + 1
        change(b, Transition.TRANSITION_DEACTIVATE)
        change(b, Transition.TRANSITION_CLEANUP)
        assert num_sensor_threads() == before
        change(b, Transition.TRANSITION_CONFIGURE)
        change(b, Transition.TRANSITION_ACTIVATE)
        seen = len(b.acted())
        b.until(lambda: len(b.acted()) > seen + 2, "cycles")
        assert num_sensor_threads() == before + 1
    assert num_sensor_threads() == before
