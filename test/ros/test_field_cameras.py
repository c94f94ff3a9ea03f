"""Field cases of cameras and transport, with real messages on real topics."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from rclpy.qos import ReliabilityPolicy
from ros_bench import bench
from sensor_msgs.msg import Image

from oxygen_ros.config import QosConfig
from oxygen_ros.msg import ActionChunk, CycleReport
from oxygen_ros.ros import conversions, qos

MS = 1_000_000
S = 1_000 * MS


def _log(capfd) -> str:
    return capfd.readouterr().err


def _arrivals(box) -> list:
    """Pictures that reach the mailbox, good or bad, from now on."""
    got, put = [], box.put_picture
    box.put_picture = lambda *args: (put(*args), got.append(args))
    return got


def _no_action(b, seconds: float = 0.5) -> None:
    before = len(b.acted())
    b.spin_s(seconds)
    assert len(b.acted()) == before


def test_b01_best_effort_camera_is_heard_by_default():
    with bench() as b:
        b.brain()
        got = _arrivals(b.mailbox())
        b.until(lambda: got, "the first picture")
        got.clear()
        b.feed = None
        for number in range(20):
            b.probe.send_picture(number)
            b.until(lambda number=number: len(got) > number, "the picture", limit_s=5)
        assert len(got) >= 18


def test_b01_reliable_subscription_to_a_best_effort_camera_is_an_error_by_name(capfd):
    with bench(robot__cameras__front__qos__reliability="reliable") as b:
        b.brain()
        health = b.until(
            lambda: (h := b.health("inputs")) and h.level == b"\x02" and h, "ERROR within a moment"
        )
        assert "front/image" in health.message
        assert "reliability" in health.message
        _no_action(b)
        log = _log(capfd)
        assert "[ERROR]" in log
        assert "front/image" in log


def test_b02_quality_of_service_is_the_configured_one():
    with bench(robot__cameras__front__qos__reliability="reliable", robot__cameras__front__qos__depth=3) as b:
        brain = b.brain()
        b.mailbox()
        topic = f"{b.namespace}/front/image"
        seen = [i for i in b.probe.get_subscriptions_info_by_topic(topic) if i.node_name == "oxygen_node"]
        assert [i.qos_profile.reliability for i in seen] == [ReliabilityPolicy.RELIABLE]
        own = [s.qos_profile.depth for s in brain.subscriptions if s.topic_name == topic]
        assert own == [3]


def test_b02_misspelt_policy_fails_with_key_and_allowed_values():
    with bench(robot__cameras__front__qos__reliability="relaible") as b:
        brain = b.brain()
        health = b.until(lambda: (h := b.health("oxygen_node: state")) and h.level == b"\x02" and h, "ERROR")
        for word in ("robot.cameras.front.qos.reliability", "relaible", "best_effort", "reliable"):
            assert word in health.message
        assert brain.state == "unconfigured"


def test_b10_pictures_that_are_not_used_are_not_read():
    with bench() as b:
        b.brain()
        box = b.mailbox()
        b.feed = lambda: [b.probe.feed() for _ in range(5)]
        b.until(lambda: len(b.acted()) >= 10, "actions")
        assert box.num_decodes <= max(r.cycle_id for r in b.got("cycle_report")) + 1


def test_b12_frozen_stamp_acts_and_is_said_once(capfd):
    with bench() as b:
        b.brain()
        b.mailbox()
        frozen = b.probe.now_ns()
        b.feed = lambda: (b.probe.send_joints(), b.probe.send_picture(stamp_ns=frozen))
        b.until(lambda: len(b.acted()) >= 15, "actions")
        assert _log(capfd).count("stamp not advancing: front/image") == 1


def test_b12_frozen_stamp_holds_when_headers_are_asked_for():
    with bench(robot__sync__stale_clock="header", robot__cameras__front__max_age_s=0.2) as b:
        b.brain()
        b.mailbox()
        frozen = b.probe.now_ns()
        b.feed = lambda: (b.probe.send_joints(), b.probe.send_picture(stamp_ns=frozen))
        b.until(lambda: any(reason.startswith("stale: camera front") for reason in b.reasons()), "stale")
        _no_action(b)


def test_b13_stamps_that_go_back_are_counted_exactly():
    with bench() as b:
        brain = b.brain()
        got = _arrivals(b.mailbox())
        b.until(b.acted, "an action")
        b.feed = None
        b.spin_s(0.2)
        start = b.probe.now_ns()
        for offset_ms in (0, 33, 167, 67, 100, 133, 200):
            number = len(got)
            b.probe.send_picture(stamp_ns=start + offset_ms * MS)
            b.until(lambda number=number: len(got) > number, "the picture")
        assert brain.refusals.counts()["out_of_order"] == 3


def test_b13_stamp_of_the_future_is_refused():
    with bench() as b:
        brain = b.brain()
        b.mailbox()
        b.feed = lambda: (
            b.probe.send_joints(),
            b.probe.send_picture(stamp_ns=b.probe.now_ns() + 5 * S),
        )
        b.until(lambda: brain.refusals.counts().get("future_stamp", 0) > 3, "the count")
        _no_action(b)
        assert not b.acted()


def test_b14_unstamped_camera_acts_by_default_and_is_said_once(capfd):
    with bench() as b:
        b.brain()
        b.mailbox()
        b.feed = lambda: (b.probe.send_joints(), b.probe.send_picture(stamp_ns=0))
        b.until(lambda: len(b.acted()) >= 5, "actions")
        assert _log(capfd).count("unstamped: front/image") == 1
        assert all(r.header.stamp.sec > 0 for r in b.acted())


def test_b14_unstamped_camera_is_refused_when_headers_pair_the_streams():
    with bench(robot__sync__mode="header") as b:
        b.brain()
        b.mailbox()
        b.feed = lambda: (b.probe.send_joints(), b.probe.send_picture(stamp_ns=0))
        b.until(lambda: "unstamped: front/image" in b.reasons(), "the reason")
        assert not b.acted()


TWO_CAMERAS = {
    "robot.camera_roles": ["front", "wrist"],
    "robot.cameras.wrist.topic": "wrist/image",
    "robot.cameras.wrist.max_age_s": 0.5,
}


def test_b15_camera_that_stops_is_named_once_and_resumes_by_itself(capfd):
    with bench(**TWO_CAMERAS) as b:
        b.brain()
        b.probe.add_sender("wrist", Image, "wrist/image", qos.sensor(QosConfig()))
        picture = np.zeros((4, 4, 3), np.uint8)

        def both() -> None:
            b.probe.feed()
            b.probe.send("wrist", conversions.to_image(picture, b.probe.now_ns()))

        b.feed = both
        b.until(lambda: len(b.acted()) > 3, "actions")
        b.feed = b.probe.feed
        b.until(lambda: any("stale: camera wrist" in reason for reason in b.reasons()), "stale")
        _no_action(b)
        b.feed = both
        before = len(b.got("cycle_report"))
        b.until(
            lambda: len(b.acted()) and b.got("cycle_report")[-1].status == CycleReport.STATUS_ACTED, "again"
        )
        assert len(b.got("cycle_report")) - before <= 4
        assert _log(capfd).count("]: stale: camera wrist") == 1


def test_b16_slow_camera_is_reused_so_often_and_its_rate_is_shown():
    with bench(robot__sync__max_reuse=3) as b:
        b.brain()
        box = b.mailbox()
        b.until(b.acted, "an action")
        b.feed = b.probe.send_joints
        b.until(lambda: "reused: camera front (3 times)" in b.reasons(), "the reason")
        _no_action(b)
        assert box.num_decodes <= len({r.observation_id for r in b.acted()}) + 1
        health = b.until(lambda: b.health("oxygen_node: inputs"), "rates")
        assert any(value.key == "rx_rate camera front" for value in health.values)


def test_b11_camera_below_half_its_rate_is_warned_about():
    with bench(robot__cameras__front__expected_rate_hz=1000.0) as b:
        b.brain()
        b.mailbox()
        health = b.until(lambda: (h := b.health("inputs")) and h.level == b"\x01" and h, "WARN")
        assert "camera front" in health.message
        assert "of 1000" in health.message


def test_b57_map_of_cameras_is_in_the_log(capfd):
    with bench(**TWO_CAMERAS, **{"robot.cameras.wrist.slot": "left_wrist_0_rgb"}) as b:
        b.brain()
        b.mailbox()
        log = _log(capfd)
        assert "Camera front: front/image -> slot front" in log
        assert "Camera wrist: wrist/image -> slot left_wrist_0_rgb" in log


def test_b80_other_topics_by_parameters_alone():
    names = {"topics.action_chunk": "~/elsewhere/chunks", "robot.cameras.front.topic": "other/camera"}
    with bench(**names) as b:
        b.brain()
        b.mailbox()
        b.probe.hear(ActionChunk, "oxygen_node/elsewhere/chunks", qos.newest(9))
        b.probe.add_sender("image", Image, "other/camera", qos.sensor(QosConfig()))
        b.until(lambda: b.got("chunks"), "a chunk")
        assert not b.got("action_chunk")
