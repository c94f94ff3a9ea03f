"""Field cases of what pictures hold, with real messages on real topics."""

from __future__ import annotations

from array import array

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from ros_bench import bench
from sensor_msgs.msg import CompressedImage

from oxygen_ros.config import QosConfig
from oxygen_ros.ros import conversions, qos


def _log(capfd) -> str:
    return capfd.readouterr().err


def _yuyv(height: int, width: int, pixel: tuple[int, int, int]) -> array:
    y, u, v = pixel
    return array("B", bytes((y, u, y, v)) * (height * width // 2))


@pytest.mark.parametrize(("pixel", "rgb"), [((81, 90, 240), (255, 0, 0)), ((41, 240, 110), (0, 0, 255))])
def test_b03_yuyv_camera_reaches_the_model_in_its_colours(pixel, rgb):
    with bench() as b:
        b.brain()
        box = b.mailbox()
        b.feed = lambda: (
            b.probe.send_joints(),
            b.probe.send_picture(encoding="yuv422_yuy2", width=4, height=2, step=8, data=_yuyv(2, 4, pixel)),
        )
        b.until(b.acted, "an action")
        taken = box.take()
        assert np.abs(taken.images["front"].astype(int) - rgb).max() <= 3


BAD_PICTURES = {
    "odd width": {
        "encoding": "yuv422_yuy2",
        "width": 5,
        "height": 2,
        "step": 10,
        "data": array("B", bytes(20)),
    },
    "step too small": {"width": 5, "height": 3, "step": 14, "data": array("B", bytes(42))},
    "too few bytes": {"width": 5, "height": 3, "step": 16, "data": array("B", bytes(47))},
    "no pixels": {"width": 0, "height": 0, "step": 0, "data": array("B")},
    "unknown encoding": {"encoding": "nv99"},
    "depth with a wrong step": {"encoding": "16UC1", "width": 1280, "height": 720, "step": 1280},
}


@pytest.mark.parametrize("case", BAD_PICTURES)
def test_b03_b06_b07_malformed_picture_is_counted_and_the_next_good_one_is_used(case, capfd):
    with bench() as b:
        brain = b.brain()
        b.until(b.acted, "an action")
        b.feed = None
        b.spin_s(0.2)
        before = brain.refusals.counts().get("decode_errors", 0)
        _log(capfd)
        for number in range(5):
            b.probe.send_picture(**BAD_PICTURES[case])
            b.until(
                lambda n=number: brain.refusals.counts().get("decode_errors", 0) > before + n, "the count"
            )
        assert brain.refusals.counts()["decode_errors"] == before + 5
        log = _log(capfd)
        assert log.count("refused (decode_errors) from front/image") == 1, "once, then throttled"
        last = b.acted()[-1].observation_id
        b.feed = b.probe.feed
        b.until(lambda: b.acted()[-1].observation_id > last, "an action on the next good picture")
        assert brain.state == "active"
        b.until(lambda: b.refused("decode_errors") == before + 5, "the count in the report")


def test_b04_override_wins_and_is_said_once(capfd):
    with bench(robot__cameras__front__encoding_override="yuv422_yuy2") as b:
        b.brain()
        box = b.mailbox()
        red = {"encoding": "yuv422", "width": 4, "height": 2, "step": 8, "data": _yuyv(2, 4, (81, 90, 240))}
        b.feed = lambda: (b.probe.send_joints(), b.probe.send_picture(**red))
        b.until(lambda: len(b.acted()) > 2, "actions")
        assert np.abs(box.take().images["front"].astype(int) - (255, 0, 0)).max() <= 3
        assert _log(capfd).count("every picture is read as yuv422_yuy2") == 1


@pytest.mark.parametrize("encoding", ["16UC1", "32FC1", "mono16"])
def test_b08_depth_is_refused_by_name_at_the_first_frame(encoding):
    with bench() as b:
        b.brain()
        b.mailbox()
        b.feed = lambda: (
            b.probe.send_joints(),
            b.probe.send_picture(encoding=encoding, width=4, height=2, step=16, data=array("B", bytes(32))),
        )
        b.until(lambda: any(encoding in reason for reason in b.reasons()), "the reason")
        health = b.until(
            lambda: (h := b.health("oxygen_node: cycle")) and encoding in h.message and h, "degraded"
        )
        assert health.level == b"\x01"
        assert not b.acted()


COMPRESSED = {"robot.cameras.front.type": "CompressedImage", "robot.cameras.front.topic": "front/compressed"}


def test_b08_compressed_depth_is_refused_by_name():
    with bench(**COMPRESSED) as b:
        b.brain()
        b.mailbox()
        b.probe.add_sender("packed", CompressedImage, "front/compressed", qos.sensor(QosConfig()))
        depth = CompressedImage(format="16UC1; compressedDepth png", data=array("B", bytes(64)))
        b.feed = lambda: (b.probe.send_joints(), b.probe.send("packed", depth))
        b.until(lambda: any("compressedDepth" in reason for reason in b.reasons()), "the reason")
        assert not b.acted()


def test_compressed_camera_acts():
    pytest.importorskip("cv2")
    with bench(**COMPRESSED) as b:
        b.brain()
        box = b.mailbox()
        b.probe.add_sender("packed", CompressedImage, "front/compressed", qos.sensor(QosConfig()))
        picture = np.full((24, 32, 3), (200, 30, 30), np.uint8)
        b.feed = lambda: (
            b.probe.send_joints(),
            b.probe.send("packed", conversions.to_jpeg(picture, b.probe.now_ns())),
        )
        b.until(b.acted, "an action")
        assert np.abs(box.take().images["front"].astype(int) - (200, 30, 30)).max() <= 6
