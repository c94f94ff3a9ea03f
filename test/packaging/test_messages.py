"""The built messages: complete, commented, equal to the core's types, received by a second process."""

import os
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="needs ROS")

from processes import EXCHANGE, LIMIT_S, exchange, shell

import oxygen_ros.msg
import oxygen_ros.srv
from oxygen_ros.types import CycleStatus, FinishReason, TextKind

ROOT = Path(__file__).resolve().parents[2]
INTERFACES = sorted([*(ROOT / "msg").glob("*.msg"), *(ROOT / "srv").glob("*.srv")])
FIELD = re.compile(r"^(?P<type>[\w/]+(\[\])?) +(?P<name>\w+)(?P<constant>=\S+)?(?P<rest>.*)$")


def fields(path):
    """Return the declarations in a file: (name, whether it is a constant, whether it has a comment)."""
    found = [FIELD.match(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(f["name"], f["constant"] is not None, "#" in f["rest"]) for f in found if f]


@pytest.mark.parametrize("path", INTERFACES, ids=lambda path: path.name)
def test_interface_every_field_commented(path):
    assert fields(path)
    assert [name for name, _, has_comment in fields(path) if not has_comment] == []


@pytest.mark.parametrize("path", INTERFACES, ids=lambda path: path.name)
def test_interface_built_with_the_fields_of_its_file(path):
    wanted = {name for name, is_constant, _ in fields(path) if not is_constant}
    if path.suffix == ".msg":
        built = set(getattr(oxygen_ros.msg, path.stem).get_fields_and_field_types())
    else:
        service = getattr(oxygen_ros.srv, path.stem)
        built = {
            name for part in (service.Request, service.Response) for name in part.get_fields_and_field_types()
        }
    assert built == wanted, "msg/ has changed since the messages were built: scripts/build_messages"


@pytest.mark.parametrize(
    ("message", "prefix", "enum", "extra"),
    [
        ("TextDelta", "FINISH_", FinishReason, {"NONE": 0}),
        ("TextDelta", "KIND_", TextKind, {}),
        ("CycleReport", "STATUS_", CycleStatus, {}),
    ],
)
def test_constants_equal_enums_of_the_core(message, prefix, enum, extra):
    names = [name for name, is_constant, _ in fields(ROOT / "msg" / f"{message}.msg") if is_constant]
    kind = getattr(oxygen_ros.msg, message)
    built = {n.removeprefix(prefix): getattr(kind, n) for n in names if n.startswith(prefix)}
    assert built == {member.name: member.value for member in enum} | extra


def test_messages_second_process_receives_all():
    here = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    assert exchange(here).startswith("received chunk delta player report request")


def test_exchange_without_sender_fails():
    alone = {**os.environ, "ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"}
    command = f"{sys.executable} {EXCHANGE} receive --limit 0.5"
    with pytest.raises(AssertionError, match="wrong or missing: chunk"):
        shell(command, alone, LIMIT_S)
