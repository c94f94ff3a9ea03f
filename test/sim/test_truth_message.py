"""The line of the truth topic: it comes back as it was, and what is no such line is refused by name."""

import json

import numpy as np
import pytest

from oxygen_ros.errors import ContractError
from oxygen_ros.sim.truth import Task
from oxygen_ros.sim.truth_message import from_json, to_json
from oxygen_ros.sim.world import Tabletop, random_layout


def line(held=None):
    world = Tabletop()
    world.reset(random_layout(np.random.default_rng(3)))
    truth = world.truth()
    truth = type(truth)(**{**vars(truth), "held": held})
    return truth, to_json(
        truth, stamp_ns=1_700_000_000_000_000_001, episode=2, seed=7, task=Task(1, 0), ticks=9
    )


@pytest.mark.parametrize("held", [None, 2])
def test_truth_line_read_back_is_equal_to_the_last_bit(held):
    truth, text = line(held)
    message = from_json(text)
    for name, value in vars(truth).items():
        assert np.array_equal(getattr(message.truth, name), value), name
    assert (message.stamp_ns, message.episode, message.seed) == (1_700_000_000_000_000_001, 2, 7)
    assert (message.task, message.ticks, message.instruction) == (Task(1, 0), 9, Task(1, 0).instruction)
    assert message.is_done is json.loads(text)["is_done"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        line()[1].replace('"green"', '"pink"'),
        line()[1].replace('"cubes": [[', '"cubes": [[1, '),
    ],
)
def test_truth_line_that_is_none_is_refused_by_name(text):
    with pytest.raises(ContractError) as refusal:
        from_json(text)
    assert refusal.value.code == "truth"
