"""A small robot in a bag: cameras, joints that follow commands, an instruction, questions. Seeded.

The same pictures and joint dynamics as the simulated robot of the demonstration, written without ROS.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from oxygen_ros.config import OxygenConfig
from oxygen_ros.replay.bag.message_types import MessageTypes
from oxygen_ros.replay.bag.writer import BagWriter
from oxygen_ros.replay.messages import MessageMaker
from oxygen_ros.replay.topics import JOINT_STATE, QUESTION, STRING
from oxygen_ros.runtime.stamps import S
from oxygen_ros.runtime.text_intake import Question
from oxygen_ros.sim.pictures import background, draw
from oxygen_ros.types import ImageArray

START_NS = 1_700_000_000 * S
DELAY_NS = 3_000_000
"""From a sensor's stamp to the recorder."""
FOLLOWS = 0.3
INSTRUCTION = "/oxygen_node/instruction"
ASK, ASK_TEXT = "/oxygen_node/ask", "/oxygen_node/ask_text"
COMMAND = "/action_player/joint_command"


@dataclass(frozen=True)
class BagPlan:
    """What is written.

    Attributes:
        storage, compression: of ``BagWriter``.
        is_jpeg: pictures as CompressedImage on ``<topic>/compressed``.
        delay_ns: log time minus header stamp.
        questions: (seconds, words) of each question.
    """

    seconds: float = 2.0
    storage: str = "mcap"
    compression: str = "none"
    camera_hz: float = 10.0
    joint_hz: float = 50.0
    width: int = 48
    height: int = 36
    is_jpeg: bool = True
    seed: int = 0
    delay_ns: int = DELAY_NS
    has_commands: bool = True
    instruction: str = "put the red cube in the bowl"
    questions: tuple[tuple[float, str], ...] = ((0.7, "What do you see?"),)


class _Robot:
    """Joints on their way to commands that wander smoothly, by the seed."""

    def __init__(self, config: OxygenConfig, seed: int) -> None:
        robot = config.robot
        random = np.random.default_rng(seed)
        self.config = config
        self.names = robot.command_joint_names
        size = len(self.names)
        self._phase, self._rate = random.uniform(0, 2 * np.pi, size), random.uniform(0.3, 1.2, size)
        limits = [robot.joints[name] for name in self.names]
        low = np.array([max(-0.5, joint.position_min) for joint in limits])
        high = np.array([min(0.5, joint.position_max) for joint in limits])
        self._middle, self._reach = (low + high) / 2, (high - low) / 2
        self.command = self._command_at(0.0)
        self.positions = dict.fromkeys((*robot.joint_names, *self.names), 0.0)
        self.positions.update(zip(self.names, self.command.tolist(), strict=True))

    def step(self, seconds: float) -> None:
        self.command = self._command_at(seconds)
        for name, target in zip(self.names, self.command.tolist(), strict=True):
            self.positions[name] += FOLLOWS * (target - self.positions[name])

    def joints_by_topic(self) -> dict[str, tuple[list[str], list[float]]]:
        """Names as messages carry them, and positions, by joint topic."""
        robot = self.config.robot
        found: dict[str, tuple[list[str], list[float]]] = {}
        for source in robot.joint_topic_names:
            topic = robot.joint_topics[source]
            prefix = topic.name_prefix
            names = [name for name in robot.joint_names if name.startswith(prefix)]
            positions = [self.positions[name] for name in names]
            found[f"/{topic.topic}"] = ([name.removeprefix(prefix) for name in names], positions)
        return found

    def _command_at(self, seconds: float) -> NDArray[np.float64]:
        return np.asarray(self._middle + self._reach * np.sin(self._phase + self._rate * seconds))


def write_simulated_bag(path: Path, config: OxygenConfig, plan: BagPlan) -> None:
    """Write one bag. The same arguments give the same bytes."""
    types = MessageTypes()
    make = MessageMaker(types)
    robot = _Robot(config, plan.seed)
    canvas = background(plan.height, plan.width)
    with BagWriter(path, types, storage=plan.storage, compression=plan.compression) as bag:
        bag.add_topic(INSTRUCTION, STRING, latched=True)
        for topic in robot.joints_by_topic():
            bag.add_topic(topic, JOINT_STATE, reliable=False)
        bag.write(INSTRUCTION, make.text(plan.instruction), START_NS)
        events = _events(plan)
        num_pictures = 0
        for at_ns, what, detail in events:
            stamp_ns, log_ns = START_NS + at_ns, START_NS + at_ns + plan.delay_ns
            if what == "joints":
                robot.step(at_ns / S)
                for topic, (names, positions) in robot.joints_by_topic().items():
                    bag.write(topic, make.joints(names, positions, stamp_ns), log_ns)
                if plan.has_commands:
                    bag.write(COMMAND, make.array(robot.command), log_ns)
            elif what == "pictures":
                num_pictures += 1
                for role in config.robot.camera_roles:
                    picture = draw(canvas, num_pictures, list(robot.positions.values()))
                    _write_picture(bag, make, config, role, picture, stamp_ns, log_ns, plan.is_jpeg)
            elif what == "question":
                bag.write(ASK_TEXT, make.text(detail), log_ns)
        if plan.questions:
            question = make.question(Question(prompt="Is it done?", request_id="last", max_tokens=12))
            bag.add_topic(ASK, QUESTION)
            bag.write(ASK, question, START_NS + round(plan.seconds * 0.8 * S))


def _events(plan: BagPlan) -> list[tuple[int, str, str]]:
    events: list[tuple[int, str, str]] = []
    for what, rate_hz in (("joints", plan.joint_hz), ("pictures", plan.camera_hz)):
        events += [(round(i * S / rate_hz), what, "") for i in range(round(plan.seconds * rate_hz))]
    events += [(round(seconds * S), "question", words) for seconds, words in plan.questions]
    return sorted(events)


def _write_picture(
    bag: BagWriter,
    make: MessageMaker,
    config: OxygenConfig,
    role: str,
    picture: ImageArray,
    stamp_ns: int,
    log_ns: int,
    is_jpeg: bool,
) -> None:
    topic = f"/{config.robot.cameras[role].topic}"
    if is_jpeg:
        _, encoded = cv2.imencode(".jpg", picture[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, 90])
        bag.write(f"{topic}/compressed", make.compressed(encoded.tobytes(), stamp_ns, role), log_ns)
    else:
        bag.write(topic, make.image(picture, stamp_ns, role), log_ns)
