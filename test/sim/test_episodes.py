"""Episodes follow each other: by success or by the limit, with time to speak, hands off at the start."""

import numpy as np
import pytest

from oxygen_ros.sim import expert
from oxygen_ros.sim.episodes import LINGER_TICKS, REST_TICKS, Episodes, task_of
from oxygen_ros.sim.rules import MAX_TICKS
from oxygen_ros.sim.truth import Task
from oxygen_ros.sim.world import Tabletop

FORWARD = np.array([1.0, 0, 0, 0, 0, 0, -1.0])


@pytest.fixture(scope="module")
def world():
    return Tabletop()


def test_episode_that_is_done_lingers_then_the_next_seed_begins_at_rest(world):
    episodes = Episodes(world, 7)
    assert (episodes.episode, episodes.seed, episodes.task) == (1, 7, task_of(7))
    while episodes.last is None:
        episodes.tick(expert.act(world.truth(), episodes.task))
    assert (episodes.last.is_success, episodes.last.seed) == (True, 7)
    assert episodes.last.num_actions == world.ticks < MAX_TICKS
    for _ in range(LINGER_TICKS):
        assert episodes.episode == 1
        episodes.tick(None)
    episodes.tick(FORWARD)
    assert (episodes.episode, episodes.seed, episodes.task, world.ticks) == (2, 8, task_of(8), 1)
    begin = world.truth().command
    for _ in range(REST_TICKS - 1):
        episodes.tick(FORWARD)
    assert np.array_equal(world.truth().command, begin), "commands made for the last episode"
    episodes.tick(FORWARD)
    assert world.truth().command[0] > begin[0]


def test_episode_without_success_ends_after_so_many_actions_however_long_it_waited(world):
    episodes = Episodes(world, 3, Task(2, 1))
    for _ in range(20):
        episodes.tick(None)
    for number in range(MAX_TICKS):
        assert episodes.last is None, number
        episodes.tick(-FORWARD)
    assert episodes.last is not None
    assert (episodes.last.is_success, episodes.last.num_actions) == (False, MAX_TICKS)
    assert world.ticks == MAX_TICKS + 20
    for _ in range(LINGER_TICKS + 1):
        episodes.tick(None)
    assert (episodes.episode, episodes.task) == (2, Task(2, 1)), "one task for all"


def test_closed_hand_stays_closed_without_a_command(world):
    episodes = Episodes(world, 3)
    episodes.tick(np.array([0.0, 0, 0, 0, 0, 0, 1.0]))
    for _ in range(30):
        episodes.tick(None)
    assert world.truth().is_closing
    assert world.opening < expert.FINGER_TOUCH
