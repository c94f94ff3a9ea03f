"""LIBERO as a robot: said clearly where it is not installed; a smoke test with the simulator where it is."""

import importlib.util
import json

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from consumer_bench import consumer
from ros_bench import bench
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import Float64MultiArray, String

from oxygen_ros.config import QosConfig, load_config
from oxygen_ros.errors import ConfigError
from oxygen_ros.ros import libero_node, qos
from oxygen_ros.ros.libero_world import REST_ACTION, STATE_DIM, axis_angle

IS_INSTALLED = importlib.util.find_spec("libero") is not None
LOADS_WITHIN_S = 300.0
ROBOT = load_config(preset="libero").config.robot


@pytest.mark.skipif(IS_INSTALLED, reason="LIBERO is installed")
def test_libero_node_without_libero_says_how_to_install_it(capsys):
    assert libero_node.main([]) == libero_node.EXIT_MISUSE
    said = capsys.readouterr().err
    assert "[libero.missing]" in said
    assert "oxygen_ros[libero]" in said
    with (
        bench() as b,
        pytest.raises(ConfigError, match=r"libero\.missing"),
        consumer(b, libero_node.LiberoNode),
    ):
        pass


@pytest.mark.parametrize(
    ("quaternion", "wanted"),
    [
        ((0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0)),
        ((0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)), (0.0, 0.0, np.pi / 2)),
        ((1.0, 0.0, 0.0, 0.0), (np.pi, 0.0, 0.0)),
        ((0.0, np.sqrt(0.5), 0.0, -np.sqrt(0.5)), (0.0, 1.5 * np.pi, 0.0)),
        ((0.0, 0.0, 0.0, 1.0 + 1e-9), (0.0, 0.0, 0.0)),
    ],
)
def test_axis_angle_of_a_quaternion_keeps_the_sign_of_training(quaternion, wanted):
    assert axis_angle(np.array(quaternion)) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.skipif(
    not IS_INSTALLED, reason="LIBERO is not installed (extra libero): its node is not verified"
)
def test_libero_task_runs_on_the_topics_of_the_preset():
    with bench() as b:
        b.feed = None
        sensor = qos.sensor(QosConfig())
        for role in ROBOT.camera_roles:
            b.probe.hear(Image, ROBOT.cameras[role].topic, sensor, role)
        b.probe.hear(JointState, "joint_states", sensor)
        b.probe.hear(String, "oxygen_node/instruction", qos.latched(), "instruction")
        b.probe.hear(String, "libero_node/episode", qos.latched(), "episode")
        b.probe.add_sender("command", Float64MultiArray, "action_player/joint_command", qos.newest())
        with consumer(b, libero_node.LiberoNode, max_steps=2, image_size=64):
            b.until(lambda: b.got("joint_states"), "a first view", LOADS_WITHIN_S)
            assert b.got("joint_states")[-1].name == list(ROBOT.joint_names)
            assert len(b.got("joint_states")[-1].position) == STATE_DIM
            assert {len(b.got(role)[-1].data) for role in ROBOT.camera_roles} == {64 * 64 * 3}
            assert b.got("instruction")[-1].data
            for _ in range(2):
                seen = len(b.got("joint_states"))
                b.probe.send("command", Float64MultiArray(data=list(REST_ACTION)))
                b.until(lambda seen=seen: len(b.got("joint_states")) > seen, "a step", LOADS_WITHIN_S)
            b.until(lambda: b.got("episode"), "the end of an episode", LOADS_WITHIN_S)
        assert json.loads(b.got("episode")[-1].data)["steps"] == 2
