"""Robot transforms: each map and its inverse give identity; the numbers are openpi's."""

import math

import numpy as np
import pytest

from oxygen_ros.config import load_config
from oxygen_ros.config.joint import GripperConfig
from oxygen_ros.config.robot import RobotConfig
from oxygen_ros.errors import ConfigError
from oxygen_ros.robots import aloha
from oxygen_ros.robots.transform import make_transform

PRESETS = ("libero", "droid", "aloha", "humanoid")


def robot_of(preset, **changes):
    return load_config(preset=preset, overrides={"robot": changes} if changes else None).config.robot


def states(robot, seed=0):
    """Random joint positions, grippers between closed and open."""
    values = np.random.default_rng(seed).uniform(-1.5, 1.5, (40, robot.state_dim))
    for index, name in enumerate(robot.joint_names):
        if name in robot.gripper_joints:
            gripper = robot.grippers[name]
            values[:, index] = np.linspace(gripper.closed, gripper.open, 40)
    return values


@pytest.mark.parametrize("preset", PRESETS)
def test_transform_of_preset_state_and_back_is_identity(preset):
    robot = robot_of(preset)
    transform = make_transform(robot, adapt_to_pi=True)
    state = states(robot)
    np.testing.assert_allclose(transform.state_to_robot(transform.state_to_model(state)), state, atol=1e-9)


@pytest.mark.parametrize("preset", PRESETS)
def test_transform_of_preset_commands_and_back_is_identity(preset):
    robot = robot_of(preset)
    transform = make_transform(robot, adapt_to_pi=True)
    commands = np.random.default_rng(1).uniform(-1.5, 1.5, (5, 10, robot.action_dim))
    np.testing.assert_allclose(
        transform.commands_to_robot(transform.commands_to_model(commands)), commands, atol=1e-9
    )


@pytest.mark.parametrize("adapt_to_pi", [True, False])
def test_b23_aloha_policy_that_stays_gives_the_state_back(adapt_to_pi):
    """A policy that answers "stay" in its own numbers: through both ways the command equals the input."""
    ends = {"open": 0.058, "closed": 0.0449}
    robot = robot_of("aloha", grippers={"left_left_finger": ends, "right_left_finger": ends})
    transform = make_transform(robot, adapt_to_pi=adapt_to_pi)
    state = states(robot)
    seen = transform.state_to_model(state).astype(np.float32)
    stay = transform.commands_to_model(transform.state_to_robot(seen.astype(float))).astype(np.float32)
    np.testing.assert_allclose(transform.commands_to_robot(stay.astype(float)), state, atol=1e-5)


def test_b23_aloha_without_angles_identity_policy_gives_the_state_back():
    ends = {"open": 0.058, "closed": 0.0449}
    robot = robot_of("aloha", grippers={"left_left_finger": ends, "right_left_finger": ends})
    transform = make_transform(robot, adapt_to_pi=False)
    state = states(robot)
    np.testing.assert_allclose(transform.commands_to_robot(transform.state_to_model(state)), state, atol=1e-5)


def test_b23_aloha_flips_joints_of_both_arms():
    transform = make_transform(robot_of("aloha"), adapt_to_pi=True)
    state = np.full(14, 0.03)
    flipped = np.sign(transform.state_to_model(state)[[*range(6), *range(7, 13)]])
    assert flipped.tolist() == [1, -1, -1, 1, 1, 1] * 2
    commands = np.sign(transform.commands_to_robot(np.full(14, 0.5))[[*range(6), *range(7, 13)]])
    assert commands.tolist() == [1, -1, -1, 1, 1, 1] * 2


def test_b23_gripper_invert_flips_exactly_that_index():
    plain = make_transform(robot_of("aloha"), adapt_to_pi=False)
    inverted = make_transform(
        robot_of("aloha", grippers={"right_left_finger": {"invert": True}}), adapt_to_pi=False
    )
    state = states(robot_of("aloha"))
    before, after = plain.state_to_model(state), inverted.state_to_model(state)
    np.testing.assert_allclose(after[:, 13], 1 - before[:, 13])
    np.testing.assert_array_equal(np.delete(after, 13, axis=1), np.delete(before, 13, axis=1))
    commands = np.full((1, 14), 0.25)
    assert inverted.commands_to_robot(commands)[0, 13] == pytest.approx(0.058 - 0.25 * (0.058 - 0.01844))


def test_aloha_state_gripper_follows_the_linkage():
    for position in (0.0, 0.3, 1.0):
        finger = 0.01844 + position * (0.058 - 0.01844)
        angle = math.asin(max(-1, min(1, (0.022**2 + finger**2 - 0.036**2) / (2 * 0.022 * finger))))
        found = aloha.StateGripper(0).to_model(np.array([position]))
        assert found[0] == pytest.approx((angle - 0.5476) / (1.6296 - 0.5476), abs=1e-12)


def test_aloha_state_gripper_past_the_end_stays_finite():
    assert np.isfinite(aloha.StateGripper(0).to_model(np.array([[-0.2], [1.3]]))).all()


def test_aloha_command_gripper_is_counted_between_the_leaders_angles():
    found = aloha.CommandGripper(0).to_robot(np.array([[0.2], [-1.1689]]))
    np.testing.assert_allclose(found[:, 0], [(0.2 + 0.5476 + 0.6213) / (1.4910 + 0.6213), 0.0], atol=1e-12)


@pytest.mark.parametrize(
    ("convention", "invert", "wanted"),
    [
        ("one_is_open", False, [0.0, 1.0]),
        ("one_is_closed", False, [1.0, 0.0]),
        ("one_is_open", True, [1.0, 0.0]),
        ("one_is_closed", True, [0.0, 1.0]),
    ],
)
def test_gripper_convention_says_what_one_means(convention, invert, wanted):
    config = GripperConfig(open=0.08, closed=0.02, convention=convention, invert=invert)
    robot = RobotConfig(
        joint_names=("a", "g"), command_joint_names=("a", "g"), gripper_joints=("g",), grippers={"g": config}
    )
    found = make_transform(robot, adapt_to_pi=False).state_to_model(np.array([[5.0, 0.02], [5.0, 0.08]]))
    np.testing.assert_allclose(found, [[5.0, wanted[0]], [5.0, wanted[1]]], atol=1e-12)


def test_droid_gripper_keeps_the_data_sets_count():
    state = np.full(8, 0.25)
    np.testing.assert_array_equal(
        make_transform(robot_of("droid"), adapt_to_pi=True).state_to_model(state), state
    )


def test_maps_do_not_change_their_input():
    transform = make_transform(robot_of("aloha"), adapt_to_pi=True)
    state = states(robot_of("aloha"))
    before = state.copy()
    transform.state_to_model(state)
    transform.commands_to_robot(state)
    np.testing.assert_array_equal(state, before)


def test_unknown_transform_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="identity, libero, droid, aloha"):
        make_transform(RobotConfig(transform="alhoa"), adapt_to_pi=True)


def test_aloha_transform_on_other_joints_is_refused():
    robot = RobotConfig(transform="aloha", joint_names=("a",) * 8, command_joint_names=("a",) * 8)
    with pytest.raises(ConfigError, match="wants 14"):
        make_transform(robot, adapt_to_pi=True)
