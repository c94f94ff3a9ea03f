"""Bags for tests: a small robot, changed or damaged as a test asks."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
from pathlib import Path
from typing import Any

from oxygen_ros.config import OxygenConfig, load_config
from oxygen_ros.replay.bag.bag import Bag
from oxygen_ros.replay.bag.message_types import MessageTypes
from oxygen_ros.replay.bag.writer import BagWriter
from oxygen_ros.replay.job import Job
from oxygen_ros.replay.messages import MessageMaker
from oxygen_ros.replay.simulated_bag import BagPlan, write_simulated_bag
from oxygen_ros.replay.unit import replay_bag

MS, S = 1_000_000, 1_000_000_000
START_NS = 1_700_000_000 * S
RESOURCES = Path(__file__).parents[1] / "resources" / "bags"
ROBOT: dict[str, Any] = {
    "runner.kind": "fake",
    "runner.fake.prefix_tokens": 128,
    "robot.camera_roles": ["front"],
    "robot.cameras.front.topic": "front/image",
    "robot.joint_names": ["arm_left", "arm_right", "hand"],
    "model.horizon": 8,
    "cycle.action_rate_hz": 20.0,
    "cycle.execute_horizon": 4,
    "text.tasks.subtask.every_cycles": 2,
}
SETTINGS = tuple(ROBOT.items())
INSTRUCTION, FRONT, JOINTS = "/oxygen_node/instruction", "/front/image/compressed", "/joint_states"
COMMAND = "/action_player/joint_command"
SAME = ("report.json", "report.md", "run.mcap", "cycles.csv")


def robot(**changes: Any) -> OxygenConfig:
    return load_config(overrides={**ROBOT, **changes}).config


def make_bag(folder: Path, name: str = "bag", **plan: Any) -> Path:
    """A bag of two seconds; ``plan`` changes BagPlan."""
    path = folder / name
    write_simulated_bag(path, robot(), BagPlan(**plan))
    return path


def job(bag: Path, out: Path, **changes: Any) -> Job:
    """A job without pictures; settings go over those of the robot."""
    settings = {**ROBOT, **dict(changes.pop("settings", ()))}
    return Job(bag=str(bag), out=str(out), settings=tuple(settings.items()), **{"pictures": False, **changes})


def replay(bag: Path, out: Path, **changes: Any) -> dict[str, Any]:
    return replay_bag(job(bag, out, **changes))


class Sheet:
    """Messages by hand: topic, type and log time, in the order in which they are to lie in the file."""

    def __init__(self) -> None:
        self.types = MessageTypes()
        self.make = MessageMaker(self.types)
        self.lines: list[tuple[str, str, bytes, int]] = []
        self.latched: set[str] = set()
        self.without_qos: set[str] = set()

    def add(self, topic: str, message: Any, log_ns: int) -> None:
        self.lines.append((topic, message.__msgtype__, self.types.write(message), log_ns))

    def add_raw(self, topic: str, message_type: str, data: bytes, log_ns: int) -> None:
        self.lines.append((topic, message_type, data, log_ns))

    @classmethod
    def of(cls, path: Path) -> Sheet:
        """The messages of a bag."""
        sheet = cls()
        with Bag(path) as bag:
            sheet.latched = {name for name, topic in bag.topics.items() if topic.is_latched}
            for record in bag.records(tuple(bag.topics)):
                sheet.lines.append((record.topic, bag.topics[record.topic].type, record.data, record.time_ns))
        return sheet

    def write(self, path: Path, **options: Any) -> Path:
        with BagWriter(path, self.types, **options) as bag:
            for topic, message_type in {line[0]: line[1] for line in self.lines}.items():
                bag.add_topic(
                    topic,
                    message_type,
                    latched=topic in self.latched,
                    has_qos=topic not in self.without_qos,
                )
            for topic, message_type, data, log_ns in self.lines:
                bag.write_raw(topic, message_type, data, log_ns)
        return path


def cut(path: Path, share: float) -> Path:
    """Cut the bag's storage file; its metadata goes too, as after a power cut."""
    file = next(file for file in path.iterdir() if file.suffix in (".mcap", ".db3"))
    content = file.read_bytes()
    file.write_bytes(content[: round(len(content) * share)])
    (path / "metadata.yaml").unlink(missing_ok=True)
    return path


def plan(**changes: Any) -> BagPlan:
    return dataclasses.replace(BagPlan(), **changes)


def digests(folder):
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in SAME}


def cycles_of(folder):
    with (folder / "cycles.csv").open(newline="") as file:
        return list(csv.DictReader(file))
