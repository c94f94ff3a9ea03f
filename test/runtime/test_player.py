"""The player: seams without gap or repeat, limits, holds, stop, and chunks that must not be played."""

from __future__ import annotations

import random

import numpy as np
import pytest
from player_factory import MS, S, Stage, no_limits

from oxygen_ros.runtime.playback import Command, Hold, Mode


def test_player_without_chunk_sends_nothing():
    stage = Stage()
    assert stage.tick(5) == [None] * 5
    assert stage.player.status().mode is Mode.IDLE
    assert stage.player.status().reason == "waiting: chunk"
    assert stage.player.status().ticks_missed == 0


def test_chunk_is_played_from_its_first_row_then_held_once_then_silence():
    stage = Stage()
    stage.player.offer(stage.chunk([1, 2, 3]))
    assert stage.values(6) == [1, 2, 3, 3, None, None]
    status = stage.player.status()
    assert (status.mode, status.reason) == (Mode.HOLDING, "chunk used up")
    assert (status.actions_played, status.chunk_id, status.next_index) == (3, 1, 3)
    assert status.ticks_missed == 3


def test_hold_is_repeated_as_often_as_asked():
    stage = Stage(hold_repeats=3)
    stage.player.offer(stage.chunk([7]))
    assert stage.values(6) == [7, 7, 7, 7, None, None]


@pytest.mark.parametrize("knows_count", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_seams_leave_no_gap_and_repeat_nothing_for_any_delay(seed, knows_count):
    """Row i of a chunk is the action i after its observation: what is sent must count 0, 1, 2, ... ."""
    rng = random.Random(seed)
    stage = Stage(rate_hz=30)
    sent: list[float] = []
    on_the_way: list[tuple[int, object]] = []
    for tick in range(400):
        if tick % 8 == 0:
            played = stage.player.status().actions_played
            chunk = stage.chunk(np.arange(played, played + 16), played=played if knows_count else 0)
            on_the_way.append((tick + rng.randrange(0, 12), chunk))
        for due, chunk in list(on_the_way):
            if due <= tick:
                stage.player.offer(chunk)
                on_the_way.remove((due, chunk))
        sent += [value for value in stage.values() if value is not None]
    actions = [
        value for i, value in enumerate(sent) if i == 0 or value != sent[i - 1]
    ]  # holds repeat a value
    assert actions == list(range(len(actions)))
    assert len(actions) == stage.player.status().actions_played > 300


def test_b29_first_chunk_starts_at_row_0_and_its_late_warm_up_is_no_delay():
    stage = Stage(rate_hz=30, limits=no_limits(max_step=1.0))
    played_rows = []
    latencies_ms = [700] + [300] * 10
    on_the_way = None
    while latencies_ms or on_the_way:
        if on_the_way is None:
            played = stage.player.status().actions_played
            due_ns = stage.clock.now_ns() + latencies_ms.pop(0) * MS
            on_the_way = (due_ns, stage.chunk(np.arange(played, played + 30), played=played))
        if stage.clock.now_ns() >= on_the_way[0]:
            assert stage.player.offer(on_the_way[1])
            on_the_way = None
        played_rows += [sent for sent in stage.tick() if isinstance(sent, Command)]
    assert played_rows[0].index == 0
    assert 9 <= stage.player.delay.num_actions <= 10
    values = [sent.values[0] for sent in played_rows]
    assert np.abs(np.diff(values)).max() <= 1.0
    assert stage.player.status().steps_clamped == 0


def test_newer_chunk_takes_over_at_the_action_that_is_due():
    stage = Stage()
    stage.player.offer(stage.chunk(np.arange(10)))
    stage.tick(3)
    newer = stage.chunk(100 + np.arange(10), played=3)
    stage.tick(2)
    stage.player.offer(newer)
    sent = stage.tick(2)
    assert [command.index for command in sent] == [2, 3]
    assert [float(command.values[0]) for command in sent] == [102, 103]
    assert [command.takes_over for command in sent] == [True, False]


def test_stamps_place_a_chunk_when_the_brain_does_not_hear_the_player():
    stage = Stage()
    stage.player.offer(stage.chunk(np.arange(10)))
    stage.tick(3)
    newer = stage.chunk(100 + np.arange(10), played=0)
    stage.tick(4)
    stage.player.offer(newer)
    assert stage.tick()[0].index == 4


def test_ensembling_is_the_weighted_mean_of_chunks_for_one_instant():
    stage = Stage(max_chunks=2, decay=0.5)
    stage.player.offer(stage.chunk(np.zeros(10)))
    stage.tick(4)
    stage.player.offer(stage.chunk(np.ones(10)))
    older, newer = np.exp(-0.5 * 4), 1.0
    assert stage.values() == [pytest.approx(newer / (older + newer), abs=1e-6)]
    stage.tick(5)
    assert stage.values() == [1.0], "the older chunk has no row any more"


def test_ensembling_never_mixes_instructions():
    stage = Stage(max_chunks=4)
    stage.player.offer(stage.chunk(np.zeros(10)))
    stage.tick(2)
    stage.player.offer(stage.chunk(np.ones(10), instruction="another"))
    assert stage.values() == [1.0]


def test_experts_move_their_own_joints_together():
    stage = Stage(joint_names=("l", "r", "head"))
    stage.player.offer(stage.chunk(np.full((4, 1), 1.0), expert="left", joint_names=("l",)))
    stage.player.offer(stage.chunk(np.full((4, 1), 2.0), expert="right", joint_names=("r",)))
    command = stage.tick()[0]
    np.testing.assert_array_equal(command.values, [1.0, 2.0, 0.0])


def test_command_order_is_the_configured_one_whatever_the_chunk_says():
    stage = Stage(joint_names=("a", "b", "c"))
    stage.player.offer(stage.chunk([[3.0, 1.0, 2.0]], joint_names=("c", "a", "b")))
    np.testing.assert_array_equal(stage.tick()[0].values, [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("limits", "target", "wanted", "num_cut"),
    [
        ({"upper": 0.5}, 0.9, 0.5, 2),
        ({"lower": -0.5}, -0.9, -0.5, 2),
        ({"max_step": 0.1}, 0.9, 0.1, 2),
        ({"max_step": [0.1, np.inf]}, 0.9, 0.1, 1),
        ({"upper": 0.5, "max_step": 0.4}, 0.9, 0.4, 2),
        ({"upper": 2.0, "max_step": 2.0}, 0.9, 0.9, 0),
    ],
)
def test_targets_are_cut_to_limits_and_counted(limits, target, wanted, num_cut):
    stage = Stage(limits=no_limits(**limits))
    stage.player.offer(stage.chunk([target]))
    assert stage.values() == [wanted]
    assert stage.player.status().steps_clamped == num_cut


def test_first_step_is_measured_from_where_the_robot_is():
    stage = Stage(limits=no_limits(max_step=0.1))
    stage.measure(1.0, 1.0)
    stage.player.offer(stage.chunk([2.0, 2.0]))
    assert stage.values(2) == [1.1, 1.2]


def test_joint_outside_its_range_comes_back_in_steps():
    stage = Stage(limits=no_limits(upper=1.0, max_step=0.1))
    stage.measure(1.5, 1.5)
    stage.player.offer(stage.chunk([0.0] * 8))
    assert stage.values(6) == [1.4, 1.3, 1.2, 1.1, 1.0, 0.9]


def test_player_waits_for_joints_before_its_first_step():
    stage = Stage(is_measured=False)
    stage.player.offer(stage.chunk([1, 2]))
    assert stage.tick(2) == [None, None]
    assert stage.player.status().reason == "waiting: joints j1, j2"
    stage.is_measured = True
    stage.measure(0.0, 0.0)
    assert stage.values(2) == [1, 2]


def test_commands_of_joints_nobody_measures_start_without_a_step_limit():
    stage = Stage(state_names=(), is_measured=False, limits=no_limits(max_step=0.1))
    stage.player.offer(stage.chunk([5, 6]))
    assert stage.values(2) == [5, 5.1]


def test_b25_withdrawn_chunk_ends_in_a_hold_then_silence():
    stage = Stage()
    stage.player.offer(stage.chunk(np.arange(10)))
    stage.tick(3)
    stage.player.offer(stage.chunk(np.zeros((0, 2)), expert="", execute_horizon=0))
    sent = stage.tick(3)
    assert isinstance(sent[0], Hold)
    assert sent[0].values[0] == 2
    assert sent[1:] == [None, None]
    assert stage.player.status().ticks_missed == 0


def test_b25_velocities_hold_at_zero_within_one_tick():
    stage = Stage(limits=no_limits(is_position=False))
    stage.player.offer(stage.chunk(np.full(10, 0.3)))
    stage.tick(3)
    stage.player.offer(stage.chunk(np.zeros((0, 2)), expert=""))
    assert stage.values(3) == [0.0, None, None]


def test_b25_silent_brain_is_noticed():
    stage = Stage(brain_timeout_ns=1 * S)
    stage.player.offer(stage.chunk(np.arange(10)))
    stage.tick(20)
    assert not stage.player.is_brain_silent
    stage.tick(40)
    assert stage.player.is_brain_silent
    assert stage.player.status().ticks_missed == 41, "counted until the brain counts as gone"


def test_b28_stop_is_latched_until_reset():
    stage = Stage()
    stage.player.offer(stage.chunk(np.arange(10)))
    stage.tick(3)
    stage.measure(1.7, 1.7)
    stage.player.stop("stop topic")
    stage.player.offer(stage.chunk(np.arange(10)))
    assert stage.values(4) == [1.7, None, None, None], "it holds where it is measured, once"
    assert stage.player.status().mode is Mode.STOPPED
    stage.player.reset()
    assert stage.tick(2) == [None, None]
    stage.player.offer(stage.chunk(50 + np.arange(10)))
    assert stage.values() == [50]


def test_stop_before_anything_was_sent_sends_nothing():
    stage = Stage()
    stage.player.stop("stop topic")
    assert stage.tick(3) == [None] * 3


def test_b37_stalled_tick_counts_what_it_missed_and_makes_no_burst():
    stage = Stage(rate_hz=50)
    stage.player.offer(stage.chunk(np.arange(50)))
    stage.values(3)
    stage.clock.advance_ns(110 * MS)
    assert stage.values() == [3], "the late tick plays the next action"
    assert stage.player.status().ticks_missed == 5
    assert stage.values(2) == [4, 5]


def test_b37_tick_right_after_a_late_one_is_dropped():
    stage = Stage(rate_hz=50)
    stage.player.offer(stage.chunk(np.arange(50)))
    stage.player.tick()
    stage.clock.advance_ns(130 * MS)
    assert isinstance(stage.player.tick(), Command)
    stage.clock.advance_ns(9 * MS)
    assert stage.player.tick() is None
    stage.clock.advance_ns(20 * MS)
    assert isinstance(stage.player.tick(), Command)
    assert stage.player.status().actions_played == 3


def test_rows_ahead_are_the_actions_that_will_be_played():
    stage = Stage(limits=no_limits(max_step=0.5))
    stage.player.offer(stage.chunk([0.4, 2.0, 2.0, 2.0]))
    first = stage.tick()[0]
    rows = stage.player.rows_ahead(10)
    assert rows.shape == (4, 2)
    np.testing.assert_array_equal(rows[0], first.values)
    np.testing.assert_allclose(rows[1:, 0], stage.values(3), atol=1e-6)


def test_rest_gives_the_hold_to_send_and_forgets_chunks():
    stage = Stage()
    stage.player.offer(stage.chunk(np.arange(10)))
    stage.tick(3)
    hold = stage.player.rest("deactivated")
    assert (hold.values[0], hold.reason) == (2, "deactivated")
    assert stage.tick(3) == [None] * 3
