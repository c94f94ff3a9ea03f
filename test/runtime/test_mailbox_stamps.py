"""Stamps of inputs: frozen, going back, of the future, none at all; and time that jumps back."""

from __future__ import annotations

from mailbox_factory import MS, ROS_ORIGIN_NS, Bench, S

from oxygen_ros.clock import SimClock
from oxygen_ros.runtime.ports import NotReady
from oxygen_ros.runtime.throttle import Throttle
from oxygen_ros.types import CycleStatus, Observation


def test_b12_frozen_stamp_is_accepted_by_arrival_and_said_once():
    bench = Bench()
    frozen = ROS_ORIGIN_NS + 2 * S
    for _ in range(30):
        bench.picture(stamp_ns=frozen)
        bench.joints()
        assert isinstance(bench.box.take(), Observation)
        bench.wait_ms(33)
    assert [text for text in bench.said if "stamp not advancing: front/image" in text] == bench.said
    assert len(bench.said) == 1
    bench.feed()
    bench.picture(stamp_ns=frozen)
    assert bench.box.take().stamp_ns == bench.ros_ns(), "an implausible stamp is replaced by the arrival"


def test_b12_frozen_stamp_is_stale_by_the_header_clock():
    bench = Bench(stale_clock="header")
    frozen = bench.ros_ns()
    seen = []
    for _ in range(12):
        bench.picture(stamp_ns=frozen)
        bench.joints()
        taken = bench.box.take()
        seen.append(taken.reason.split(" (")[0] if isinstance(taken, NotReady) else "ok")
        bench.wait_ms(33)
    assert seen == ["ok"] * 7 + ["stale: camera front"] * 5


def test_b13_older_stamp_never_replaces_a_newer_one():
    bench = Bench(max_reuse=10)
    start = bench.ros_ns() - 200 * MS
    bench.joints()
    for grey, offset_ms in enumerate((0, 33, 167, 67, 100, 133, 200), start=1):
        bench.picture(grey=grey, stamp_ns=start + offset_ms * MS)
        newest = {1: 1, 2: 2, 3: 3, 4: 3, 5: 3, 6: 3, 7: 7}[grey]
        assert bench.box.take().images["front"][0, 0, 0] == newest
    assert bench.count("out_of_order") == 3


def test_b13_jump_into_the_future_is_refused_and_does_not_count_as_fresh():
    bench = Bench()
    bench.feed()
    bench.picture(grey=9, stamp_ns=bench.ros_ns() + 5 * S)
    assert bench.count("future_stamp") == 1
    assert bench.box.take().images["front"][0, 0, 0] == 1
    bench.wait_ms(250)
    bench.joints()
    assert bench.box.take().reason.startswith("stale: camera front")
    bench.picture(grey=4)
    assert bench.box.take().images["front"][0, 0, 0] == 4


def test_b13_source_that_was_set_back_for_good_is_taken_again():
    bench = Bench()
    bench.feed()
    taken = []
    for _ in range(30):
        bench.wait_ms(33)
        bench.picture(stamp_ns=bench.ros_ns() - 5 * S)
        bench.joints()
        taken.append(bench.box.take())
    assert isinstance(taken[-1], Observation)
    assert any(isinstance(t, NotReady) for t in taken)
    assert bench.count("out_of_order") == 9


def test_b14_unstamped_camera_runs_on_arrival_and_is_said_once():
    bench = Bench(cameras=("front", "wrist"))
    for _ in range(3):
        bench.picture("front", stamp_ns=0)
        bench.picture("wrist")
        bench.joints()
        assert isinstance(bench.box.take(), Observation)
        bench.wait_ms(33)
    assert bench.said == ["unstamped: front/image; its time of arrival is taken"]


def test_b14_unstamped_camera_is_refused_when_headers_pair_the_streams():
    bench = Bench(cameras=("front", "wrist"), mode="header")
    bench.picture("front", stamp_ns=0)
    bench.picture("wrist")
    bench.joints()
    assert bench.box.take().reason == "unstamped: front/image"


def test_b70_reset_forgets_stamps_so_that_an_earlier_time_is_taken():
    bench = Bench()
    bench.feed()
    bench.box.take()
    bench.box.reset()
    assert bench.box.take() == NotReady(CycleStatus.HOLDING, "waiting: camera front; waiting: joints")
    early = bench.ros_ns() - 5 * S
    bench.picture(grey=6, stamp_ns=early)
    bench.joints(stamp_ns=early)
    assert bench.box.take().images["front"][0, 0, 0] == 6


def test_observation_is_stamped_by_its_oldest_picture():
    bench = Bench(cameras=("a", "b"))
    older = bench.ros_ns()
    bench.picture("a")
    bench.wait_ms(30)
    bench.picture("b")
    bench.joints()
    assert bench.box.take().stamp_ns == older


def test_b70_rates_and_remarks_do_not_go_mad_after_a_jump_back():
    bench = Bench()
    for _ in range(10):
        bench.feed()
        bench.wait_ms(100)
    bench.clock._now_ns -= 4 * S
    bench.box.reset()
    bench.said.clear()
    bench.feed()
    bench.wait_ms(100)
    bench.feed()
    assert bench.box.rates_hz() == {"camera front": 10.0, "joints arm": 10.0}


def test_b70_what_is_said_is_not_held_back_for_the_length_of_a_jump_back():
    clock = SimClock(1000 * S)
    throttle = Throttle(clock)
    assert throttle.held_back("stale") == 0
    assert throttle.held_back("stale") is None
    clock._now_ns = 10 * S
    assert throttle.held_back("stale") == 1
