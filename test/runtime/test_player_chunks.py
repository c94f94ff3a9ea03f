"""Which chunks the player takes: each refusal by kind, resets, and another brain."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from player_factory import MS, S, Stage, no_limits

from oxygen_ros.runtime.playback import Hold


def test_b34_after_a_reset_no_action_of_an_older_observation_is_sent():
    stage = Stage()
    stage.player.offer(stage.chunk(np.zeros(10)))
    stage.tick(5)
    on_the_way = stage.chunk(np.zeros(10))
    stage.clock.advance_ns(MS)
    stage.player.reset()
    assert not stage.player.offer(on_the_way)
    held, silence = stage.tick(2)
    assert isinstance(held, Hold)
    assert silence is None
    stage.player.offer(stage.chunk(np.ones(10), instruction="another"))
    assert stage.values(2) == [1, 1]


def test_new_brain_with_numbers_from_1_takes_over_without_a_jump():
    stage = Stage(limits=no_limits(max_step=1.0))
    stage.last_id = 90
    stage.player.offer(stage.chunk(np.arange(10)))
    stage.tick(4)
    stage.last_id = 0
    assert stage.player.offer(stage.chunk(4 + np.arange(10)))
    assert stage.values(2) == [4, 5]


def test_chunk_seen_before_is_refused():
    stage = Stage()
    chunk = stage.chunk(np.arange(10))
    stage.player.offer(chunk)
    stage.tick(2)
    assert not stage.player.offer(chunk)
    assert stage.count("repeated_chunk") == 1


BAD = {
    "nan_action": {"actions": np.full((4, 2), np.nan, np.float32)},
    "malformed_chunk": {"joint_names": ("j1",)},
    "unknown_joints": {"joint_names": ("j1", "elbow")},
    "other_rate": {"dt_ns": 25 * MS},
    "stale_chunk": {"stamp_ns": 0},
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_chunk_is_refused_by_kind_and_the_current_one_goes_on(kind):
    stage = Stage()
    stage.player.offer(stage.chunk(np.arange(4)))
    stage.tick(1)
    bad = dataclasses.replace(stage.chunk(np.arange(4)), **BAD[kind])
    assert not stage.player.offer(bad)
    assert stage.count(kind) == 1
    assert stage.values(5) == [1, 2, 3, 3, None]


@pytest.mark.parametrize("execute_horizon", [0, 5])
def test_chunk_with_an_impossible_horizon_is_refused(execute_horizon):
    stage = Stage()
    assert not stage.player.offer(stage.chunk(np.arange(4), execute_horizon=execute_horizon))
    assert stage.count("malformed_chunk") == 1


@pytest.mark.parametrize("names", [(), ("j1", "j1")])
def test_chunk_with_unusable_names_is_refused(names):
    stage = Stage()
    assert not stage.player.offer(stage.chunk(np.zeros((4, len(names))), joint_names=names))
    assert stage.count("malformed_chunk") == 1


def test_slow_answer_is_stale_even_if_stamps_cannot_tell():
    stage = Stage(max_chunk_age_ns=1 * S)
    assert not stage.player.offer(stage.chunk([1], latency_ns=2 * S))
    assert stage.count("stale_chunk") == 1


def test_chunk_whose_actions_are_all_past_is_refused_and_the_next_one_plays():
    stage = Stage()
    stage.player.offer(stage.chunk(np.arange(20)))
    late = stage.chunk(np.arange(4), played=0, stamp_ns=stage.ros_ns())
    stage.tick(10)
    assert not stage.player.offer(late)
    assert stage.count("late_chunk") == 1
