"""Guided chunks in a replay: pulled by the rows that the replayed player still has to play."""

from __future__ import annotations

import itertools

import numpy as np
from bag_factory import digests, make_bag, replay

from oxygen_ros.replay.bag.bag import Bag
from oxygen_ros.replay.recorded_delays import NotedDelays, RecordedDelays

GUIDED = (
    ("player.mode", "rtc"),
    ("player.rtc_schedule", "zeros"),
    ("player.rtc_execution_horizon", 4),
    ("runner.fake.prefill_ms", 90.0),
    ("runner.fake.act_ms", 30.0),
)
DELAY = 2
"""Actions of 50 ms that are played in the 120 ms that a chunk takes."""


def chunks_of(folder):
    with Bag(folder / "run.mcap") as made:
        read = [
            made.types.read("oxygen_ros/msg/ActionChunk", r.data)
            for r in made.records(("/oxygen_node/action_chunk",))
        ]
    return [(c.actions_played, c.actions.reshape(c.horizon, -1)) for c in read if c.horizon]


def test_guided_replay_begins_each_chunk_with_the_rows_that_are_played_meanwhile(tmp_path):
    bag = make_bag(tmp_path, seconds=3.0)
    for name in ("run", "again"):
        assert replay(bag, tmp_path / name, settings=GUIDED)["verdict"]["exit_code"] == 0
    assert digests(tmp_path / "run") == digests(tmp_path / "again")
    made = chunks_of(tmp_path / "run")
    guided = [
        (last, actions, played - before)
        for (before, last), (played, actions) in itertools.pairwise(made)
        if before
    ]
    assert len(guided) >= 10
    for last, actions, shift in guided:
        assert shift == 4
        np.testing.assert_allclose(actions[:DELAY], last[shift : shift + DELAY], atol=1e-6)
        assert not np.allclose(actions[DELAY:4], last[shift + DELAY :], atol=1e-3)


def test_recorded_delays_are_given_again_by_cycle_and_measured_ones_where_there_are_none():
    noted = NotedDelays()
    assert [noted.settle(n) for n in (2, 3)] == [2, 3]
    recorded = RecordedDelays({7: noted.take()})
    assert noted.take() == []
    recorded.begin(6)
    assert recorded.settle(9) == 9
    recorded.begin(7)
    assert [recorded.settle(n) for n in (5, 5, 5)] == [2, 3, 5]
