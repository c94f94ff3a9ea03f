"""The shipped presets and device profiles load in every combination and hold the known facts."""

import itertools
from pathlib import Path

import pytest
import yaml

from oxygen_ros.config import load_config
from oxygen_ros.config.search import DEVICES, PRESETS, available

CONFIG = Path(__file__).parents[2] / "config"
ALL_PRESETS = available(PRESETS, [CONFIG])
ALL_DEVICES = available(DEVICES, [CONFIG])


def test_presets_and_devices_are_those_that_were_promised() -> None:
    assert set(ALL_PRESETS) >= {"libero", "droid", "aloha", "humanoid"}
    assert set(ALL_DEVICES) >= {"cpu", "rtx4090", "jetson_agx_thor"}


@pytest.mark.parametrize(("preset", "device"), list(itertools.product(ALL_PRESETS, ALL_DEVICES)))
def test_preset_on_each_device_loads_without_a_warning(preset: str, device: str) -> None:
    loaded = load_config(preset=preset, device=device)
    assert loaded.warnings == ()
    assert loaded.config.enable_control is False
    for joint in loaded.config.robot.gripper_joints:
        assert joint in loaded.config.robot.joint_names


@pytest.mark.parametrize("path", sorted(CONFIG.rglob("*.yaml")), ids=lambda path: path.name)
def test_b58_shipped_yaml_has_no_empty_list(path: Path) -> None:
    """B58 (a)."""
    assert "[]" not in path.read_text()
    for value in _leaves(yaml.safe_load(path.read_text())):
        assert value != []


@pytest.mark.parametrize("device", [name for name in ALL_DEVICES if name != "cpu"])
def test_device_profile_for_a_gpu_says_that_it_is_not_verified(device: str) -> None:
    assert "Not verified on a GPU" in (CONFIG / "devices" / f"{device}.yaml").read_text()
    assert load_config(preset="libero", device=device).config.runner.device == "cuda"


def test_humanoid_preset_says_that_it_is_made_up() -> None:
    text = (CONFIG / "presets" / "humanoid.yaml").read_text()
    assert "made up" in text
    robot = load_config(preset="humanoid").config.robot
    assert robot.action_dim == 14 + 12
    assert len(robot.camera_roles) == 3
    assert all(joint.position_max < 10 and joint.max_step < 1 for joint in robot.command_joints)


@pytest.mark.parametrize(
    ("preset", "horizon", "execute", "state", "action", "slots"),
    [
        ("libero", 10, 5, 8, 7, ["base_0_rgb", "left_wrist_0_rgb"]),
        ("droid", 15, 8, 8, 8, ["base_0_rgb", "left_wrist_0_rgb"]),
        ("aloha", 50, 25, 14, 14, ["base_0_rgb", "left_wrist_0_rgb", "right_wrist_0_rgb"]),
    ],
)
def test_preset_of_a_public_checkpoint_has_its_sizes(
    preset: str, horizon: int, execute: int, state: int, action: int, slots: list[str]
) -> None:
    config = load_config(preset=preset).config
    assert (config.model.horizon, config.cycle.execute_horizon) == (horizon, execute)
    assert (config.robot.state_dim, config.robot.action_dim) == (state, action)
    assert [config.robot.slot_of(role) for role in config.robot.camera_roles] == slots
    assert config.robot.transform == preset


def test_b23_aloha_preset_has_the_grippers_at_6_and_13() -> None:
    """B23 (a): positions and range of the grippers, and which actions are relative."""
    robot = load_config(preset="aloha").config.robot
    assert [robot.joint_names.index(name) for name in robot.gripper_joints] == [6, 13]
    assert {(grip.open, grip.closed) for grip in robot.grippers.values()} == {(0.058, 0.01844)}
    assert robot.adapt_to_pi
    assert robot.relative_actions
    assert {stream.name_prefix for stream in robot.joint_topics.values()} == {"left_", "right_"}


def test_libero_preset_turns_its_pictures_and_steps_its_hand() -> None:
    config = load_config(preset="libero").config
    assert all(camera.rotate_180 for camera in config.robot.cameras.values())
    assert config.model.openpi_prompt == "task_only"
    assert config.robot.command_kind == "delta"


def _leaves(value: object) -> list[object]:
    if isinstance(value, dict) and value:
        return [leaf for item in value.values() for leaf in _leaves(item)]
    return [value]
