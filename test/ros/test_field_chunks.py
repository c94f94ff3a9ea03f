"""Chunks on their way to the player: damaged, stale, beyond limits, of two experts, guided."""

from __future__ import annotations

import itertools
from array import array

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from ros_bench import JOINTS, bench

from oxygen_ros.msg import ActionChunk
from oxygen_ros.ros import conversions


def _chunk(b, number: int, value: float = 0.1, **changes) -> ActionChunk:
    message = ActionChunk(
        chunk_id=number,
        observation_id=number,
        expert="default",
        joint_names=list(JOINTS),
        dt_s=0.05,
        horizon=10,
        action_dim=3,
        execute_horizon=4,
        actions=array("f", [value] * 30),
    )
    message.header.stamp = conversions.to_time(b.probe.now_ns())
    for name, value_ in changes.items():
        setattr(message, name, value_)
    return message


DAMAGED = {
    "nan": ({"actions": array("f", [float("nan")] * 30)}, "nan_action"),
    "infinite": ({"actions": array("f", [float("inf")] * 30)}, "nan_action"),
    "sizes": ({"horizon": 11}, "malformed_chunk"),
    "names": ({"joint_names": ["j1", "j1", "j2"]}, "malformed_chunk"),
    "another robot": ({"joint_names": ["a", "b", "c"]}, "unknown_joints"),
    "rate": ({"dt_s": 0.02}, "other_rate"),
    "no rate": ({"dt_s": 0.0}, "malformed_chunk"),
    "horizon": ({"execute_horizon": 0}, "malformed_chunk"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_chunk_is_counted_and_never_played(case):
    changes, kind = DAMAGED[case]
    with bench(safety__max_chunk_age_s=5.0) as b:
        player = b.player()
        b.feed = b.probe.send_joints
        b.until_state(player, "active")
        b.until(lambda: b.got("state"), "the player's state")
        b.probe.send("chunk", _chunk(b, 1, 9.0, **changes))
        b.until(lambda: player.refusals.counts().get(kind, 0) == 1, f"{kind}, got {player.refusals.counts()}")
        b.spin_s(0.3)
        assert not b.got("joint_command")
        b.probe.send("chunk", _chunk(b, 2))
        b.until(lambda: b.got("joint_command"), "a good chunk is played")
        assert player.state == "active"


def test_stale_chunk_is_refused():
    with bench(safety__max_chunk_age_s=2.0) as b:
        player = b.player()
        b.feed = b.probe.send_joints
        b.until_state(player, "active")
        b.until(lambda: b.got("state"), "the player's state")
        message = _chunk(b, 1)
        message.header.stamp = conversions.to_time(b.probe.now_ns() - 3 * 10**9)
        b.probe.send("chunk", message)
        b.until(lambda: player.refusals.counts().get("stale_chunk", 0) == 1, "the count")
        assert not b.got("joint_command")


def test_two_experts_are_played_together():
    two = {"model.experts": ["left", "right"], "robot.joint_names": ["l1", "l2", "r1", "r2"]}
    with bench(**two) as b:
        b.feed = lambda: (b.probe.send_picture(), b.probe.send_joints(("l1", "l2", "r1", "r2"), (0, 0, 0, 0)))
        b.brain()
        b.player()
        b.until(lambda: len(b.got("joint_command")) > 5, "commands")
        chunks = [c for c in b.got("action_chunk") if c.horizon]
        assert {(c.expert, tuple(c.joint_names)) for c in chunks} == {
            ("left", ("l1", "l2")),
            ("right", ("r1", "r2")),
        }
        assert all(len(c.data) == 4 for c in b.got("joint_command"))
        last = np.array(b.got("joint_command")[-1].data)
        assert np.count_nonzero(last) == 4, "both halves move"


def test_rtc_chunks_begin_with_what_is_still_played_of_the_last_one():
    slow = {"player.mode": "rtc", "player.rtc_execution_horizon": 8, "runner.fake.act_ms": 130.0}
    with bench(**slow) as b:
        b.brain()
        b.player()

        def seams() -> list[tuple[ActionChunk, ActionChunk]]:
            """Pairs of chunks of which the second was made while the first was played."""
            chunks = [c for c in b.got("action_chunk") if c.horizon]
            return [
                (one, two)
                for one, two in itertools.pairwise(chunks)
                if 0 < one.actions_played < two.actions_played < one.actions_played + 16
            ]

        b.until(lambda: len(seams()) > 5, "seams")
        for one, two in seams()[1:]:
            first, second = (np.reshape(c.actions, (16, 3)) for c in (one, two))
            row = two.actions_played - one.actions_played
            np.testing.assert_allclose(second[0], first[row], atol=1e-6)
        health = b.until(lambda: b.health("oxygen_node: cycle"), "health")
        assert {v.key: v.value for v in health.values}["delay_actions"] in {"2", "3", "4", "5", "6"}


def test_limits_of_joints_hold_on_every_command():
    limits = {
        "robot.joints.j1.position_max": 0.15,
        "robot.joints.j2.max_step": 0.01,
        "robot.joints.j3.max_velocity": 0.4,
    }
    with bench(**limits) as b:
        player = b.player()
        b.feed = lambda: b.probe.send_joints(positions=(0.1, 0.2, 0.3))
        b.until_state(player, "active")
        b.until(lambda: b.got("state"), "the player's state")
        b.until(lambda: player._parts.player._pose.measured()[0] == pytest.approx(0.1), "measured joints")
        b.probe.send("chunk", _chunk(b, 1, 5.0))
        b.until(lambda: len(b.got("joint_command")) >= 5, "commands")
        sent = np.array([c.data for c in b.got("joint_command")][:5])
        assert sent[:, 0].max() <= 0.15 + 1e-9
        assert np.abs(np.diff(np.r_[0.2, sent[:, 1]])).max() <= 0.01 + 1e-9
        assert np.abs(np.diff(np.r_[0.3, sent[:, 2]])).max() <= 0.4 * 0.05 + 1e-9
        b.until(lambda: b.got("state")[-1].steps_clamped >= 15, "a state that counts the clamped steps")
