"""Parameter files: the ROS form and plain YAML give the same; what is broken is refused by file and key."""

from pathlib import Path

import pytest

from oxygen_ros.config.source import is_for_node, read_parameters
from oxygen_ros.errors import ConfigError


def _read(tmp_path: Path, text: str, node: str = "oxygen_node") -> dict[str, object]:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    return read_parameters(path, node)


@pytest.mark.parametrize(
    "text",
    [
        "cycle: {action_rate_hz: 20}\nkv.num_rows: 3",
        "/**:\n  ros__parameters: {cycle: {action_rate_hz: 20}, kv.num_rows: 3}",
        "oxygen_node:\n  ros__parameters: {cycle.action_rate_hz: 20, kv: {num_rows: 3}}",
        "/**:\n  oxygen_node:\n    ros__parameters: {cycle.action_rate_hz: 20, kv: {num_rows: 3}}",
        "/**: {ros__parameters: {cycle.action_rate_hz: 9, kv.num_rows: 3}}\n"
        "oxygen_node: {ros__parameters: {cycle.action_rate_hz: 20}}\n"
        "other: {ros__parameters: {foo: 1}}",
    ],
)
def test_file_in_any_form_gives_the_same_flat_names(text: str, tmp_path: Path) -> None:
    assert _read(tmp_path, text) == {"cycle.action_rate_hz": 20, "kv.num_rows": 3}


@pytest.mark.parametrize("text", ["", "# nothing\n", "/**:\n  ros__parameters:\n"])
def test_file_without_parameters_gives_none(text: str, tmp_path: Path) -> None:
    assert _read(tmp_path, text) == {}


@pytest.mark.parametrize(
    ("section", "node", "is_meant"),
    [
        ("/**", "/left/oxygen_node", True),
        ("/*", "/oxygen_node", True),
        ("oxygen_node", "/left/oxygen_node", True),
        ("/left/oxygen_node", "/left/oxygen_node", True),
        ("/left/oxygen_node", "oxygen_node", True),
        ("/**/oxygen_node", "/left/oxygen_node", True),
        ("/left/**", "/left/oxygen_node", True),
        ("/left/**", "/left/arm/oxygen_node", True),
        ("/left/**", "/right/oxygen_node", False),
        ("/left/oxygen_node", "/right/oxygen_node", False),
        ("/left/oxygen_node", "/oxygen_node", False),
        ("action_player", "/oxygen_node", False),
    ],
)
def test_section_is_for_the_nodes_that_ros_means(section: str, node: str, is_meant: bool) -> None:
    assert is_for_node(section, node) is is_meant


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("cycle: [", "bad_yaml", "not valid YAML"),
        ("- a\n- b", "bad_yaml", "holds a list"),
        ("just words", "bad_yaml", "holds a str"),
        ("kv: {num_rows: 1}\nkv: {num_rows: 2}", "bad_yaml", "'kv' is given twice, again in line 2"),
        ("kv: {num_rows: 1}\nkv.num_rows: 2", "bad_yaml", "kv.num_rows twice, nested and dotted"),
        ("/**:\n  ros__parameters: {}\nkv: 3", "bad_yaml", "'/kv' stands outside ros__parameters"),
        ("/**:\n  ros__parameters: 3", "bad_yaml", "holds a int"),
        ("oxygen_nod:\n  ros__parameters: {kv.num_rows: 1}", "no_section", "its sections: /oxygen_nod"),
        ("a: !!python/object/apply:os.getcwd []", "bad_yaml", "not valid YAML"),
    ],
)
def test_file_broken_is_refused_by_name(text: str, code: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        _read(tmp_path, text)
    assert caught.value.code == code
    assert words in str(caught.value)
    assert "p.yaml" in str(caught.value)


def test_file_not_in_utf8_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes(b"robot.name: \xff\xfe\n")
    with pytest.raises(ConfigError, match=r"p\.yaml") as caught:
        read_parameters(path, "oxygen_node")
    assert caught.value.code == "missing_file"


def test_anchors_and_merge_keys_work(tmp_path: Path) -> None:
    text = "a: &x {max_step: 1, position_min: 2}\nb: *x\nc: {<<: *x, max_step: 3}\n"
    flat = _read(tmp_path, text)
    assert flat["b.max_step"] == 1
    assert flat["c.max_step"] == 3
    assert flat["c.position_min"] == 2
