"""The robot: cameras by role, joints by name, limits, transforms, and when inputs belong together."""

from __future__ import annotations

from dataclasses import dataclass, field

from oxygen_ros.config.camera import CameraConfig
from oxygen_ros.config.field import named_sections, parameter
from oxygen_ros.config.joint import GripperConfig, JointConfig, JointTopicConfig
from oxygen_ros.config.sync import SyncConfig


@dataclass(frozen=True)
class RobotConfig:
    """One robot. Lists of names; what belongs to a name is in the section of that name."""

    name: str = parameter("", help="Name of the robot, for logs and records.")
    trained_rate_hz: float = parameter(
        0.0,
        unit="Hz",
        minimum=0.0,
        maximum=1000.0,
        help="Action rate the checkpoint was trained at. 10 % off is warned about. 0: not known.",
    )
    transform: str = parameter("identity", help="Robot transform between joints and model values.")
    adapt_to_pi: bool = parameter(True, help="ALOHA only: joint signs and gripper maps of the base model.")
    relative_actions: bool = parameter(
        False,
        help="Actions are offsets from the state, except grippers. openpi only: LeRobot's files say it.",
    )
    command_kind: str = parameter(
        "position",
        choices=("position", "velocity", "delta"),
        help="What commands mean where a joint does not say otherwise. Hold sends 0 for velocity and delta.",
    )
    camera_roles: tuple[str, ...] = parameter((), help="Cameras, by what they look at.")
    cameras: dict[str, CameraConfig] = field(
        default_factory=dict,
        metadata=named_sections(CameraConfig, noun="role", names_from=("camera_roles",)),
    )
    joint_names: tuple[str, ...] = parameter((), help="State vector: joint names in the model's order.")
    command_joint_names: tuple[str, ...] = parameter(
        (), help="Action vector: joint names in the model's order. None: the same as joint_names."
    )
    joints: dict[str, JointConfig] = field(
        default_factory=dict,
        metadata=named_sections(JointConfig, noun="joint", names_from=("command_joint_names", "joint_names")),
    )
    gripper_joints: tuple[str, ...] = parameter((), help="Which of the joints are grippers.")
    grippers: dict[str, GripperConfig] = field(
        default_factory=dict,
        metadata=named_sections(GripperConfig, noun="joint", names_from=("gripper_joints",)),
    )
    joint_topic_names: tuple[str, ...] = parameter(
        ("joints",), help="JointState topics, by a name of your choice; they are merged by joint name."
    )
    joint_topics: dict[str, JointTopicConfig] = field(
        default_factory=lambda: {"joints": JointTopicConfig(topic="joint_states")},
        metadata=named_sections(JointTopicConfig, noun="source", names_from=("joint_topic_names",)),
    )
    sync: SyncConfig = field(default_factory=SyncConfig)

    @property
    def state_dim(self) -> int:
        """Length of the state vector."""
        return len(self.joint_names)

    @property
    def action_dim(self) -> int:
        """Length of one action."""
        return len(self.command_joint_names)

    @property
    def command_joints(self) -> tuple[JointConfig, ...]:
        """Limits in the order of ``command_joint_names``."""
        return tuple(self.joints[name] for name in self.command_joint_names)

    def command_kind_of(self, joint: str) -> str:
        """What a command of ``joint`` means: position, velocity or delta."""
        own = self.joints[joint].command_kind
        return self.command_kind if own == "auto" else own

    def slot_of(self, role: str) -> str:
        """Camera slot of the model that ``role`` fills."""
        return self.cameras[role].slot or role
