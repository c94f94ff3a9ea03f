"""The simulated tabletop as a robot on topics: a MuJoCo world with cameras, joints and commands of a preset.

Subscribed: the player's commands. Published: the preset's cameras (64 x 64, upside down as LIBERO's are) and
joint states, ~/truth, ~/show/compressed, /diagnostics.

A command is executed when it comes, so the player's clock is the robot's. Without one for half as long again
as a control tick, the hand stays where it is and time goes on.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from numpy.typing import NDArray
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import Float64MultiArray, String

from oxygen_ros.config import QosConfig, load_config
from oxygen_ros.config.field import parameter
from oxygen_ros.errors import ConfigError
from oxygen_ros.ros import qos
from oxygen_ros.ros.consumer_node import ConsumerNode
from oxygen_ros.ros.conversions import to_image, to_joint_state, to_jpeg
from oxygen_ros.ros.diagnostics import OK, status
from oxygen_ros.ros.parameters import config_dirs
from oxygen_ros.sim.cameras import BASE_CAMERA, SHOW_CAMERA, WRIST_CAMERA, Cameras
from oxygen_ros.sim.episodes import Episodes
from oxygen_ros.sim.expert import ACTION_DIM
from oxygen_ros.sim.rules import FIRST_SEED
from oxygen_ros.sim.truth import ALL_TASKS, Task, parse_instruction
from oxygen_ros.sim.truth_message import to_json
from oxygen_ros.sim.world import STATE_DIM, Tabletop

IMAGE_SIZE = 64
SHOW_WIDTH, SHOW_HEIGHT, SHOW_QUALITY = 480, 360, 80
IDLE_AFTER = 1.5
"""Ticks without a command after which time goes on by itself."""
MAX_WAITING = 10
ENDS_WITHIN_S = 1.0

Action = NDArray[np.float64]


@dataclass(frozen=True)
class TabletopSettings:
    """Parameters of the node."""

    preset: str = parameter("libero", help="Robot preset whose topics and joint names are used.")
    joint_command: str = parameter("action_player/joint_command", help="In: one action a tick.")
    task: str = parameter("", help="Instruction of all episodes. Empty: the six tasks in turn.")
    seed: int = parameter(
        FIRST_SEED, minimum=0, maximum=2**31 - 1, help="Seed of the first episode; later ones count on."
    )
    control_hz: float = parameter(
        30.0, unit="Hz", minimum=0.1, maximum=30.0, help="Ticks per second. Below 30 its time runs slower."
    )
    show_hz: float = parameter(
        10.0, unit="Hz", minimum=0.0, maximum=30.0, help="Pictures per second of the show view. 0: none."
    )


class TabletopNode(ConsumerNode):
    """Topics around a world. The world, its pictures and what is published live on a thread of their own."""

    def __init__(self, name: str = "tabletop_node", **kwargs: Any) -> None:
        """See ``ConsumerNode``. Returns when the world is there.

        Raises:
            ConfigError: an unknown task, a preset of another robot, or no GL that works.
        """
        super().__init__(name, **kwargs)
        settings = self.settings(TabletopSettings)
        task = task_named(settings.task)
        robot = load_config(preset=settings.preset, config_dirs=config_dirs()).config.robot
        sizes = (len(robot.camera_roles), len(robot.joint_names), len(robot.command_joint_names))
        if sizes != (2, STATE_DIM, ACTION_DIM):
            raise ConfigError(
                "preset",
                f"{settings.preset} has {sizes} cameras, joints and commands; the tabletop has "
                f"{(2, STATE_DIM, ACTION_DIM)}",
                "preset:=libero",
            )
        sensor = qos.sensor(QosConfig())
        self._joint_names = robot.joint_names
        self._cameras = {
            camera: self.create_publisher(Image, robot.cameras[role].topic, sensor)
            for camera, role in zip((BASE_CAMERA, WRIST_CAMERA), robot.camera_roles, strict=True)
        }
        self._joints = self.create_publisher(
            JointState, robot.joint_topics[robot.joint_topic_names[0]].topic, sensor
        )
        self._truth = self.create_publisher(String, "~/truth", qos.stream(50))
        self._show = self.create_publisher(CompressedImage, "~/show/compressed", qos.newest(5))
        self._tick_ns = round(1e9 / settings.control_hz)
        self._ticks_per_show = (
            max(1, round(settings.control_hz / settings.show_hz)) if settings.show_hz else 0
        )
        self._actions: queue.Queue[Action | None] = queue.Queue()
        self._num_ticks = self._num_idle = 0
        ready: Future[None] = Future()
        self._thread = threading.Thread(
            target=self._run, args=(ready, settings.seed, task), name="world", daemon=True
        )
        self._thread.start()
        ready.result()
        self.create_subscription(
            Float64MultiArray, settings.joint_command, self._on_command, qos.newest(MAX_WAITING)
        )

    def close(self) -> None:
        """Let go of the world."""
        self._actions.put(None)
        self._thread.join(ENDS_WITHIN_S)

    def health_line(self) -> DiagnosticStatus:
        """How far the world has come."""
        values: dict[str, object] = {"ticks": self._num_ticks, "without_command": self._num_idle}
        values |= {f"refused_{kind}": count for kind, count in sorted(self.refusals.counts().items())}
        return status(f"{self.get_fully_qualified_name().strip('/')}: tabletop", OK, "running", values)

    def _on_command(self, message: Float64MultiArray) -> None:
        action = np.array(message.data, np.float64)
        if action.shape != (ACTION_DIM,) or not np.isfinite(action).all():
            self.refusals.add("bad_command", "joint_command", f"{list(action)}, wanted {ACTION_DIM} numbers")
            return
        if self._actions.qsize() >= MAX_WAITING:
            self.refusals.add("command_dropped", "joint_command", "the world does not keep up")
            return
        self._actions.put(action)

    # the world's thread -----------------------------------------------------------------------------

    def _run(self, ready: Future[None], seed: int, task: Task | None) -> None:
        try:
            episodes = Episodes(Tabletop(), seed, task)
            cameras = Cameras(episodes.world, max_width=SHOW_WIDTH, max_height=SHOW_HEIGHT)
        except Exception as error:
            ready.set_exception(error)
            return
        ready.set_result(None)
        with cameras:
            self._guarded(lambda: self._live(episodes, cameras))

    def _guarded(self, live: Callable[[], None]) -> None:
        # The thread's boundary: a fault of ours ends the node.
        try:
            live()
        except Exception as error:
            self.get_logger().fatal(f"the world has failed: {type(error).__name__}: {error}")
            self.on_end()

    def _live(self, episodes: Episodes, cameras: Cameras) -> None:
        due_ns = self.steady.now_ns()
        while True:
            try:
                action = self._actions.get(timeout=max(0.0, (due_ns - self.steady.now_ns()) / 1e9))
                if action is None:
                    return
                due_ns = self.steady.now_ns() + round(IDLE_AFTER * self._tick_ns)
            except queue.Empty:
                action = None
                self._num_idle += 1
                due_ns = max(self.steady.now_ns(), due_ns + self._tick_ns)
            episodes.tick(action)
            self._publish(episodes, cameras)
            self._num_ticks += 1

    def _publish(self, episodes: Episodes, cameras: Cameras) -> None:
        """Everything of one instant, with one stamp; what is so first: it is known before it is seen."""
        world, stamp_ns = episodes.world, self.now_ns()
        line = to_json(
            world.truth(),
            stamp_ns=stamp_ns,
            episode=episodes.episode,
            seed=episodes.seed,
            task=episodes.task,
            ticks=world.ticks,
        )
        self._truth.publish(String(data=line))
        self._joints.publish(to_joint_state(self._joint_names, world.state().astype(np.float64), stamp_ns))
        for camera, publisher in self._cameras.items():
            picture = cameras.render(camera, IMAGE_SIZE, IMAGE_SIZE)
            publisher.publish(to_image(picture[::-1, ::-1], stamp_ns, camera))
        if self._ticks_per_show and self._num_ticks % self._ticks_per_show == 0:
            picture = cameras.render(SHOW_CAMERA, SHOW_WIDTH, SHOW_HEIGHT)
            self._show.publish(to_jpeg(picture, stamp_ns, SHOW_CAMERA, SHOW_QUALITY))


def task_named(instruction: str) -> Task | None:
    """The task of an instruction; None for an empty one.

    Raises:
        ConfigError: lists the tasks there are.
    """
    task = parse_instruction(instruction)
    if instruction and task is None:
        known = "; ".join(task.instruction for task in ALL_TASKS)
        raise ConfigError(
            "unknown_task", f"The robot was not trained to {instruction!r}.", f"one of: {known}"
        )
    return task
