"""Messages in bags are those that the nodes send, byte for byte; definitions are those of msg/."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from oxygen_ros.replay.bag.definitions import DEFINITIONS
from oxygen_ros.replay.bag.message_types import MessageTypes
from oxygen_ros.replay.messages import MessageMaker
from oxygen_ros.runtime.playback import Mode, PlayerStatus
from oxygen_ros.types import (
    ActionChunk,
    CycleReport,
    CycleStatus,
    FinishReason,
    MemoryUse,
    TextDelta,
    TextKind,
)

MSG = Path(__file__).parents[2] / "msg"
STAMP_NS = 1_700_000_000_123_456_789
CHUNK = ActionChunk(
    observation_id=7,
    stamp_ns=STAMP_NS,
    cycle_id=8,
    chunk_id=9,
    expert="arm",
    instruction="lift \N{SNOWMAN}",
    joint_names=("a", "b"),
    actions=np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], np.float32),
    dt_ns=20_000_000,
    execute_horizon=2,
    latency_ns=71_234_567,
    actions_played=41,
)
DELTA = TextDelta(
    request_id="ask-1",
    task="ask",
    kind=TextKind.MEMORY,
    observation_id=7,
    stamp_ns=STAMP_NS,
    seq=2,
    text="caf\u00e9",
    num_tokens=3,
    finish_reason=FinishReason.LENGTH,
    detail="cut",
)
REPORT = CycleReport(
    cycle_id=8,
    observation_id=7,
    stamp_ns=STAMP_NS,
    status=CycleStatus.HOLDING,
    reason="stale",
    period_ns=333_000_001,
    slack_ns=-5,
    is_late=True,
    decode_steps=4,
    memory=MemoryUse(1, 4, 2, 8, 12345),
    refusals={"stale": 2, "nan_state": 1},
)
PLAYER = PlayerStatus(Mode.HOLDING, 9, 3, 44, 1, 2, "chunk used up")


def test_definitions_are_those_of_the_message_files():
    assert {f"oxygen_ros/msg/{path.stem}" for path in MSG.glob("*.msg")} >= set(DEFINITIONS)
    for name, text in DEFINITIONS.items():
        lines = (MSG / f"{name.rpartition('/')[2]}.msg").read_text().splitlines()
        wanted = [bare for line in lines if (bare := re.sub(r"\s*#.*", "", line).strip())]
        assert text.splitlines() == wanted, name


def test_messages_are_those_of_the_nodes_byte_for_byte():
    serialization = pytest.importorskip("rclpy.serialization", reason="rclpy is not installed")
    from oxygen_ros.msg import PlayerState
    from oxygen_ros.ros import conversions as ros

    types = MessageTypes()
    make = MessageMaker(types)
    ros.fill_player_state(state := PlayerState(), PLAYER, False, STAMP_NS)
    for ours, theirs in (
        (make.chunk(CHUNK), ros.to_chunk_message(CHUNK)),
        (make.delta(DELTA), ros.to_delta_message(DELTA)),
        (make.report(REPORT, 5), ros.to_report_message(REPORT, 5)),
        (make.player(PLAYER, STAMP_NS), state),
    ):
        # Read and written again: what stands between fields is not defined in CDR.
        sent = types.read(ours.__msgtype__, serialization.serialize_message(theirs))
        assert types.write(ours) == types.write(sent), ours.__msgtype__


def test_type_of_a_bag_is_known_to_that_bag_only():
    from oxygen_ros.replay.bag.record import Topic

    custom = Topic("/x", "maker_msgs/msg/Grip", "float32 width\n", "ros2msg")
    types = MessageTypes()
    assert types.learn(custom)
    assert not MessageTypes().learn(Topic("/x", "maker_msgs/msg/Grip"))
    assert types.read("maker_msgs/msg/Grip", b"\0\1\0\0\0\0\x80\x3f").width == 1.0
