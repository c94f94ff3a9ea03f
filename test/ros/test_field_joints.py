"""Field cases of joints, with real messages on real topics."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from ros_bench import JOINTS, bench
from sensor_msgs.msg import JointState

from oxygen_ros.config import QosConfig
from oxygen_ros.ros import conversions, qos

SIX = ["j1", "j2", "j3", "j4", "j5", "j6"]
SHUFFLED = ["j1", "j2", "j4", "j5", "j3", "j6"]


def _feed(b, names, positions):
    def feed() -> None:
        b.probe.send_picture()
        b.probe.send_joints(names, positions)

    return feed


def test_b17_state_and_commands_follow_names():
    with bench(robot__joint_names=SIX) as b:
        b.feed = _feed(b, SHUFFLED, (1, 2, 4, 5, 3, 6))
        b.brain()
        b.until(b.acted, "an action")
        np.testing.assert_array_equal(b.mailbox().take().state, [1, 2, 3, 4, 5, 6])
        chunk = [c for c in b.got("action_chunk") if c.horizon][-1]
        trajectory = b.until(lambda: b.got("joint_trajectory"), "a trajectory")[-1]
        assert chunk.joint_names == SIX
        assert trajectory.joint_names == SIX
        start = np.reshape(chunk.actions, (16, 6))[0]
        assert np.abs(start - [1, 2, 3, 4, 5, 6]).max() < 1, "each column starts at its own joint"


def test_b18_message_that_lacks_a_joint_gives_no_action_and_names_it():
    with bench(robot__joint_names=SIX) as b:
        b.feed = _feed(b, SIX, range(6))
        brain = b.brain()
        b.until(b.acted, "an action")
        b.feed = _feed(b, SIX[:3] + SIX[4:], range(5))
        b.until(lambda: brain.refusals.counts().get("lost_joints", 0) > 2, "the count")
        b.until(
            lambda: any("missing j4; available j1, j2, j3, j5, j6" in r for r in b.reasons()),
            "the reason",
            30,
        )


def test_b18_b24_preset_of_another_robot_fails_at_configure_with_the_difference():
    with bench(robot__joint_names=[*SIX, "elbow"]) as b:
        b.feed = _feed(b, SIX, range(6))
        b.until(lambda: b.probe.count_publishers(f"{b.namespace}/joint_states"), "the robot")
        brain = b.brain()
        health = b.until(lambda: (h := b.health("oxygen_node: state")) and h.level == b"\x02" and h, "ERROR")
        assert "joints_not_on_robot" in health.message
        assert "elbow" in health.message
        assert "j1, j2, j3, j4, j5, j6" in health.message
        assert brain.state == "unconfigured"


def test_b18_union_of_two_topics_is_accepted():
    two = {
        "robot.joint_topic_names": ["arm", "hand"],
        "robot.joint_topics.joints.max_age_s": None,
        "robot.joint_topics.arm.topic": "joint_states",
        "robot.joint_topics.hand.topic": "hand/joint_states",
        "robot.joint_topics.arm.max_age_s": 5.0,
        "robot.joint_topics.hand.max_age_s": 5.0,
        "robot.joint_topics.hand.name_prefix": "right_",
        "robot.joint_names": ["j1", "j2", "right_thumb"],
    }
    with bench(**two) as b:
        b.probe.add_sender("hand", JointState, "hand/joint_states", qos.sensor(QosConfig()))

        def feed() -> None:
            b.probe.send_picture()
            b.probe.send_joints(("j2", "j1"), (2, 1))
            b.probe.send("hand", conversions.to_joint_state(("thumb",), np.array([9.0]), b.probe.now_ns()))

        b.feed = feed
        b.brain()
        b.until(b.acted, "an action")
        np.testing.assert_array_equal(b.mailbox().take().state, [1, 2, 9])


def test_b19_nan_position_is_counted_and_holds_when_it_lasts():
    with bench(robot__joint_topics__joints__max_age_s=0.3) as b:
        brain = b.brain()
        b.until(b.acted, "an action")
        b.feed = None
        b.spin_s(0.1)
        b.probe.send_joints(positions=(0.1, math.nan, 0.3))
        b.until(lambda: brain.refusals.counts().get("nan_state", 0) == 1, "the count")
        b.feed = _feed(b, JOINTS, (0.1, math.nan, 0.3))
        b.until(lambda: any("position is not a number: j2" in reason for reason in b.reasons()), "hold")
        before = len(b.acted())
        b.spin_s(0.5)
        assert len(b.acted()) == before
        b.feed = b.probe.feed
        b.until(lambda: len(b.acted()) > before, "an action again")
        assert all(np.isfinite(c.actions).all() for c in b.got("action_chunk"))


def test_b19_nan_velocities_and_efforts_are_ignored():
    with bench() as b:

        def feed() -> None:
            b.probe.send_picture()
            message = conversions.to_joint_state(JOINTS, np.zeros(3), b.probe.now_ns())
            message.velocity = message.effort = [math.nan] * 3
            b.probe.send("joints", message)

        b.feed = feed
        brain = b.brain()
        b.until(lambda: len(b.acted()) > 2, "actions")
        assert not brain.refusals.counts()


def test_b21_no_action_before_the_first_joint_message():
    with bench() as b:
        b.feed = b.probe.send_picture
        b.brain()
        b.until(lambda: "waiting: joints" in b.reasons(), "the reason")
        b.spin_s(1.0)
        assert not b.acted()
        assert not b.got("action_chunk")
        b.probe.send_joints()
        b.until(b.acted, "the first action")


@pytest.mark.parametrize(("names", "positions"), [(("a", "b", "c"), (1.0,)), (JOINTS, ()), ((), (1.0, 2.0))])
def test_b22_names_and_positions_that_do_not_fit_are_refused(names, positions):
    with bench() as b:
        brain = b.brain()
        b.feed = _feed(b, names, positions)
        b.until(lambda: brain.refusals.counts().get("bad_joints", 0) > 2, "the count")
        assert not b.acted()
        b.feed = b.probe.feed
        b.until(b.acted, "an action on good joints")
        assert brain.state == "active"


def test_b24_order_of_names_may_change_from_message_to_message():
    names = [f"joint_{i}" for i in range(29)]
    with bench(robot__joint_names=names) as b:
        b.feed = _feed(b, names, range(29))
        b.brain()
        b.until(b.acted, "an action")
        first = b.mailbox().take().state
        order = np.random.default_rng(4).permutation(29)
        b.feed = _feed(b, [names[i] for i in order], [float(i) for i in order])
        seen = len(b.acted())
        b.until(lambda: len(b.acted()) > seen + 2, "actions")
        np.testing.assert_array_equal(b.mailbox().take().state, first)
