"""Checks across parameters: what contradicts is an error, what is unwise a warning."""

from __future__ import annotations

from collections import Counter

from oxygen_ros.config.robot import RobotConfig
from oxygen_ros.config.root import OxygenConfig
from oxygen_ros.errors import ConfigError


def check(config: OxygenConfig) -> None:
    """Refuse a configuration whose parts contradict each other.

    Raises:
        ConfigError: no_cameras, no_joints, repeated_name, unknown_name, no_topic or conflict; names the
            parameter, what was got and what is wanted.
    """
    _check_robot_names(config.robot)
    _check_topics(config.robot)
    _check_joints(config.robot)
    _check_cycle(config)
    _check_text(config)


def warnings(config: OxygenConfig) -> tuple[str, ...]:
    """What is allowed, but likely not meant; one sentence each."""
    found: list[str] = []
    cycle, model, robot, player = config.cycle, config.model, config.robot, config.player
    if cycle.execute_horizon > max(1, model.horizon // 2):
        found.append(
            f"cycle.execute_horizon is {cycle.execute_horizon} of model.horizon {model.horizon}: "
            "more than half of a chunk is run without a new look; seams may shake."
        )
    trained = robot.trained_rate_hz
    if trained and abs(cycle.action_rate_hz - trained) > 0.1 * trained:
        found.append(
            f"cycle.action_rate_hz is {cycle.action_rate_hz:g} Hz, but the checkpoint was trained at "
            f"robot.trained_rate_hz {trained:g} Hz: the robot moves at another speed."
        )
    if player.output == "trajectory" and player.overlap_steps < 1:
        found.append("player.overlap_steps is 0: a trajectory controller comes to rest at every seam.")
    if cycle.reserve_ns >= cycle.period_ns:
        found.append("cycle.reserve_ms is the whole cycle: no text is ever decoded.")
    return tuple(found)


def _check_robot_names(robot: RobotConfig) -> None:
    if not robot.camera_roles:
        raise ConfigError(
            "no_cameras",
            "robot.camera_roles names no camera; wanted at least one role.",
            "choose a robot with preset, or name the cameras: robot.camera_roles: [base]",
        )
    if not robot.joint_names:
        raise ConfigError(
            "no_joints",
            "robot.joint_names names no joint; wanted the joints of the state in the model's order.",
            "choose a robot with preset, or name the joints: robot.joint_names: [joint1, joint2]",
        )
    if not robot.joint_topic_names:
        raise ConfigError(
            "no_joints",
            "robot.joint_topic_names names no topic; wanted at least one.",
            "robot.joint_topic_names: [joints]",
        )
    for name in ("camera_roles", "joint_names", "command_joint_names", "gripper_joints", "joint_topic_names"):
        repeated = [item for item, count in Counter(getattr(robot, name)).items() if count > 1]
        if repeated:
            raise ConfigError("repeated_name", f"robot.{name} names {', '.join(repeated)} more than once.")
    joints = set(robot.joint_names) | set(robot.command_joint_names)
    strange = [name for name in robot.gripper_joints if name not in joints]
    if strange:
        raise ConfigError(
            "unknown_name",
            f"robot.gripper_joints names {', '.join(strange)}; wanted joints of the robot: "
            f"{', '.join(sorted(joints))}.",
        )


def _check_topics(robot: RobotConfig) -> None:
    for role, camera in robot.cameras.items():
        if not camera.topic:
            raise ConfigError(
                "no_topic",
                f"robot.cameras.{role}.topic is empty; wanted the topic of this camera.",
                f"robot.cameras.{role}.topic: {role}/image_raw",
            )
    for source, stream in robot.joint_topics.items():
        if not stream.topic:
            raise ConfigError(
                "no_topic",
                f"robot.joint_topics.{source}.topic is empty; wanted a JointState topic.",
                f"robot.joint_topics.{source}.topic: joint_states",
            )
    slots = Counter(robot.slot_of(role) for role in robot.camera_roles)
    for slot, count in slots.items():
        if count > 1:
            roles = [role for role in robot.camera_roles if robot.slot_of(role) == slot]
            raise ConfigError(
                "conflict",
                f"The cameras {', '.join(roles)} fill the same slot '{slot}'.",
                "give each its own robot.cameras.<role>.slot",
            )
    if not any(camera.required for camera in robot.cameras.values()):
        raise ConfigError("conflict", "No camera has required: true; wanted at least one that must be there.")


def _check_joints(robot: RobotConfig) -> None:
    for name, joint in robot.joints.items():
        if not joint.position_min < joint.position_max:
            raise ConfigError(
                "conflict",
                f"robot.joints.{name}.position_min is {joint.position_min:g}, "
                f"not below position_max {joint.position_max:g}.",
            )
    for name, gripper in robot.grippers.items():
        if gripper.open == gripper.closed:
            raise ConfigError(
                "conflict",
                f"robot.grippers.{name}: open and closed are both {gripper.open:g}; wanted two values.",
            )


def _check_cycle(config: OxygenConfig) -> None:
    if config.cycle.execute_horizon > config.model.horizon:
        raise ConfigError(
            "conflict",
            f"cycle.execute_horizon is {config.cycle.execute_horizon}; wanted at most model.horizon, "
            f"which is {config.model.horizon}.",
            f"cycle.execute_horizon: {max(1, config.model.horizon // 2)}",
        )
    if not config.model.experts:
        raise ConfigError("conflict", "model.experts names no action expert.", "model.experts: [default]")
    if config.player.mode == "rtc" and config.player.rtc_execution_horizon > config.model.horizon:
        raise ConfigError(
            "conflict",
            f"player.rtc_execution_horizon is {config.player.rtc_execution_horizon}; wanted at most "
            f"model.horizon, which is {config.model.horizon}.",
            f"player.rtc_execution_horizon: {config.model.horizon}",
        )


def _check_text(config: OxygenConfig) -> None:
    text, capacity = config.text, config.kv.row_capacity
    if not text.enabled:
        return
    if text.max_prompt_tokens + text.max_tokens > capacity:
        raise ConfigError(
            "conflict",
            f"kv.row_capacity is {capacity} tokens; wanted at least text.max_prompt_tokens "
            f"{text.max_prompt_tokens} + text.max_tokens {text.max_tokens}.",
            f"kv.row_capacity: {text.max_prompt_tokens + text.max_tokens}",
        )
    for name, task in text.tasks.items():
        if task.max_tokens > text.max_tokens:
            raise ConfigError(
                "conflict",
                f"text.tasks.{name}.max_tokens is {task.max_tokens}; wanted at most text.max_tokens, "
                f"which is {text.max_tokens}.",
                f"text.tasks.{name}.max_tokens: {text.max_tokens}",
            )
