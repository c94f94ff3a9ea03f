"""When the newest samples make an observation, and what is said when they do not."""

from __future__ import annotations

import numpy as np
import pytest
from mailbox_factory import Bench

from oxygen_ros.runtime.ports import NotReady
from oxygen_ros.types import CycleStatus, Observation


def test_complete_inputs_give_numbered_observations():
    bench = Bench()
    bench.feed()
    first, second = bench.box.take(), bench.box.take()
    assert isinstance(first, Observation)
    assert (first.observation_id, second.observation_id) == (1, 2)
    assert first.stamp_ns == bench.ros_ns()
    assert first.instruction == "wave"
    np.testing.assert_array_equal(first.state, np.float32([0.1, 0.2]))
    assert first.images["front"].shape == (2, 2, 3)


def test_b21_every_missing_input_is_waited_for_by_name():
    bench = Bench(cameras=("front", "wrist"))
    bench.picture("front")
    not_ready = bench.box.take()
    assert not_ready == NotReady(CycleStatus.WAITING, "waiting: camera wrist; waiting: joints")
    bench.feed(("front", "wrist"))
    assert isinstance(bench.box.take(), Observation)


def test_no_instruction_means_no_observation():
    bench = Bench()
    bench.feed()
    bench.box.put_instruction("")
    assert bench.box.take() == NotReady(CycleStatus.WAITING, "waiting: instruction")


def test_instruction_changes_with_the_next_observation():
    bench = Bench()
    bench.feed()
    bench.box.take()
    bench.box.put_instruction("stop waving")
    assert bench.box.take().instruction == "stop waving"


def test_newest_picture_replaces_the_older_and_only_used_ones_are_read():
    bench = Bench()
    for grey in range(1, 31):
        bench.wait_ms(1)
        bench.picture(grey=grey)
    bench.joints()
    assert bench.box.take().images["front"][0, 0, 0] == 30
    assert bench.box.take().images["front"][0, 0, 0] == 30
    assert bench.box.num_decodes == 1


def test_stale_stream_holds_by_name_and_recovers_by_itself():
    bench = Bench(cameras=("front", "wrist"))
    bench.feed(("front", "wrist"))
    bench.box.take()
    bench.wait_ms(150)
    bench.feed(("front",))
    bench.wait_ms(60)
    bench.feed(("front",))
    assert bench.box.take() == NotReady(CycleStatus.HOLDING, "stale: camera wrist (0.21 s)")
    bench.picture("wrist")
    assert isinstance(bench.box.take(), Observation)
    assert bench.said == ["stale: camera wrist (0.21 s)", "over: stale: camera wrist"]


def test_optional_camera_that_is_absent_or_stale_is_left_out():
    bench = Bench(cameras=("front", "wrist"), optional=("wrist",))
    bench.feed(("front",))
    assert set(bench.box.take().images) == {"front"}
    bench.picture("wrist")
    assert set(bench.box.take().images) == {"front", "wrist"}
    bench.wait_ms(250)
    bench.feed(("front",))
    assert set(bench.box.take().images) == {"front"}


def test_optional_camera_that_is_out_of_step_is_left_out_and_the_robot_acts_on():
    """It was fresh enough to be waited for: the robot held although the camera is not required."""
    bench = Bench(cameras=("front", "wrist", "side"), optional=("wrist", "side"), max_skew_s=0.05)
    bench.picture("wrist")
    bench.wait_ms(60)
    bench.feed(("front", "side"))
    assert list(bench.box.take().images) == ["front", "side"]
    bench.picture("wrist")
    assert list(bench.box.take().images) == ["front", "wrist", "side"]


def test_b15_cameras_of_other_rate_and_phase_pair_within_the_skew_until_one_stops():
    bench = Bench(cameras=("a", "b"), max_skew_s=0.067)
    outcomes: list[tuple[int, str]] = []
    for ms in range(0, 5000):
        is_b_alive = ms <= 3000 or ms > 4000
        if ms % 33 == 0:
            bench.picture("a")
        if ms >= 40 and (ms - 40) % 67 == 0 and is_b_alive:
            bench.picture("b")
        bench.joints()
        if ms % 100 == 50:
            taken = bench.box.take()
            outcomes.append((ms, "ok" if isinstance(taken, Observation) else taken.reason))
        bench.wait_ms(1)
    assert all(what == "ok" for ms, what in outcomes if 40 < ms <= 3000)
    assert all(what.startswith(("stale: camera b", "unsync")) for ms, what in outcomes if 3200 < ms <= 4000)
    assert all(what == "ok" for ms, what in outcomes if ms > 4200)
    assert len([text for text in bench.said if text.startswith("stale: camera b")]) == 1


@pytest.mark.parametrize("mode", ["receive", "header"])
def test_cameras_too_far_apart_are_not_paired(mode):
    bench = Bench(cameras=("a", "b"), mode=mode, max_skew_s=0.05)
    bench.picture("a")
    bench.wait_ms(60)
    bench.picture("b")
    bench.joints()
    assert bench.box.take().reason == "unsynchronised: camera a (60 ms behind camera b)"


def test_b16_slow_camera_is_reused_at_most_max_reuse_times():
    bench = Bench(max_reuse=3)
    uses: dict[int, int] = {}
    for tick in range(100):
        if tick % 10 == 0:
            bench.picture(grey=tick // 10 + 1)
        bench.joints()
        taken = bench.box.take()
        if isinstance(taken, Observation):
            grey = int(taken.images["front"][0, 0, 0])
            uses[grey] = uses.get(grey, 0) + 1
        else:
            assert taken.reason == "reused: camera front (3 times)"
        bench.wait_ms(20)
    assert uses == dict.fromkeys(range(1, 11), 3)
    assert bench.box.rates_hz()["camera front"] == pytest.approx(5.0)


def test_b08_refused_picture_is_named_until_a_good_one_comes():
    bench = Bench()
    bench.picture(grey=None)
    bench.joints()
    assert bench.box.take().reason == "refused: camera front ([image.depth] front: encoding '16UC1')"
    assert bench.count("decode_errors") == 1
    bench.picture(grey=3)
    assert isinstance(bench.box.take(), Observation)


def test_b07_bad_picture_does_not_replace_a_good_one():
    bench = Bench()
    bench.feed()
    for _ in range(5):
        bench.picture(grey=None)
    assert bench.box.take().images["front"][0, 0, 0] == 1
    assert bench.count("decode_errors") == 5
    assert len(bench.said) == 1, "the same refusal is logged once, then throttled"


def test_picture_that_breaks_when_read_is_counted_once_and_replaced_by_the_next():
    bench = Bench()
    bench.picture(grey=-1)
    bench.joints()
    assert bench.box.take().reason.startswith("refused: camera front ([image.broken]")
    assert bench.box.take().reason.startswith("refused: camera front")
    assert bench.count("decode_errors") == 1
    bench.picture(grey=2)
    assert isinstance(bench.box.take(), Observation)


def test_b34_reset_while_pictures_are_read_leaves_no_observation_of_them():
    """It got a number after the reset, and its actions were let out as if they were new."""
    bench = Bench()
    bench.feed()
    assert bench.box.take().observation_id == 1
    barred: list[int] = []
    reader = bench.box._reader
    plain = reader.read

    def slow(role, payload):
        barred.append(bench.box.reset())  # as the executor's thread does in the meantime
        return plain(role, payload)

    bench.feed()
    reader.read = slow
    assert bench.box.take() == NotReady(CycleStatus.HOLDING, "inputs forgotten")
    assert barred == [1]
    reader.read = plain
    bench.feed()
    assert bench.box.take().observation_id == 2
