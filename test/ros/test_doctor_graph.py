"""The doctor on a live graph: real publishers, each right or wrong in one way."""

import json
import threading

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="rclpy is not installed")

from lerobot_cases import checkpoint_folder, tokenizer_folder  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.node import Node  # noqa: E402
from rclpy.qos import QoSProfile, ReliabilityPolicy  # noqa: E402
from sensor_msgs.msg import Image, JointState  # noqa: E402

from oxygen_ros.config import load_config  # noqa: E402
from oxygen_ros.ros.doctor_graph import examine_graph  # noqa: E402
from oxygen_ros.tools.doctor import main  # noqa: E402
from oxygen_ros.tools.examination.findings import Level  # noqa: E402

BEST_EFFORT = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
LIBERO = load_config(preset="libero").config
JOINTS = LIBERO.robot.joint_names
CAMERAS = [LIBERO.robot.cameras[role].topic for role in LIBERO.robot.camera_roles]
SECONDS = 1.5


class Robot:
    """A robot whose messages can be told to be wrong. 20 Hz."""

    def __init__(
        self, namespace, encoding="rgb8", joints=JOINTS, cameras=CAMERAS, position=0.1, stamped=True
    ):
        self.node = Node("robot", namespace=namespace)
        self._encoding, self._joints, self._position, self._stamped = encoding, joints, position, stamped
        self._cameras = [self.node.create_publisher(Image, topic, BEST_EFFORT) for topic in cameras]
        self._states = self.node.create_publisher(JointState, "joint_states", BEST_EFFORT)
        self.node.create_timer(0.05, self._publish)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._executor.spin, daemon=True)
        self._thread.start()

    def _publish(self):
        stamp = self.node.get_clock().now().to_msg() if self._stamped else None
        for camera in self._cameras:
            channels = {"rgb8": 3, "16UC1": 2}[self._encoding]
            message = Image(height=48, width=64, encoding=self._encoding, step=64 * channels)
            message.data = bytes(48 * 64 * channels)
            if stamp:
                message.header.stamp = stamp
            camera.publish(message)
        states = JointState(name=list(self._joints), position=[self._position] * len(self._joints))
        if stamp:
            states.header.stamp = stamp
        self._states.publish(states)

    def close(self):
        self._executor.shutdown()
        self._thread.join(5)
        self.node.destroy_node()


@pytest.fixture(autouse=True)
def _ros():
    rclpy.init()
    yield
    rclpy.shutdown()


@pytest.fixture
def robot():
    made = []

    def make(**options):
        made.append(Robot("", **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def codes(sections):
    return {
        finding.code for section in sections for finding in section.findings if finding.level is not Level.OK
    }


def test_robot_that_fits_gives_facts_rates_sizes_and_its_state(robot):
    robot()
    sections, seen = examine_graph(LIBERO, SECONDS)
    assert codes(sections) == set()
    said = [finding.text for section in sections for finding in section.findings]
    assert any("camera base: 64 x 48, rgb8, 9216 bytes" in text for text in said)
    assert seen.message_bytes == {f"/{topic}": 9216 for topic in CAMERAS}
    np.testing.assert_allclose(seen.state, [0.1] * 8, rtol=1e-6)


def test_silent_graph_names_topics_of_the_type(robot):
    robot(cameras=["front/image_raw"])
    sections, seen = examine_graph(LIBERO, SECONDS)
    refusals = [finding for finding in sections[0].findings if finding.code == "no_publisher"]
    assert [f"/{CAMERAS[0]}" in refusals[0].text, len(refusals)] == [True, 2]
    assert "/front/image_raw" in refusals[0].suggestion
    assert seen.message_bytes == {}


def test_best_effort_camera_and_reliable_wish_is_refused(robot):
    robot()
    wish = {"robot": {"cameras": {"base": {"qos": {"reliability": "reliable"}}}}}
    sections, _ = examine_graph(load_config(preset="libero", overrides=wish).config, SECONDS)
    (refusal,) = (finding for finding in sections[0].findings if finding.level is Level.REFUSAL)
    assert refusal.code == "qos"
    assert f"/{CAMERAS[0]}" in refusal.text
    assert "best_effort" in refusal.suggestion


def test_topic_of_another_type_is_refused(robot):
    robot()
    wish = {"robot": {"cameras": {"base": {"type": "CompressedImage"}}}}
    sections, _ = examine_graph(load_config(preset="libero", overrides=wish).config, SECONDS)
    assert codes(sections) == {"topic_type"}


def test_depth_picture_is_refused_by_name(robot):
    robot(encoding="16UC1")
    sections, _ = examine_graph(LIBERO, SECONDS)
    refusals = [finding for finding in sections[0].findings if finding.level is Level.REFUSAL]
    assert len(refusals) == 2
    assert "16UC1" in refusals[0].text


def test_missing_joints_are_listed_with_those_that_are_there(robot):
    robot(joints=JOINTS[:6])
    sections, seen = examine_graph(LIBERO, SECONDS)
    (refusal,) = (finding for finding in sections[1].findings if finding.level is Level.REFUSAL)
    assert refusal.code == "joints_missing"
    assert refusal.values["missing"] == list(JOINTS[6:])
    assert seen.state is None


def test_slow_stream_missing_stamp_and_nan_are_told(robot):
    robot(stamped=False, position=float("nan"))
    wish = {"robot": {"joint_topics": {"joints": {"expected_rate_hz": 500.0}}}}
    sections, _ = examine_graph(load_config(preset="libero", overrides=wish).config, SECONDS)
    assert codes(sections) == {"unstamped", "rate", "nan_state"}


def test_live_doctor_uses_the_robots_own_state_for_the_prompt(robot, capsys):
    robot()
    words = [str(checkpoint_folder("pi05_libero_seed0")), "--preset", "libero", "--live", "--json"]
    words += ["--tokenizer", str(tokenizer_folder("pi05_libero_seed0")), "--set", "model.horizon=50"]
    code = main([*words, "--seconds", str(SECONDS)])
    report = json.loads(capsys.readouterr().out)
    assert code == 1
    titles = [section["title"] for section in report["sections"]]
    assert titles[:4] == ["configuration", "live cameras", "live joints", "kernel buffers"]
    said = [
        f["text"]
        for section in report["sections"]
        if section["title"] == "first prompt"
        for f in section["findings"]
    ]
    assert said[0].startswith("from the robot's own state")
