"""The configuration as parameters of a real node: declared, checked, changed, and read back."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

import rclpy
from rclpy.context import Context
from rclpy.lifecycle import LifecycleNode
from rclpy.parameter import Parameter

from oxygen_ros.config import load_config
from oxygen_ros.config.schema import flatten, oxygen_schema
from oxygen_ros.errors import ConfigError
from oxygen_ros.ros.parameters import NodeParameters, config_dirs

NOT_SET = Parameter.Type.NOT_SET
Start = Callable[..., tuple[LifecycleNode, NodeParameters]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Makes nodes with the given overrides; ends them after the test."""
    context = Context()
    rclpy.init(context=context)
    nodes: list[LifecycleNode] = []

    def make(
        *words: str, before: Callable[[LifecycleNode], object] = id, **overrides: object
    ) -> tuple[LifecycleNode, NodeParameters]:
        node = LifecycleNode(
            "oxygen_node",
            context=context,
            cli_args=["--ros-args", *words] if words else None,
            parameter_overrides=[
                Parameter(name.replace("__", "."), value=v) for name, v in overrides.items()
            ],
        )
        nodes.append(node)
        before(node)
        return node, NodeParameters(node)

    yield make
    for node in nodes:
        node.destroy_node()
    rclpy.shutdown(context=context)


def _set(node: LifecycleNode, name: str, value: object) -> str:
    """Reason why ``name`` was refused, empty if it was set."""
    kind = [NOT_SET] if value is None else []
    result = node.set_parameters([Parameter(name, *kind, value=value)])[0]
    return "" if result.successful else result.reason


def test_node_declares_every_parameter_with_its_descriptor(start: Start) -> None:
    node, parameters = start(preset="libero")
    values = flatten(parameters.load().config)
    for name, spec in oxygen_schema().expand(values).items():
        found = node.describe_parameter(name)
        assert spec.facts.help in found.description
        assert spec.facts.unit in found.description
        assert all(choice in found.additional_constraints for choice in spec.facts.choices)
        assert found.read_only == spec.facts.is_read_only
        ranges = [*found.integer_range, *found.floating_point_range]
        has_bounds = spec.facts.minimum is not None or spec.facts.maximum is not None
        assert bool(ranges) == (has_bounds and spec.kind.value in ("int", "float"))
        shown = node.get_parameter(name).value
        assert shown == (list(values[name]) or [""] if isinstance(values[name], tuple) else values[name])
    assert node.describe_parameter("cycle.action_rate_hz").floating_point_range[0].to_value == 1000.0


def test_node_reads_back_what_the_loader_gives(start: Start) -> None:
    _, parameters = start(preset="aloha", device="cpu")
    assert parameters.load().config == load_config(preset="aloha", device="cpu").config


def test_integer_for_a_float_is_taken_at_start_and_later(start: Start) -> None:
    node, parameters = start(preset="libero", cycle__action_rate_hz=20)
    assert parameters.load().config.cycle.action_rate_hz == 20.0
    assert _set(node, "cycle.action_rate_hz", 21) == ""
    rate = parameters.load().config.cycle.action_rate_hz
    assert (rate, type(rate)) == (21.0, float)


@pytest.mark.parametrize(
    ("overrides", "code", "mend"),
    [
        ({"cycle__action_rate": 20.0}, "unknown_parameter", ("cycle.action_rate", None)),
        ({"robot__cameras__bas__topic": "a"}, "unknown_name", ("robot.cameras.bas.topic", None)),
        ({"cycle__action_rate_hz": "fast"}, "wrong_type", ("cycle.action_rate_hz", 20.0)),
        ({"cycle__action_rate_hz": -1.0}, "out_of_range", ("cycle.action_rate_hz", 20.0)),
        ({"player__mode": "rct"}, "not_a_choice", ("player.mode", "rtc")),
        ({"preset": "libera"}, "unknown_preset", ("preset", "libero")),
        ({"device": "gpu"}, "unknown_device", ("device", "cpu")),
        ({"params_file": "/no/such.yaml"}, "missing_file", ("params_file", "")),
        ({"robot__camera_roles": [""]}, "no_cameras", ("robot.camera_roles", ["base"])),
        ({"robot__joint_names": [""]}, "no_joints", ("robot.joint_names", ["a"])),
        ({"cycle__execute_horizon": 20}, "conflict", ("cycle.execute_horizon", 2)),
    ],
)
def test_node_with_wrong_parameters_lives_and_is_configured_after_they_are_mended(
    start: Start, overrides: dict[str, object], code: str, mend: tuple[str, object]
) -> None:
    node, parameters = start(**{"preset": "libero", **overrides})
    with pytest.raises(ConfigError) as caught:
        parameters.load()
    assert caught.value.code == code
    assert _set(node, *mend) == ""
    assert parameters.load().config.preset == "libero"


def test_unknown_parameter_names_the_nearest_known_one(start: Start) -> None:
    _, parameters = start(preset="libero", cycle__action_rate=20.0)
    with pytest.raises(ConfigError, match=r"cycle\.action_rate_hz"):
        parameters.load()


def test_parameter_deleted_falls_back_to_the_preset(start: Start) -> None:
    node, parameters = start(preset="libero", robot__cameras__base__topic="mine")
    assert parameters.load().config.robot.cameras["base"].topic == "mine"
    assert _set(node, "robot.cameras.base.topic", None) == ""
    assert node.get_parameter("robot.cameras.base.topic").value == "camera/agentview/image_raw"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("cycle.action_rate_hz", 5000.0, "out of range"),
        ("cycle.action_rate_hz", "fast", "Wrong parameter type"),
        ("player.mode", "rct", "receding, ensembling, rtc"),
        ("runner.row_buckets", [0], "1 to 1024"),
        ("robot.cameras.base.qos.reliability", "relaible", "best_effort, reliable"),
        ("robot.cameras.base.qos.depth", "three", "int [messages]"),
        ("autostart", False, "read-only"),
    ],
)
def test_wrong_value_set_on_a_node_is_refused_with_a_reason(
    start: Start, name: str, value: object, words: str
) -> None:
    node, parameters = start(preset="libero")
    before = parameters.load().config
    assert words in _set(node, name, value)
    assert parameters.load().config == before


def test_preset_changed_on_a_node_brings_its_own_sections(start: Start) -> None:
    node, parameters = start(preset="libero")
    parameters.load()
    assert _set(node, "preset", "aloha") == ""
    assert node.get_parameter("robot.cameras.cam_high.topic").value == "cam_high/image_raw"
    assert not node.has_parameter("robot.cameras.base.topic")
    assert node.get_parameter("model.horizon").value == 50
    loaded = parameters.load()
    assert loaded.config.robot.name == "aloha"
    assert loaded.sources["preset"] == "ros2 param set"


def test_camera_added_on_a_node_can_be_given_its_topic(start: Start) -> None:
    node, parameters = start(preset="libero")
    assert _set(node, "robot.camera_roles", ["base", "left_wrist", "right_wrist"]) == ""
    with pytest.raises(ConfigError, match=r"robot\.cameras\.right_wrist\.topic is ''"):
        parameters.load()
    assert _set(node, "robot.cameras.right_wrist.topic", "more") == ""
    assert parameters.load().config.robot.cameras["right_wrist"].topic == "more"


def test_locked_parameters_are_refused_with_the_reason_until_unlocked(start: Start) -> None:
    node, parameters = start(preset="libero")
    parameters.load()
    parameters.lock("the node is configured: clean up first")
    assert "clean up first" in _set(node, "player.mode", "rtc")
    parameters.unlock()
    assert _set(node, "player.mode", "rtc") == ""


def test_autostart_is_known_though_the_rest_is_wrong(start: Start) -> None:
    _, parameters = start(autostart=False, preset="nowhere")
    assert parameters.autostart is False


def test_use_sim_time_in_our_params_file_reaches_the_node(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("use_sim_time: true\npreset: libero\n")
    node, parameters = start(params_file=str(path))
    parameters.load()
    assert node.get_parameter("use_sim_time").value is True


def test_parameters_of_other_code_on_the_node_are_left_alone(start: Start) -> None:
    node, parameters = start(
        preset="libero", somebody__elses=3, before=lambda node: node.declare_parameter("somebody.elses", 2)
    )
    node.declare_parameter("one.more", 1)
    parameters.load()
    assert node.get_parameter("somebody.elses").value == 3
    assert _set(node, "one.more", 4) == ""
    parameters.load()
    assert node.get_parameter("one.more").value == 4


def test_b02_qos_of_a_camera_is_chosen_by_parameters(start: Start) -> None:
    """B02 (a), the part of the parameters."""
    _, parameters = start(
        preset="libero",
        robot__cameras__base__qos__reliability="reliable",
        robot__cameras__base__qos__depth=3,
    )
    qos = parameters.load().config.robot.cameras["base"].qos
    assert (qos.reliability, qos.depth) == ("reliable", 3)


@pytest.mark.parametrize(
    "name", [spec.name for spec in oxygen_schema().parameters if spec.kind.value.startswith("list")]
)
def test_b58_every_list_is_set_from_yaml_and_an_empty_one_is_named(
    start: Start, name: str, tmp_path: Path
) -> None:
    """B58 (b, c): through rcl, as ``--params-file`` of a node does it."""
    is_number = name == "runner.row_buckets"
    path = tmp_path / "p.yaml"
    path.write_text(f"/**: {{ros__parameters: {{{name}: {'[3, 5]' if is_number else '[one, two]'}}}}}\n")
    node, _ = start("--params-file", str(path))
    assert list(node.get_parameter(name).value) == ([3, 5] if is_number else ["one", "two"])
    path.write_text(f"/**: {{ros__parameters: {{{name}: []}}}}\n")
    _, parameters = start("--params-file", str(path))
    with pytest.raises(ConfigError) as caught:
        parameters.load()
    assert caught.value.code == "empty_list"
    assert f"{name} is []" in str(caught.value)


def test_generated_yaml_is_a_params_file_for_ros(start: Start) -> None:
    path = Path(__file__).parents[2] / "config" / "oxygen.yaml"
    _, parameters = start("--params-file", str(path), "-p", "preset:=droid")
    assert parameters.load().config.robot.name == "droid"


def test_config_dirs_are_the_share_folder_and_the_sources() -> None:
    assert all((folder / "presets").is_dir() for folder in config_dirs())
    assert Path(__file__).parents[2] / "config" in [folder.resolve() for folder in config_dirs()]
