"""Program `libero_node`: a LIBERO task as a robot on the topics of the LIBERO preset.

Subscribed: the player's commands. Published: the preset's cameras and joint states, the brain's instruction,
~/episode (one line of JSON at the end of each), /diagnostics. A command is executed when it comes: the
simulator is slower than a robot, so brain and player must run at a rate that it keeps up with.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from numpy.typing import NDArray
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import Float64MultiArray, String

from oxygen_ros.config import QosConfig, load_config
from oxygen_ros.config.field import parameter
from oxygen_ros.errors import ConfigError
from oxygen_ros.ros import qos
from oxygen_ros.ros.consumer_node import ConsumerNode, run_consumer
from oxygen_ros.ros.conversions import to_image, to_joint_state
from oxygen_ros.ros.diagnostics import OK, status
from oxygen_ros.ros.libero_world import (
    ACTION_DIM,
    CAMERAS,
    REST_ACTION,
    STATE_DIM,
    LiberoWorld,
    View,
    require_simulator,
)
from oxygen_ros.ros.parameters import config_dirs

EXIT_MISUSE = 2
MAX_WAITING = 4
ENDS_WITHIN_S = 5.0
PRESET = "libero"


@dataclass(frozen=True)
class LiberoSettings:
    """Parameters of the node."""

    suite: str = parameter("libero_spatial", help="Task suite, e.g. libero_object, libero_goal, libero_10.")
    task: int = parameter(0, minimum=0, maximum=10_000, help="Number of the task within the suite.")
    start: int = parameter(
        0, minimum=0, maximum=10_000, help="Stored start of the first episode; later episodes count on."
    )
    max_steps: int = parameter(
        520, unit="steps", minimum=1, maximum=100_000, help="Steps after which an episode is given up."
    )
    image_size: int = parameter(
        256, unit="pixels", minimum=32, maximum=1024, help="Width and height of the pictures."
    )
    simulated_rate_hz: float = parameter(
        20.0, unit="Hz", minimum=1.0, maximum=500.0, help="Actions per second of simulated time."
    )
    seed: int = parameter(7, minimum=0, maximum=2**31 - 1, help="Seed of the simulator.")
    idle_s: float = parameter(
        0.5, unit="s", minimum=0.05, maximum=60.0, help="Time without a command after which the hand rests."
    )
    joint_command: str = parameter("action_player/joint_command", help="In: one action a tick.")
    instruction: str = parameter("oxygen_node/instruction", help="Out: what the task asks for.")


class LiberoNode(ConsumerNode):
    """Topics around a world. The world lives on a thread of its own, which loads it: that takes a while."""

    def __init__(self, name: str = "libero_node", **kwargs: Any) -> None:
        """See ``ConsumerNode``.

        Raises:
            ConfigError: LIBERO is not installed, or there is no such suite or task.
        """
        super().__init__(name, **kwargs)
        require_simulator()
        self._settings = self.settings(LiberoSettings)
        robot = load_config(preset=PRESET, config_dirs=config_dirs()).config.robot
        assert len(robot.joint_names) == STATE_DIM
        sensor = qos.sensor(QosConfig())
        self._joint_names = robot.joint_names
        self._cameras = {
            camera: self.create_publisher(Image, robot.cameras[role].topic, sensor)
            for camera, role in zip(CAMERAS, robot.camera_roles, strict=True)
        }
        joints = robot.joint_topics[robot.joint_topic_names[0]].topic
        self._joints = self.create_publisher(JointState, joints, sensor)
        self._instruct = self.create_publisher(String, self._settings.instruction, qos.latched())
        self._episode = self.create_publisher(String, "~/episode", qos.latched())
        self._actions: queue.Queue[NDArray[np.float64] | None] = queue.Queue()
        self._num_steps = self._num_successes = self._num_episodes = 0
        self._fault = ""
        self.create_subscription(
            Float64MultiArray, self._settings.joint_command, self._on_command, qos.newest(MAX_WAITING)
        )
        self._thread = threading.Thread(target=self._guarded, args=(self._live,), name="world", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let go of the world."""
        self._actions.put(None)
        self._thread.join(ENDS_WITHIN_S)

    def health_line(self) -> DiagnosticStatus:
        """How far the world has come."""
        values: dict[str, object] = {
            "steps": self._num_steps,
            "episodes": self._num_episodes,
            "successes": self._num_successes,
        }
        values |= {f"refused_{kind}": count for kind, count in sorted(self.refusals.counts().items())}
        words = "running" if self._num_steps else "loading"
        return status(f"{self.get_fully_qualified_name().strip('/')}: libero", OK, words, values)

    def _on_command(self, message: Float64MultiArray) -> None:
        action = np.array(message.data, np.float64)
        if action.shape != (ACTION_DIM,) or not np.isfinite(action).all():
            self.refusals.add("bad_command", "joint_command", f"{list(action)}, wanted {ACTION_DIM} numbers")
            return
        if self._actions.qsize() >= MAX_WAITING:
            detail = "the simulator does not keep up; lower cycle.action_rate_hz of brain and player"
            self.refusals.add("command_dropped", "joint_command", detail)
            return
        self._actions.put(action)

    # the world's thread -----------------------------------------------------------------------------

    def _guarded(self, live: Callable[[], None]) -> None:
        # The thread's boundary: a fault ends the node and says why.
        try:
            live()
        except Exception as error:
            self.get_logger().fatal(f"LIBERO has failed: {type(error).__name__}: {error}")
            self.on_end()

    def _live(self) -> None:
        settings = self._settings
        world = LiberoWorld(
            settings.suite,
            settings.task,
            image_size=settings.image_size,
            rate_hz=settings.simulated_rate_hz,
            seed=settings.seed,
        )
        try:
            start = settings.start
            while self._run_episode(world, start):
                start += 1
        finally:
            world.close()

    def _run_episode(self, world: LiberoWorld, start: int) -> bool:
        """One episode. False when the node ends."""
        self._instruct.publish(String(data=world.instruction))
        view, steps, last = world.reset(start), 0, np.array(REST_ACTION)
        self._publish(view)
        while not view.is_done and steps < self._settings.max_steps:
            try:
                action = self._actions.get(timeout=self._settings.idle_s)
            except queue.Empty:
                view = world.step(np.array([*REST_ACTION[:6], last[6]]))  # the gripper as it is
                self._publish(view)
                continue
            if action is None:
                return False
            view, last = world.step(action), action
            steps += 1
            self._num_steps += 1
            self._publish(view)
        self._num_episodes += 1
        self._num_successes += view.is_done
        outcome = {
            "suite": self._settings.suite,
            "task": self._settings.task,
            "instruction": world.instruction,
            "start": start,
            "steps": steps,
            "success": view.is_done,
        }
        self._episode.publish(String(data=json.dumps(outcome)))
        self.get_logger().info(json.dumps(outcome))
        return True

    def _publish(self, view: View) -> None:
        """Everything of one instant, with one stamp."""
        stamp_ns = self.now_ns()
        self._joints.publish(to_joint_state(self._joint_names, view.state, stamp_ns))
        for camera, publisher in self._cameras.items():
            publisher.publish(to_image(view.images[camera], stamp_ns, camera))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the task until a signal ends it. Exit code 2 where LIBERO is not installed."""
    try:
        require_simulator()
    except ConfigError as error:
        print(error, file=sys.stderr)
        return EXIT_MISUSE
    return run_consumer(lambda options: LiberoNode(arguments=options), arguments)


if __name__ == "__main__":
    sys.exit(main())
