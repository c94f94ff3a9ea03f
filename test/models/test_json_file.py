"""JSON of checkpoints: every wrong type is refused with file, key, got and wanted."""

import json

import pytest

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.json_file import JsonObject, read_json

GETTERS = {
    "a string": ("text", [1, None, [], {}]),
    "a whole number of at least 0": ("integer", ["50", 1.5, True, -1, None]),
    "a number": ("number", ["1", True, None, float("inf")]),
    "true or false": ("flag", [0, 1, "true", None]),
    "an object": ("child", [[], "x", None]),
    "a list of strings": ("texts", ["x", [1], None]),
    "a list of whole numbers": ("integers", [1, ["1"], [1.5], [True], [-1]]),
    "a list of numbers": ("numbers", [1.0, ["1"], [None], [True]]),
    "a list of objects": ("children", [{}, [1]]),
}


@pytest.mark.parametrize(
    ("wanted", "getter", "value"),
    [(wanted, getter, value) for wanted, (getter, values) in GETTERS.items() for value in values],
)
def test_wrong_type_is_refused_by_key_got_and_wanted(wanted, getter, value):
    with pytest.raises(CheckpointError) as caught:
        getattr(JsonObject("config.json", {"key": value}), getter)("key")
    assert caught.value.code == "json_value"
    assert caught.value.message == f"config.json: key is {json.dumps(value)}, want {wanted}"


def test_right_types_are_given_back():
    found = JsonObject(
        "f", {"a": "x", "b": 3, "c": 1.5, "d": True, "e": {"f": 1}, "g": [1, 2], "h": [{"i": 2}]}
    )
    assert (found.text("a"), found.integer("b"), found.number("c"), found.flag("d")) == ("x", 3, 1.5, True)
    assert found.child("e").integer("f") == 1
    assert found.integers("g") == (1, 2)
    assert found.numbers("g") == (1.0, 2.0)
    assert found.children("h")[0].integer("i") == 2


def test_missing_key_is_refused_with_its_place():
    with pytest.raises(CheckpointError, match=r"f: e lacks 'x'"):
        JsonObject("f", {"e": {}}).child("e").text("x")


@pytest.mark.parametrize("content", ["", "{", "[1]", "null", "\x00", '{"a": 1'])
def test_file_that_holds_no_object_is_refused(tmp_path, content):
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(CheckpointError) as caught:
        read_json(path)
    assert caught.value.code == "json_broken"
    assert str(path) in caught.value.message


def test_file_of_deep_nesting_or_wrong_bytes_is_refused(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("[" * 200_000)
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_json(path)
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_json(path)
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_json(tmp_path / "absent.json")
