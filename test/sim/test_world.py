"""The simulated world: grasps that can fail, the same radius for task and truth, repeatable runs."""

from dataclasses import replace

import numpy as np
import pytest

from oxygen_ros.sim import expert
from oxygen_ros.sim.truth import ALL_TASKS, PLACED_RADIUS, Task, parse_instruction
from oxygen_ros.sim.world import STATE_DIM, Tabletop, random_layout

CLOSE = np.array([0, 0, 0, 0, 0, 0, 1.0])
OPEN = np.array([0, 0, 0, 0, 0, 0, -1.0])


def world_with_hand_beside_cube(offset):
    layout = random_layout(np.random.default_rng(0))
    hand = layout.cubes[0] + np.array([offset, 0.0, 0.006])
    world = Tabletop()
    world.reset(replace(layout, hand=hand))
    return world


def run(world, action, ticks):
    for _ in range(ticks):
        world.step(action)


def test_grasp_within_reach_holds_and_opening_lets_go():
    world = world_with_hand_beside_cube(0.02)
    run(world, CLOSE, 10)
    assert world.truth().held == 0
    assert world.opening > 0.02
    run(world, OPEN, 5)
    assert world.truth().held is None


def test_grasp_out_of_reach_closes_fully_on_nothing():
    world = world_with_hand_beside_cube(0.045)
    run(world, CLOSE, 12)
    assert world.truth().held is None
    assert world.opening < 0.010


def test_fist_that_is_closed_already_takes_nothing():
    layout = random_layout(np.random.default_rng(0))
    world = Tabletop()
    world.reset(replace(layout, hand=layout.cubes[0], opening=expert.FINGER_CLOSED))
    run(world, CLOSE, 10)
    assert world.truth().held is None


def test_held_cube_is_drawn_to_the_grasp_point():
    world = world_with_hand_beside_cube(0.025)
    run(world, CLOSE, 25)
    truth = world.truth()
    assert np.linalg.norm(truth.cubes[0] - truth.hand) < 0.008


@pytest.mark.parametrize(("offset", "is_inside"), [(-0.005, True), (0.005, False)])
def test_placed_near_the_radius_is_one_thing_for_task_and_truth(offset, is_inside):
    layout = random_layout(np.random.default_rng(0))
    cubes = layout.cubes.copy()
    cubes[1, :2] = layout.containers[0] - np.array([PLACED_RADIUS + offset, 0.0])
    world = Tabletop()
    world.reset(replace(layout, cubes=cubes))
    assert (world.truth().container_of(1) == 0) is is_inside
    assert world.truth().is_done(Task(1, 0)) is is_inside


def test_hand_follows_its_command_within_a_centimetre():
    world = Tabletop()
    world.reset(random_layout(np.random.default_rng(4)))
    for tick in range(60):
        world.step(np.array([0, 1.0 if tick < 30 else -1.0, -0.5, 0, 0, 0, -1.0]))
        truth = world.truth()
        assert np.linalg.norm(truth.hand - truth.command) < 0.01


def test_state_has_libero_form():
    world = Tabletop()
    world.reset(random_layout(np.random.default_rng(5)))
    state = world.state()
    assert state.shape == (STATE_DIM,)
    assert state.dtype == np.float32
    assert state[6] == pytest.approx(-state[7], abs=1e-3)


def test_equal_seeds_and_actions_give_equal_worlds():
    truths = []
    for _ in range(2):
        world = Tabletop()
        world.reset(random_layout(np.random.default_rng(6)))
        for _ in range(40):
            world.step(expert.act(world.truth(), Task(0, 0)))
        truths.append(world.truth())
    np.testing.assert_array_equal(truths[0].cubes, truths[1].cubes)
    np.testing.assert_array_equal(truths[0].hand, truths[1].hand)


@pytest.mark.parametrize("task", ALL_TASKS)
def test_parse_instruction_of_every_task_gives_it_back(task):
    assert parse_instruction(task.instruction.upper() + ".") == task


def test_parse_instruction_of_an_unknown_task_is_none():
    assert parse_instruction("bring me a coffee") is None
