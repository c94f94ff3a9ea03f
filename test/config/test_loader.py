"""The order of the sources, where values come from, and the way from names to dataclasses and back."""

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from oxygen_ros.config import OxygenConfig, default_config_dirs, load_config
from oxygen_ros.config.schema import build, flatten
from oxygen_ros.errors import ConfigError

ROOT = Path(__file__).parents[2]


def _write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.fixture
def dirs(tmp_path: Path) -> tuple[Path]:
    """A folder with one preset and one device profile that disagree on purpose."""
    robot = "robot: {camera_roles: [base], cameras: {base: {topic: cam}}, joint_names: [a, b]}\n"
    (tmp_path / "presets").mkdir()
    (tmp_path / "devices").mkdir()
    _write(
        tmp_path / "presets/toy.yaml",
        robot + "cycle: {action_rate_hz: 11.0, reserve_ms: 11.0, cost_quantile: 0.6}\n"
        "kv.num_rows: 11\nkv.num_prefixes: 11\n",
    )
    _write(
        tmp_path / "devices/box.yaml",
        "cycle: {reserve_ms: 12.0, cost_quantile: 0.7}\nkv: {num_rows: 12, num_prefixes: 12}\n",
    )
    return (tmp_path,)


def test_loader_all_sources_the_higher_one_wins(dirs: tuple[Path], tmp_path: Path) -> None:
    params = _write(
        tmp_path / "p.yaml", "preset: toy\ncycle.cost_quantile: 0.8\nkv: {num_rows: 13, num_prefixes: 13}\n"
    )
    loaded = load_config(
        device="box", params_file=params, overrides={"kv.num_prefixes": 14}, config_dirs=dirs
    )
    config = loaded.config
    assert config.cycle.steps_per_round == OxygenConfig().cycle.steps_per_round
    assert config.cycle.action_rate_hz == 11.0
    assert config.cycle.reserve_ms == 12.0
    assert (config.cycle.cost_quantile, config.kv.num_rows) == (0.8, 13)
    assert config.kv.num_prefixes == 14


def test_loader_provenance_names_each_source_once(dirs: tuple[Path], tmp_path: Path) -> None:
    params = _write(tmp_path / "p.yaml", "kv: {num_rows: 13}\n")
    loaded = load_config(
        preset="toy", device="box", params_file=params, overrides={"text.enabled": False}, config_dirs=dirs
    )
    assert loaded.sources["cycle.action_rate_hz"] == "preset toy"
    assert loaded.sources["cycle.reserve_ms"] == "device box"
    assert loaded.sources["kv.num_rows"] == f"params file {params}"
    assert loaded.sources["text.enabled"] == "launch arguments"
    assert "cycle.steps_per_round" not in loaded.sources
    text = loaded.describe()
    assert text.count("From preset toy:") == 1
    assert "kv: num_rows 13" in text


def test_loader_preset_by_path_is_taken(dirs: tuple[Path]) -> None:
    path = dirs[0] / "presets" / "toy.yaml"
    assert load_config(preset=str(path), config_dirs=()).config.robot.joint_names == ("a", "b")


def test_loader_empty_choice_in_a_higher_source_counts_as_not_given(
    dirs: tuple[Path], tmp_path: Path
) -> None:
    params = _write(tmp_path / "p.yaml", "preset: toy\n")
    loaded = load_config(preset="", device="", params_file=params, config_dirs=dirs)
    assert loaded.config.preset == "toy"
    assert loaded.sources["preset"] == f"params file {params}"


def test_loader_command_joints_not_given_are_the_state_joints(dirs: tuple[Path]) -> None:
    robot = load_config(preset="toy", config_dirs=dirs).config.robot
    assert robot.command_joint_names == ("a", "b")
    assert list(robot.joints) == ["a", "b"]
    assert (robot.state_dim, robot.action_dim) == (2, 2)


def test_loader_limits_are_kept_for_commanded_joints_alone(dirs: tuple[Path]) -> None:
    command = {"robot.command_joint_names": ["b"]}
    assert list(load_config(preset="toy", overrides=command, config_dirs=dirs).config.robot.joints) == ["b"]
    with pytest.raises(ConfigError, match=r"no joint 'a' in robot\.command_joint_names; there are: b"):
        load_config(preset="toy", overrides={**command, "robot.joints.a.max_step": 0.1}, config_dirs=dirs)


def test_loader_higher_list_of_names_drops_the_sections_of_a_lower_one(dirs: tuple[Path]) -> None:
    overrides = {"robot": {"camera_roles": ["top"], "cameras": {"top": {"topic": "top"}}}}
    cameras = load_config(preset="toy", overrides=overrides, config_dirs=dirs).config.robot.cameras
    assert list(cameras) == ["top"]


def test_loader_use_sim_time_in_a_file_is_handed_on(dirs: tuple[Path], tmp_path: Path) -> None:
    params = _write(tmp_path / "p.yaml", "use_sim_time: true\nqos_overrides./clock.depth: 3\n")
    loaded = load_config(preset="toy", params_file=params, config_dirs=dirs)
    assert loaded.ros_parameters == {"use_sim_time": True, "qos_overrides./clock.depth": 3}


def test_config_flat_and_back_is_equal() -> None:
    for preset in ("libero", "humanoid"):
        config = load_config(preset=preset).config
        assert build(flatten(config)) == config
    assert build({}) == OxygenConfig()
    assert build(flatten(OxygenConfig())) == OxygenConfig()


def test_config_of_each_value_set_flat_arrives_in_its_field() -> None:
    config = load_config(preset="libero").config
    values = flatten(config)
    moved = {name: 7 if value == 10 else value for name, value in values.items()}
    back = flatten(build(moved))
    assert back == moved
    assert back != values


def test_config_once_made_cannot_be_changed() -> None:
    config = load_config(preset="libero").config
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.cycle.action_rate_hz = 3.0  # type: ignore[misc]


def test_cycle_period_is_horizon_over_rate() -> None:
    overrides = {"cycle.action_rate_hz": 30, "cycle.execute_horizon": 10, "cycle.reserve_ms": 2.5}
    cycle = load_config(preset="libero", overrides=overrides).config.cycle
    assert cycle.period_ns == 333_333_333
    assert cycle.action_dt_ns == 33_333_333
    assert cycle.reserve_ns == 2_500_000


def test_command_kind_of_a_joint_goes_over_the_robots() -> None:
    robot = load_config(preset="libero").config.robot
    assert robot.command_kind_of("eef_delta_x") == "delta"
    assert robot.command_kind_of("gripper") == "position"


def test_presets_installed_without_the_sources_are_found(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python3" / "site-packages"
    shutil.copytree(ROOT / "oxygen_ros", site / "oxygen_ros", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "config", tmp_path / "share" / "oxygen_ros" / "config")
    program = (
        f"import sys; sys.path.insert(0, {str(site)!r})\n"
        "from oxygen_ros.config import default_config_dirs, load_config\n"
        "print(*default_config_dirs()); print(load_config(preset='aloha', device='cpu').config.robot.name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(tmp_path / "share" / "oxygen_ros" / "config"), "aloha"]


def test_presets_of_the_source_tree_are_found() -> None:
    assert ROOT / "config" in default_config_dirs()
