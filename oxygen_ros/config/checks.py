"""Checks across parameters: what contradicts is an error, what is unwise a warning."""

from __future__ import annotations

import dataclasses
import re

from oxygen_ros.config.robot_checks import check_robot
from oxygen_ros.config.root import OxygenConfig
from oxygen_ros.errors import ConfigError

_TOPIC = re.compile(r"(~/|/)?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def check(config: OxygenConfig) -> None:
    """Refuse a configuration whose parts contradict each other.

    Raises:
        ConfigError: no_cameras, no_joints, repeated_name, unknown_name, bad_name, bad_topic or conflict;
            names the parameter, what was got and what is wanted.
    """
    _check_words(config)
    check_robot(config.robot)
    _check_topics(config)
    _check_actions(config)
    _check_output(config)
    _check_text(config)


def warnings(config: OxygenConfig) -> tuple[str, ...]:
    """What is allowed, but likely not meant; one sentence each."""
    found: list[str] = []
    cycle, model, robot, player = config.cycle, config.model, config.robot, config.player
    if cycle.execute_horizon > (model.horizon + 1) // 2:
        found.append(
            f"cycle.execute_horizon is {cycle.execute_horizon} of model.horizon {model.horizon}: "
            "more than half of a chunk is run without a new look; seams may shake."
        )
    trained = robot.trained_rate_hz
    if trained and abs(cycle.action_rate_hz - trained) > 0.1 * trained:
        found.append(
            f"cycle.action_rate_hz is {cycle.action_rate_hz:g} Hz, but robot.trained_rate_hz is "
            f"{trained:g} Hz: the robot moves at another speed than in training."
        )
    if player.overlap_steps < 1:
        found.append("player.overlap_steps is 0: a trajectory controller comes to rest at every seam.")
    if config.text.enabled and cycle.reserve_ns >= cycle.period_ns:
        found.append("cycle.reserve_ms is as long as the cycle: no text is ever decoded.")
    return tuple(found)


def _check_words(config: OxygenConfig) -> None:
    lists = {
        "robot.camera_roles": config.robot.camera_roles,
        "robot.joint_topic_names": config.robot.joint_topic_names,
        "text.task_names": config.text.task_names,
        "model.experts": config.model.experts,
    }
    for name, words in lists.items():
        for word in words:
            if not _WORD.fullmatch(word):
                raise ConfigError(
                    "bad_name",
                    f"{name} holds '{word}'; wanted letters, digits and _ with a letter first.",
                    re.sub(r"\W", "_", word),
                )


def _check_topics(config: OxygenConfig) -> None:
    topics = {f"topics.{name}": topic for name, topic in dataclasses.asdict(config.topics).items()}
    for role, camera in config.robot.cameras.items():
        topics[f"robot.cameras.{role}.topic"] = camera.topic
    for source, stream in config.robot.joint_topics.items():
        topics[f"robot.joint_topics.{source}.topic"] = stream.topic
    for name, topic in topics.items():
        if not _TOPIC.fullmatch(topic) and not (topic == "" and name == "topics.voice_command"):
            raise ConfigError(
                "bad_topic", f"{name} is '{topic}'; wanted the name of a topic, as in arm/camera."
            )


def _check_actions(config: OxygenConfig) -> None:
    horizon = config.model.horizon
    if not config.model.experts:
        raise ConfigError("conflict", "model.experts names no action expert.", "model.experts: [default]")
    if config.cycle.execute_horizon > horizon:
        raise ConfigError(
            "conflict",
            f"cycle.execute_horizon is {config.cycle.execute_horizon}; "
            f"wanted at most model.horizon {horizon}.",
            f"cycle.execute_horizon: {max(1, horizon // 2)}",
        )
    if config.player.mode == "rtc" and config.player.rtc_execution_horizon > horizon:
        raise ConfigError(
            "conflict",
            f"player.rtc_execution_horizon is {config.player.rtc_execution_horizon}; "
            f"wanted at most model.horizon {horizon}.",
            f"player.rtc_execution_horizon: {horizon}",
        )


def _check_output(config: OxygenConfig) -> None:
    robot, output = config.robot, config.player.output
    others = [n for n in robot.command_joint_names if robot.command_kind_of(n) != "position"]
    if output != "array" and others:
        raise ConfigError(
            "conflict",
            f"player.output is {output}, which carries positions; the commands of {', '.join(others)} are "
            "none (robot.command_kind); wanted array.",
            "player.output: array",
        )


def _check_text(config: OxygenConfig) -> None:
    text, capacity = config.text, config.kv.row_capacity
    if not text.enabled:
        return
    wanted = text.max_prompt_tokens + text.max_tokens
    if wanted > capacity:
        raise ConfigError(
            "conflict",
            f"kv.row_capacity is {capacity}; wanted at least text.max_prompt_tokens {text.max_prompt_tokens} "
            f"+ text.max_tokens {text.max_tokens}.",
            f"kv.row_capacity: {wanted}",
        )
    for name, task in text.tasks.items():
        if task.max_tokens > text.max_tokens:
            raise ConfigError(
                "conflict",
                f"text.tasks.{name}.max_tokens is {task.max_tokens}; "
                f"wanted at most text.max_tokens {text.max_tokens}.",
                f"text.tasks.{name}.max_tokens: {text.max_tokens}",
            )
    if config.runner.kind == "fake" and not config.runner.fake.script:
        raise ConfigError("conflict", "runner.fake.script is empty; wanted texts, or text.enabled: false.")
