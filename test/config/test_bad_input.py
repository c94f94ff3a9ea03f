"""Each wrong value is refused by name, with what was got, what is wanted, and the nearest right one."""

from pathlib import Path
from typing import Any

import pytest

from oxygen_ros.config import load_config
from oxygen_ros.config.schema import ValueKind, oxygen_schema
from oxygen_ros.errors import ConfigError


def refusal(overrides: dict[str, Any] | None = None, **sources: Any) -> ConfigError:
    """What loading the LIBERO preset with ``overrides`` is refused with."""
    with pytest.raises(ConfigError) as caught:
        load_config(**{"preset": "libero", **sources}, overrides=overrides)
    return caught.value


@pytest.mark.parametrize(
    ("overrides", "code", "words"),
    [
        (
            {"cycle.action_rate": 20.0},
            "unknown_parameter",
            ["cycle.action_rate ", "Try: cycle.action_rate_hz"],
        ),
        ({"max_token": 20}, "unknown_parameter", ["max_token", "Try: text.max_tokens"]),
        ({"robot.cameras.base.topc": "a"}, "unknown_parameter", ["Try: robot.cameras.base.topic"]),
        ({"xyzzy_qqq": 1}, "unknown_parameter", ["xyzzy_qqq", "docs/parameters.md"]),
        (
            {"robot.cameras.bas.topic": "a"},
            "unknown_name",
            ["role 'bas'", "base, left_wrist", "cameras.base"],
        ),
        ({"text.tasks.memry.max_tokens": 4}, "unknown_name", ["task 'memry'", "ask, subtask, memory"]),
        ({"cycle.action_rate_hz": "20"}, "wrong_type", ["cycle.action_rate_hz", "str '20'", "float [Hz]"]),
        ({"cycle.action_rate_hz": True}, "wrong_type", ["bool True", "float [Hz]"]),
        ({"cycle.action_rate_hz": None}, "wrong_type", ["nothing", "float [Hz]"]),
        ({"cycle.execute_horizon": 5.0}, "wrong_type", ["float 5.0", "int [actions]", "write 5"]),
        ({"cycle.execute_horizon": True}, "wrong_type", ["bool True", "int"]),
        ({"text.enabled": 1}, "wrong_type", ["int 1", "bool", "true or false"]),
        ({"instruction": 3}, "wrong_type", ["instruction is int 3", "quotes"]),
        ({"robot.name": True}, "wrong_type", ["robot.name is bool True", "quotes"]),
        ({"robot.joint_names": "a"}, "wrong_type", ["robot.joint_names is str 'a'", "[a, b]"]),
        ({"robot.joint_names": ["a", 1]}, "wrong_type", ["int 1", "list of string"]),
        ({"runner.row_buckets": [1, 2.5]}, "wrong_type", ["float 2.5", "list of int"]),
        (
            {"cycle.action_rate_hz": 2000},
            "out_of_range",
            ["2000", "0.1 to 1000", "Try: cycle.action_rate_hz: 1000"],
        ),
        ({"cycle.action_rate_hz": float("nan")}, "out_of_range", ["not a number", "0.1 to 1000"]),
        ({"cycle.action_rate_hz": float("inf")}, "out_of_range", ["inf", "0.1 to 1000"]),
        ({"kv.num_prefixes": 1}, "out_of_range", ["kv.num_prefixes is 1", "2 to 256"]),
        ({"kv.memory_limit_mb": 0}, "out_of_range", ["at least 1"]),
        ({"runner.row_buckets": [0, 1]}, "out_of_range", ["runner.row_buckets is 0", "1 to 1024"]),
        (
            {"runner.kind": "eagr"},
            "not_a_choice",
            ["eagr", "eager, compiled, fake", "Try: runner.kind: eager"],
        ),
        ({"robot.joint_names": ["a", "a"]}, "repeated_name", ["robot.joint_names", "more than once: a"]),
        ({"text.task_names": ["what next"]}, "bad_name", ["text.task_names", "'what next'", "what_next"]),
        ({"robot.cameras.base.topic": "a b"}, "bad_topic", ["robot.cameras.base.topic is 'a b'"]),
        ({"topics.text": ""}, "bad_topic", ["topics.text is ''"]),
        ({"cycle.execute_horizon": 11}, "conflict", ["execute_horizon is 11", "model.horizon 10"]),
        ({"kv.row_capacity": 100}, "conflict", ["kv.row_capacity is 100", "Try: kv.row_capacity: 128"]),
        (
            {"text.tasks.ask.max_tokens": 65},
            "conflict",
            ["text.tasks.ask.max_tokens is 65", "text.max_tokens 64"],
        ),
        (
            {"player.mode": "rtc", "player.rtc_execution_horizon": 11},
            "conflict",
            ["rtc_execution_horizon is 11"],
        ),
        (
            {"player.output": "trajectory"},
            "conflict",
            ["player.output is trajectory", "eef_delta_x", "Try: player.output: array"],
        ),
        ({"player.output": "joint_state"}, "conflict", ["player.output is joint_state", "carries positions"]),
        ({"robot.gripper_joints": ["claw"]}, "unknown_name", ["'claw'", "eef_position_x"]),
        (
            {"robot.gripper_joints": ["gripper"], "robot.grippers.gripper.open": 0},
            "conflict",
            ["robot.grippers.gripper.open", "both 0"],
        ),
        ({"robot.joints.gripper.position_min": 1.0}, "conflict", ["position_min is 1", "position_max 1"]),
        (
            {"robot.cameras.left_wrist.slot": "base_0_rgb"},
            "conflict",
            ["base, left_wrist", "same slot 'base_0_rgb'"],
        ),
        (
            {"robot.cameras.base.required": False, "robot.cameras.left_wrist.required": False},
            "conflict",
            ["required: true"],
        ),
        ({"runner.kind": "fake", "runner.fake.script": [""]}, "conflict", ["runner.fake.script"]),
        ({"model.experts": [""]}, "conflict", ["model.experts", "[default]"]),
    ],
)
def test_parameter_wrong_is_refused_with_code_and_words(
    overrides: dict[str, Any], code: str, words: list[str]
) -> None:
    error = refusal(overrides)
    assert error.code == code
    for word in words:
        assert word in str(error)


def test_parameter_wrong_in_a_file_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("cycle: {action_rate_hz: fast}\n")
    assert f"params file {path}" in str(refusal(params_file=path))


@pytest.mark.parametrize(("kind", "known"), [("preset", "libero"), ("device", "jetson_agx_thor")])
def test_choice_unknown_lists_those_that_exist(kind: str, known: str) -> None:
    error = refusal(**{kind: known[:-1]})
    assert error.code == f"unknown_{kind}"
    assert known in error.message
    assert error.suggestion == f"{kind}: {known}"


def test_preset_without_any_folder_says_where_it_looked() -> None:
    error = refusal(config_dirs=[Path("/nowhere")])
    assert "/nowhere" in str(error)


def test_params_file_missing_is_named() -> None:
    error = refusal(params_file="/no/such/file.yaml")
    assert error.code == "missing_file"
    assert "/no/such/file.yaml" in str(error)


def test_params_file_that_is_a_folder_is_named(tmp_path: Path) -> None:
    assert refusal(params_file=tmp_path).code == "missing_file"


def test_preset_file_that_chooses_a_device_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("device: cpu\n")
    error = refusal(preset=str(path))
    assert error.code == "conflict"
    assert "mine.yaml sets device" in str(error)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("robot.camera_roles", "no_cameras"),
        ("robot.joint_names", "no_joints"),
        ("robot.joint_topic_names", "no_joints"),
    ],
)
def test_names_none_given_says_how_to_give_them(name: str, code: str) -> None:
    error = refusal({name: [""]})
    assert error.code == code
    assert name in str(error)
    assert error.suggestion


def test_configuration_without_a_robot_asks_for_a_preset() -> None:
    error = refusal(preset=None)
    assert error.code == "no_cameras"
    assert "preset" in error.suggestion


def test_b02_qos_typo_is_refused_with_the_allowed_values() -> None:
    """B02 (b): a misspelt reliability must not fall back to a default."""
    error = refusal({"robot.cameras.base.qos": {"reliability": "relaible"}})
    assert error.code == "not_a_choice"
    assert "robot.cameras.base.qos.reliability is 'relaible'" in str(error)
    assert "best_effort, reliable" in str(error)
    assert error.suggestion == "robot.cameras.base.qos.reliability: reliable"


@pytest.mark.parametrize(
    "name", [spec.name for spec in oxygen_schema().parameters if spec.kind.value.startswith("list")]
)
def test_b58_empty_list_in_yaml_gets_a_clear_message(name: str, tmp_path: Path) -> None:
    """B58 (b): ROS cannot type an empty list; the node used to die on it."""
    path = tmp_path / "p.yaml"
    path.write_text(f"/**:\n  ros__parameters:\n    {name}: []\n")
    error = refusal(params_file=path)
    assert error.code == "empty_list"
    assert f"{name} is []" in str(error)
    assert "no type in ROS" in str(error)


def test_b58_empty_list_in_a_section_gets_a_clear_message() -> None:
    """B58 (b), for a list of a named section."""
    assert refusal({"text.tasks.ask.stop_strings": []}).code == "empty_list"


def test_lists_of_the_schema_are_all_of_a_kind_that_ros_has() -> None:
    kinds = {spec.kind for spec in oxygen_schema().parameters if isinstance(spec.default, tuple)}
    assert kinds == {ValueKind.STRING_LIST, ValueKind.INT_LIST}
