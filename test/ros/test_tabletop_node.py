"""The simulated tabletop on real topics: what it publishes, what it does with commands, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
pytest.importorskip("mujoco", reason="mujoco is not installed")

from consumer_bench import consumer
from node_process import NodeProcess
from ros_bench import bench
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import Float64MultiArray, String

from oxygen_ros.config import QosConfig, load_config
from oxygen_ros.errors import ConfigError
from oxygen_ros.ros import qos
from oxygen_ros.ros.tabletop_robot import IMAGE_SIZE, TabletopNode
from oxygen_ros.runtime.stamps import from_time
from oxygen_ros.sim.cameras import BASE_CAMERA, Cameras
from oxygen_ros.sim.episodes import Episodes
from oxygen_ros.sim.truth import ALL_TASKS
from oxygen_ros.sim.truth_message import from_json
from oxygen_ros.sim.world import Tabletop

ROBOT = load_config(preset="libero").config.robot
SEED = 1_000_005


@pytest.fixture
def b():
    with bench() as made:
        made.feed = None
        sensor = qos.sensor(QosConfig())
        made.probe.hear(String, "tabletop_node/truth", qos.stream(500))
        for role in ROBOT.camera_roles:
            made.probe.hear(Image, ROBOT.cameras[role].topic, sensor, role)
        made.probe.hear(JointState, "joint_states", sensor)
        made.probe.hear(CompressedImage, "tabletop_node/show/compressed", qos.newest(5), "show")
        made.probe.add_sender("command", Float64MultiArray, "action_player/joint_command", qos.newest())
        yield made


def send(b, *values):
    b.probe.send("command", Float64MultiArray(data=[float(value) for value in values]))


def truths(b):
    return [from_json(message.data) for message in b.got("truth")]


def test_tick_is_published_as_the_preset_wants_it_with_one_stamp(b):
    with consumer(b, TabletopNode, seed=SEED, task="put the red cube on the plate"):
        for kind in ("truth", "joint_states", "show", *ROBOT.camera_roles):
            b.until(lambda kind=kind: b.got(kind), kind)
        known = b.until(
            lambda: (
                {t.stamp_ns: t for t in truths(b)}.keys()
                & {from_time(m.header.stamp) for m in b.got("base")}
                & {from_time(m.header.stamp) for m in b.got("joint_states")}
            ),
            "a tick of which everything came",
        )
        stamp_ns = known.pop()
    truth = next(t for t in truths(b) if t.stamp_ns == stamp_ns)
    joints = next(m for m in b.got("joint_states") if from_time(m.header.stamp) == stamp_ns)
    picture = next(m for m in b.got("base") if from_time(m.header.stamp) == stamp_ns)
    assert (truth.episode, truth.seed, truth.instruction) == (1, SEED, "put the red cube on the plate")
    assert tuple(joints.name) == ROBOT.joint_names
    assert np.allclose(joints.position[:3], truth.truth.hand, atol=1e-6)
    assert (picture.encoding, picture.height, picture.width) == ("rgb8", IMAGE_SIZE, IMAGE_SIZE)

    episodes = Episodes(Tabletop(), SEED)
    for _ in range(truth.ticks):
        episodes.tick(None)
    with Cameras(episodes.world, max_width=480, max_height=360) as cameras:
        upright = cameras.render(BASE_CAMERA, IMAGE_SIZE, IMAGE_SIZE)
    shown = np.frombuffer(bytes(picture.data), np.uint8).reshape(upright.shape)
    assert np.array_equal(shown[::-1, ::-1], upright)


def test_each_command_is_executed_once_and_what_is_none_is_refused(b):
    with consumer(b, TabletopNode, seed=SEED, show_hz=0.0, control_hz=15.0) as node:
        b.until(lambda: b.probe.senders["command"].get_subscription_count() and truths(b), "connected")
        begin = truths(b)[-1].truth.command
        for count in range(1, 6):
            send(b, 1, 0, 0, 0, 0, 0, 1)
            b.until(
                lambda count=count: np.isclose(
                    truths(b)[-1].truth.command[0] - begin[0], 0.006 * count, atol=1e-9
                ),
                f"step {count}",
            )
        assert truths(b)[-1].truth.is_closing
        send(b, 1, 2, 3)
        send(b, *[float("nan")] * 7)
        b.until(lambda: node.refusals.counts().get("bad_command") == 2, "two refused")
        health = b.until(lambda: b.health("tabletop_node: tabletop"), "health")
        assert {pair.key for pair in health.values} >= {"ticks", "without_command"}
        last = truths(b)[-1].ticks
        b.until(lambda: truths(b)[-1].ticks > last + 3, "time goes on")
        assert np.isclose(truths(b)[-1].truth.command[0] - begin[0], 0.03, atol=1e-9)
        assert not b.got("show")


def test_unknown_task_is_refused_with_the_list_of_tasks(b):
    with pytest.raises(ConfigError) as refusal, consumer(b, TabletopNode, task="make coffee"):
        raise AssertionError("it started")
    assert "make coffee" in str(refusal.value)
    assert all(task.instruction in str(refusal.value) for task in ALL_TASKS)


def test_preset_of_another_robot_is_refused(b):
    with pytest.raises(ConfigError, match="humanoid has"), consumer(b, TabletopNode, preset="humanoid"):
        raise AssertionError("it started")


@pytest.mark.parametrize("backend", ["glfw", "wgl"])
def test_gl_that_does_not_work_here_gets_one_line_with_what_to_do(monkeypatch, backend):
    monkeypatch.setenv("MUJOCO_GL", backend)
    node = NodeProcess("tabletop_node", "/no_gl", {})
    try:
        assert node.process.wait(60) == 2
        lines = [line for line in node.output.splitlines() if line.strip()]
        assert len(lines) == 1, node.output
        assert f"MUJOCO_GL is '{backend}'" in lines[0]
        assert "unset MUJOCO_GL" in lines[0]
    finally:
        node.close()
