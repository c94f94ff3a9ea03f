"""Which topics of a bag are which inputs of the robot. What is needed and not there is refused by name."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from dataclasses import dataclass

from oxygen_ros.config import OxygenConfig
from oxygen_ros.config.camera import CameraConfig
from oxygen_ros.errors import ContractError
from oxygen_ros.replay.bag.bag import Bag
from oxygen_ros.replay.bag.record import Topic

BRAIN, PLAYER = "oxygen_node", "action_player"
STRING, QUESTION = "std_msgs/msg/String", "oxygen_ros/msg/TextRequest"
JOINT_STATE, CLOCK_TYPE = "sensor_msgs/msg/JointState", "rosgraph_msgs/msg/Clock"
REPORT = "oxygen_ros/msg/CycleReport"
PICTURES = {f"sensor_msgs/msg/{name}": name for name in ("Image", "CompressedImage")}
COMMANDS = ("std_msgs/msg/Float64MultiArray", JOINT_STATE, "trajectory_msgs/msg/JointTrajectory")
RECORDING = "~/recording"


class Kind(enum.Enum):
    """What a message is for."""

    PICTURE = "picture"
    JOINTS = "joints"
    INSTRUCTION = "instruction"
    QUESTION = "question"
    QUESTION_TEXT = "question in words"
    VOICE = "voice command"
    CLOCK = "clock"
    COMMANDS = "commands"
    RECORDING = "recording"
    REPORT = "recorded reports"


@dataclass(frozen=True)
class Feed:
    """One topic that is used: ``key`` is the camera's role or the name of the joint topic."""

    kind: Kind
    topic: str
    type: str
    key: str = ""


@dataclass(frozen=True)
class Feeds:
    """All topics that are used.

    Attributes:
        by_topic: what each topic feeds; one topic may feed two.
        cameras: the configured cameras, with the message type that the bag has.
        notes: what was decided, one sentence each.
        unused: number of messages by topic that nothing here needs.
    """

    by_topic: Mapping[str, tuple[Feed, ...]]
    cameras: Mapping[str, CameraConfig]
    notes: tuple[str, ...]
    unused: Mapping[str, int]

    def of(self, kind: Kind) -> list[Feed]:
        """All feeds of a kind."""
        return [feed for feeds in self.by_topic.values() for feed in feeds if feed.kind is kind]


class TopicFinder:
    """Finds topics of a configuration in a bag."""

    def __init__(self, bag: Bag, namespace: str = "") -> None:
        self._topics = {name for name, survey in bag.surveys.items() if survey.num_messages}
        self._namespace = namespace.strip("/")

    def find(self, name: str, node: str = BRAIN) -> str | None:
        """Full name of a topic in the bag, or None.

        Raises:
            ContractError: ``bag.ambiguous``, if several namespaces have it.
        """
        if name.startswith("/"):
            return name if name in self._topics else None
        name = name.replace("~", node, 1)
        if self._namespace:
            full = f"/{self._namespace}/{name}"
            return full if full in self._topics else None
        found = sorted(topic for topic in self._topics if f"/{topic.lstrip('/')}".endswith(f"/{name}"))
        if f"/{name}" in found or name in found:
            return f"/{name}" if f"/{name}" in found else name
        if len(found) > 1:
            raise ContractError("bag.ambiguous", f"{name} may be {' or '.join(found)}", "--namespace")
        return found[0] if found else None


def find_feeds(bag: Bag, config: OxygenConfig, *, namespace: str = "", commands: str = "") -> Feeds:
    """Topics of ``bag`` that a robot of this configuration needs.

    Raises:
        ContractError: ``bag.topic`` or ``bag.type``, naming everything that is missing or unknown.
    """
    search = _Search(bag, config, TopicFinder(bag, namespace))
    search.find_pictures()
    search.find_joints()
    search.find_others()
    search.find_commands(commands)
    if search.problems:
        raise ContractError("bag.topic", "; ".join(search.problems), search.listing())
    return search.result()


class _Search:
    def __init__(self, bag: Bag, config: OxygenConfig, finder: TopicFinder) -> None:
        self._bag = bag
        self._config = config
        self._finder = finder
        self._feeds: list[Feed] = []
        self._cameras: dict[str, CameraConfig] = {}
        self._notes: list[str] = []
        self.problems: list[str] = []

    def find_pictures(self) -> None:
        """Cameras: raw or compressed, as the bag has them."""
        for role in self._config.robot.camera_roles:
            camera = self._config.robot.cameras[role]
            self._cameras[role] = camera
            name = self._finder.find(camera.topic) or self._finder.find(f"{camera.topic}/compressed")
            what = f"camera {role}"
            if name is None:
                text = f"{what}: no topic {camera.topic}"
                (self.problems if camera.required else self._notes).append(text)
                continue
            topic = self._bag.topics[name]
            if self._is_usable(topic, tuple(PICTURES), what):
                self._feeds.append(Feed(Kind.PICTURE, name, topic.type, role))
                self._cameras[role] = dataclasses.replace(camera, type=PICTURES[topic.type])
                if name.lstrip("/") != camera.topic.lstrip("/") or PICTURES[topic.type] != camera.type:
                    self._notes.append(f"{what}: read from {name} as {PICTURES[topic.type]}")

    def find_joints(self) -> None:
        """Joint topics: all of them are needed."""
        for source in self._config.robot.joint_topic_names:
            wanted = self._config.robot.joint_topics[source].topic
            name = self._finder.find(wanted)
            if name is None:
                self.problems.append(f"joints {source}: no topic {wanted}")
            elif self._is_usable(self._bag.topics[name], (JOINT_STATE,), f"joints {source}"):
                self._feeds.append(Feed(Kind.JOINTS, name, JOINT_STATE, source))

    def find_others(self) -> None:
        """What may be there."""
        topics = self._config.topics
        for kind, wanted, message_type in (
            (Kind.INSTRUCTION, topics.instruction, STRING),
            (Kind.QUESTION, topics.ask, QUESTION),
            (Kind.QUESTION_TEXT, topics.ask_text, STRING),
            (Kind.VOICE, topics.voice_command, STRING),
            (Kind.RECORDING, RECORDING, STRING),
            (Kind.REPORT, topics.cycle_report, REPORT),
            (Kind.CLOCK, "/clock", CLOCK_TYPE),
        ):
            name = self._finder.find(wanted) if wanted else None
            if name is not None and self._is_usable(self._bag.topics[name], (message_type,), kind.value):
                self._feeds.append(Feed(kind, name, message_type))
        if not self._config.instruction.strip() and not self._has(Kind.INSTRUCTION):
            self.problems.append(
                f"nothing says what the robot is to do: no topic {topics.instruction}, no instruction given"
            )

    def find_commands(self, given: str) -> None:
        """Recorded commands, to compare with."""
        name = self._finder.find(given or self._config.topics.joint_command, PLAYER)
        if name is None:
            self.problems += [f"commands: no topic {given}"] if given else []
            return
        topic = self._bag.topics[name]
        if topic.type in COMMANDS or given:
            if self._is_usable(topic, COMMANDS, "commands"):
                self._feeds.append(Feed(Kind.COMMANDS, name, topic.type))
        else:
            self._notes.append(f"commands on {name} are not compared: they are {topic.type}")

    def result(self) -> Feeds:
        """What was found."""
        by_topic: dict[str, tuple[Feed, ...]] = {}
        for feed in self._feeds:
            by_topic[feed.topic] = (*by_topic.get(feed.topic, ()), feed)
        unused = {n: s.num_messages for n, s in sorted(self._bag.surveys.items()) if n not in by_topic}
        return Feeds(by_topic, self._cameras, tuple(self._notes), unused)

    def listing(self) -> str:
        """Topics of the bag in words."""
        shown = [f"{n} ({t.type}, {self._bag.surveys[n].num_messages})" for n, t in self._bag.topics.items()]
        return "--namespace, --set, or another bag; this one has " + ", ".join(sorted(shown))

    def _has(self, kind: Kind) -> bool:
        return any(feed.kind is kind for feed in self._feeds)

    def _is_usable(self, topic: Topic, wanted: tuple[str, ...], what: str) -> bool:
        if topic.type in wanted:
            return True
        names = " or ".join(wanted)
        package = topic.type.partition("/")[0]
        is_known = self._bag.types.learn(topic)
        why = "" if is_known else f", a type of package {package} that is not known here"
        self.problems.append(f"{what}: {topic.name} is {topic.type}{why}; wanted {names}")
        return False
