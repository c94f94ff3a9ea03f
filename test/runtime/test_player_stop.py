"""Stop, reset, rest and stalls of the player: each hold comes once, and none comes late."""

import numpy as np
import pytest
from player_factory import MS, NAMES, S, Stage, no_limits

from oxygen_ros.runtime.playback import Hold, Mode
from oxygen_ros.runtime.pose import Pose


def test_stop_that_is_repeated_does_not_follow_an_arm_that_sinks():
    """Each stop message made the measured pose the new hold: an arm that sags was let down in steps."""
    stage = Stage()
    stage.player.offer(stage.chunk(np.arange(10)))
    stage.tick(3)
    assert stage.player.stop("stop topic") is True
    (hold,) = stage.values()
    for sunk in (1.8, 1.5, 1.0):
        stage.measure(sunk, sunk)
        assert stage.player.stop("stop topic") is False
        assert stage.player.tick() is None
        stage.clock.advance_ns(stage.settings.dt_ns)
    assert stage.player.status().mode is Mode.STOPPED
    assert hold == 2
    assert stage.player.rest("deactivated") is None, "it holds already: nothing moves it any more"


def test_b70_chunks_are_taken_after_a_jump_back_to_before_a_reset():
    """They counted as older than the reset, until time had passed it again."""
    stage = Stage()
    stage.player.reset()
    early = stage.chunk(np.arange(10), stamp_ns=stage.ros_ns() - 5 * S)
    assert stage.player.offer(early) is False, "no jump: it is older than the reset"
    stage.ros_shift_ns = -5 * S
    stage.player.rest("clock jumped back 5.0 s")
    assert stage.player.offer(stage.chunk(np.arange(10))) is True
    assert stage.values(2) == [0, 1]


@pytest.mark.parametrize(("is_position", "held"), [(True, 2.0), (False, 0.0)])
def test_b25_reset_in_the_middle_of_a_chunk_holds_before_it_waits(is_position, held):
    """The chunk was dropped without a word: a velocity controller kept its last speed for ever."""
    stage = Stage(limits=no_limits(is_position=is_position))
    stage.player.offer(stage.chunk(np.arange(10)))
    stage.tick(3)
    stage.player.reset()
    assert stage.values(3) == [held, None, None]
    assert stage.mode is Mode.IDLE


def test_rest_after_a_hold_does_not_call_the_robot_back():
    """Deactivation sent the last hold again, however long ago that was and wherever the robot was by then."""
    stage = Stage()
    stage.player.offer(stage.chunk(np.arange(4)))
    assert stage.values(6) == [0, 1, 2, 3, 3, None]
    stage.position = [-1.0, -1.0]  # somebody else moves it, since the player is silent
    stage.tick(50)
    assert stage.player.rest("deactivated") is None
    assert stage.player.rest("deactivated again") is None
    stage.player.offer(stage.chunk([-1.0, -0.9]))
    assert stage.values(2) == [-1.0, -0.9]


def test_rest_while_the_hold_is_still_due_gives_it_once():
    stage = Stage(hold_repeats=3)
    stage.player.offer(stage.chunk(np.arange(10)))
    stage.tick(3)
    stage.player.stop("stop topic")
    stage.tick()
    assert isinstance(stage.player.rest("deactivated"), Hold)
    assert stage.tick(3) == [None] * 3, "a pose of long ago is not sent when ticks come back"


def test_chunk_that_waited_too_long_for_joints_is_not_begun():
    """A robot that was switched on a minute later began at once with what the model had seen before."""
    stage = Stage(is_measured=False, max_chunk_age_ns=2 * S)
    stage.player.offer(stage.chunk(np.arange(100)))
    assert stage.tick(2) == [None, None]
    stage.clock.advance_ns(60 * S)
    stage.is_measured = True
    stage.measure()
    assert stage.tick(3) == [None] * 3
    assert stage.count("stale_chunk") == 1
    stage.player.offer(stage.chunk([5, 6]))
    assert stage.values(2) == [5, 6]


def test_chunk_is_not_gone_on_with_after_a_stall_longer_than_its_age_limit():
    stage = Stage(rate_hz=50, max_chunk_age_ns=2 * S)
    stage.player.offer(stage.chunk(np.arange(100)))
    stage.tick(3)
    stage.clock.advance_ns(1900 * MS)
    assert stage.values() == [3], "within the limit it goes on"
    stage.clock.advance_ns(60 * S)
    held, silence = stage.tick(2)
    assert isinstance(held, Hold)
    assert held.values[0] == 3
    assert silence is None
    assert stage.count("stale_chunk") == 1
    assert stage.mode is Mode.HOLDING


@pytest.mark.parametrize("garbage", [np.nan, np.inf, 1e300])
def test_stop_holds_the_last_command_where_the_measured_pose_is_garbage(garbage):
    stage = Stage()
    stage.player.offer(stage.chunk(np.arange(10)))
    stage.tick(3)
    stage.measure(garbage, garbage)
    stage.player.stop("stop topic")
    assert stage.values() == [2]


def test_b70_pose_measured_before_a_jump_back_is_not_fresh():
    class Jumping:
        at_ns = 100 * S

        def now_ns(self):
            return self.at_ns

    clock = Jumping()
    pose = Pose(NAMES, np.array([True, True]), clock)
    pose.put_measured(NAMES, (1.0, 2.0))
    assert pose.unmeasured(NAMES) == []
    clock.at_ns = 10 * S
    assert pose.unmeasured(NAMES) == ["j1", "j2"]


def test_chunks_under_many_names_leave_nothing_behind():
    """Each name of an expert was kept for ever, and looked at in each tick."""
    stage = Stage()
    for number in range(100):
        stage.player.offer(stage.chunk(np.arange(3), expert=f"e{number}"))
        stage.tick()
    assert len(stage.player._blends) <= 4
    assert stage.mode is Mode.PLAYING
