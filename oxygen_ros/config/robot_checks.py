"""Checks within the robot section: names, camera slots, joint limits, grippers."""

from __future__ import annotations

from collections import Counter

from oxygen_ros.config.robot import RobotConfig
from oxygen_ros.errors import ConfigError

_NAME_LISTS = ("camera_roles", "joint_names", "command_joint_names", "gripper_joints", "joint_topic_names")


def check_robot(robot: RobotConfig) -> None:
    """Refuse a robot without cameras or joints, with names given twice, or with senseless limits.

    Raises:
        ConfigError: no_cameras, no_joints, repeated_name, unknown_name or conflict.
    """
    _check_lists(robot)
    _check_cameras(robot)
    _check_joints(robot)
    _check_grippers(robot)


def _check_lists(robot: RobotConfig) -> None:
    if not robot.camera_roles:
        raise ConfigError(
            "no_cameras",
            "robot.camera_roles names no camera; wanted at least one role.",
            "choose a robot (preset), or robot.camera_roles: [base]",
        )
    if not robot.joint_names:
        raise ConfigError(
            "no_joints",
            "robot.joint_names names no joint; wanted the joints of the state in the model's order.",
            "choose a robot (preset), or robot.joint_names: [joint1, joint2]",
        )
    if not robot.joint_topic_names:
        raise ConfigError(
            "no_joints",
            "robot.joint_topic_names names no topic; wanted at least one.",
            "robot.joint_topic_names: [joints]",
        )
    for name in _NAME_LISTS:
        repeated = [item for item, count in Counter(getattr(robot, name)).items() if count > 1]
        if repeated:
            raise ConfigError("repeated_name", f"robot.{name} names more than once: {', '.join(repeated)}.")


def _check_cameras(robot: RobotConfig) -> None:
    roles_by_slot: dict[str, list[str]] = {}
    for role in robot.camera_roles:
        roles_by_slot.setdefault(robot.slot_of(role), []).append(role)
    for slot, roles in roles_by_slot.items():
        if len(roles) > 1:
            raise ConfigError(
                "conflict",
                f"The cameras {', '.join(roles)} fill the same slot '{slot}'.",
                "give each its own robot.cameras.<role>.slot",
            )
    if not any(camera.required for camera in robot.cameras.values()):
        raise ConfigError("conflict", "No camera has required: true; wanted at least one.")


def _check_joints(robot: RobotConfig) -> None:
    for name, joint in robot.joints.items():
        if not joint.position_min < joint.position_max:
            raise ConfigError(
                "conflict",
                f"robot.joints.{name}.position_min is {joint.position_min:g}; "
                f"wanted less than position_max {joint.position_max:g}.",
            )


def _check_grippers(robot: RobotConfig) -> None:
    joints = dict.fromkeys([*robot.joint_names, *robot.command_joint_names])
    for name, gripper in robot.grippers.items():
        if name not in joints:
            raise ConfigError(
                "unknown_name",
                f"robot.gripper_joints names '{name}'; wanted joints of the robot: {', '.join(joints)}.",
            )
        if gripper.open == gripper.closed:
            raise ConfigError(
                "conflict",
                f"robot.grippers.{name}.open and closed are both {gripper.open:g}; wanted two values.",
            )
