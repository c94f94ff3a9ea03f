"""Joints in the mailbox: merged by name, refused when they do not fit, stale on their own terms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mailbox_factory import MS, Bench

from oxygen_ros.runtime.ports import NotReady
from oxygen_ros.runtime.streams import MAX_PARTS
from oxygen_ros.types import CycleStatus, Observation


def test_joints_have_their_own_shorter_limit():
    bench = Bench()
    bench.feed()
    bench.wait_ms(110)
    assert bench.box.take().reason == "stale: joints arm (0.11 s)"


def test_b17_state_follows_names_not_positions():
    joints = ("j1", "j2", "j3", "j4", "j5", "j6")
    bench = Bench(joints=joints)
    bench.picture()
    bench.joints(("j1", "j2", "j4", "j5", "j3", "j6"), (1, 2, 4, 5, 3, 6))
    np.testing.assert_array_equal(bench.box.take().state, [1, 2, 3, 4, 5, 6])


def test_b24_names_are_read_again_from_every_message():
    bench = Bench(joints=("a", "b", "c"))
    for names, positions in ((("a", "b", "c"), (1, 2, 3)), (("c", "a", "b"), (3, 1, 2))):
        bench.picture()
        bench.joints(names, positions)
        np.testing.assert_array_equal(bench.box.take().state, [1, 2, 3])


def test_b18_missing_joint_is_named_with_what_is_there():
    bench = Bench(joints=("j1", "j2", "j4"))
    bench.picture()
    bench.joints(("j1", "j2", "j3"), (1, 2, 3))
    assert bench.box.take().reason == "waiting: joints (missing j4; available j1, j2, j3)"


def test_b18_joint_lost_from_a_complete_message_is_refused():
    bench = Bench(joints=("j1", "j2", "j4"))
    bench.picture()
    bench.joints(("j1", "j2", "j4"), (1, 2, 4))
    bench.joints(("j1", "j2"), (7, 8))
    assert bench.count("lost_joints") == 1
    np.testing.assert_array_equal(bench.box.take().state, [1, 2, 4])
    bench.wait_ms(110)
    bench.picture()
    bench.joints(("j1", "j2"), (7, 8))
    assert bench.box.take().reason == "refused: joints arm (missing j4; available j1, j2)"


@pytest.mark.parametrize("sources", [("arm", "hand"), ("arm", "arm")])
def test_b18_union_of_two_publishers_is_complete(sources):
    bench = Bench(joints=("j1", "grip"), sources=tuple(dict.fromkeys(sources)))
    bench.picture()
    bench.joints(("j1",), (1.0,), source=sources[0])
    bench.joints(("grip", "other"), (0.5, 9.0), source=sources[1])
    np.testing.assert_array_equal(bench.box.take().state, [1.0, 0.5])


def test_one_of_two_joint_topics_going_silent_is_named():
    bench = Bench(joints=("j1", "grip"), sources=("arm", "hand"))
    bench.joints(("grip",), (0.5,), source="hand")
    bench.wait_ms(150)
    bench.picture()
    bench.joints(("j1",), (1.0,), source="arm")
    assert bench.box.take().reason == "stale: joints hand (0.15 s)"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300])
def test_b19_position_that_is_no_number_is_not_used_and_holds_when_it_lasts(bad):
    bench = Bench()
    bench.feed()
    bench.joints(positions=(0.9, bad))
    assert bench.count("nan_state") == 1
    np.testing.assert_array_equal(bench.box.take().state, np.float32([0.1, 0.2]))
    for _ in range(4):
        bench.wait_ms(40)
        bench.picture()
        bench.joints(positions=(0.9, bad))
    held = bench.box.take()
    assert held == NotReady(CycleStatus.HOLDING, "refused: joints arm (position is not a number: j2)")
    bench.joints()
    assert isinstance(bench.box.take(), Observation)


def test_b19_a_joint_nobody_asked_for_may_be_anything():
    bench = Bench()
    bench.picture()
    bench.joints(("j1", "j2", "wheel"), (0.1, 0.2, math.nan))
    assert isinstance(bench.box.take(), Observation)


@pytest.mark.parametrize(
    ("names", "positions"), [(("a", "b", "c"), (1.0,)), (("j1", "j2"), ()), (("j1", "j1", "j2"), (1, 2, 3))]
)
def test_b22_names_and_positions_that_do_not_fit_are_refused(names, positions):
    bench = Bench()
    bench.picture()
    bench.joints(names, positions)
    assert bench.count("bad_joints") == 1
    assert bench.box.take().reason.startswith("refused: joints arm")


def test_b18_publishers_of_one_topic_have_an_order_each():
    """The one whose stamps lag a few milliseconds was refused as out of order for as long as they beat."""
    bench = Bench(joints=("j1", "grip"))
    for number in range(20):
        bench.wait_ms(10)
        bench.picture()
        bench.joints(("j1",), (float(number),))
        bench.joints(("grip",), (-float(number),), stamp_ns=bench.ros_ns() - 3 * MS)
        np.testing.assert_array_equal(bench.box.take().state, [number, -number])
    assert bench.count("out_of_order") == 0
    bench.joints(("grip",), (9.0,), stamp_ns=bench.ros_ns() - 4 * MS)
    assert bench.count("out_of_order") == 1, "each by itself does not go back"


def test_number_of_name_sets_that_are_remembered_is_bounded():
    names = tuple(f"j{i}" for i in range(60))
    bench = Bench(joints=names)
    for name in names:
        bench.joints((name,), (1.0,))
    assert len(bench.box._watches["joints arm"]._parts) == MAX_PARTS
