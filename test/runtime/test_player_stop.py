"""Stop and reset of the player where things go on being asked, or time is set back."""

import numpy as np
from player_factory import S, Stage


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
    assert stage.player.rest("deactivated").values[0] == hold


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
