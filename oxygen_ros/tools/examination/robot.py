"""The checkpoint on the robot: cameras, joints, the first prompt, normalisation of every dimension."""

from __future__ import annotations

import numpy as np

from oxygen_ros.assembly.pi05 import OpenedPi05
from oxygen_ros.config import OxygenConfig
from oxygen_ros.models.pi05.checkpoint import Origin
from oxygen_ros.models.pi05.normalise import DEGENERATE_BOUND, Normaliser
from oxygen_ros.models.pi05.statistics import NormMode
from oxygen_ros.tools.examination.findings import Section
from oxygen_ros.types import FloatArray, Observation

EXAMPLE_TASK = "pick up the cup"
# A checkpoint's commands may leave the robot's limits by this part of their range before it is said.
LIMIT_SLACK = 0.25


def examine_cameras(opened: OpenedPi05, config: OxygenConfig) -> Section:
    """Which camera fills which slot."""
    section = Section("camera slots")
    for slot in opened.processor.slots:
        if slot.role is None:
            section.fact(f"{slot.index}: {slot.name} <- nothing; it costs nothing", slot=slot.name, role=None)
            continue
        camera = config.robot.cameras[slot.role]
        notes = [camera.topic, camera.type]
        notes += ["turned by 180 degrees"] if slot.is_upside_down else []
        notes += [] if slot.is_required else ["may be absent"]
        section.fact(
            f"{slot.index}: {slot.name} <- {slot.role} ({', '.join(notes)})", slot=slot.name, role=slot.role
        )
    section.fact("only names can show that two cameras are swapped: read this list")
    return section


def examine_prompt(opened: OpenedPi05, config: OxygenConfig, state: FloatArray | None = None) -> Section:
    """The first prompt as text and ids, from a live state or from the middle of the recorded range."""
    section = Section("first prompt")
    task = config.instruction or EXAMPLE_TASK
    origin = "the robot's own state" if state is not None else "the middle of the recorded state"
    values = middle_state(opened) if state is None else state
    prompt = opened.processor.prompt(Observation(1, 0, {}, values, task))
    section.fact(f"from {origin} and the task {task!r}", task=task, state=[float(value) for value in values])
    section.fact(repr(prompt.text), text=prompt.text)
    ids = prompt.token_ids.tolist()
    section.fact(f"{len(ids)} tokens: {' '.join(map(str, ids))}", token_ids=ids)
    file = opened.tokenizer.file
    section.fact(
        f"tokenizer {file.path}: {file.known_as or 'unknown content'}, {opened.tokenizer.vocab_size} entries"
    )
    if prompt.is_truncated:
        section.warn(
            "the task text is too long and was shortened", "prompt_truncated", "a shorter instruction"
        )
    if prompt.num_clipped and state is not None:
        section.warn(
            f"{prompt.num_clipped} joints are outside the recorded range now",
            "state_clipped",
            "check units and signs of the joints, or move the robot to where the data starts",
        )
    return section


def middle_state(opened: OpenedPi05) -> FloatArray:
    """The state, in the robot's units, that lies in the middle of model space."""
    normaliser = opened.processor.state_normaliser
    middle = normaliser.unnormalise(np.zeros(normaliser.num_dims))
    return opened.processor.numbers.state_to_robot(middle).astype(np.float32)


def examine_joints(opened: OpenedPi05, config: OxygenConfig) -> Section:
    """Joint by joint: mode, recorded range in the robot's units, and whether it fits the robot's limits."""
    section = Section("joints")
    robot, processor = config.robot, opened.processor
    numbers = processor.numbers
    state_ends = [numbers.state_to_robot(end) for end in _ends(processor.state_normaliser)]
    _list(section, "state", robot.joint_names, processor.state_normaliser, state_ends)
    command_ends = [numbers.commands_to_robot(end) for end in _ends(processor.action_normaliser)]
    _list(section, "command", robot.command_joint_names, processor.action_normaliser, command_ends)
    relative = processor.relative
    if relative is not None:
        pairs = zip(robot.command_joint_names, relative.mask, strict=True)
        absolute = [name for name, is_relative in pairs if not is_relative]
        where = "the checkpoint" if opened.checkpoint.origin is Origin.LEROBOT else "robot.relative_actions"
        section.fact(
            f"commands are offsets from the state at prediction (by {where}), "
            f"except {', '.join(absolute) or 'none'}",
            relative=[bool(flag) for flag in relative.mask],
        )
    if processor.action_normaliser.mode is not NormMode.IDENTITY:
        _check_limits(section, opened, config, command_ends)
    return section


def _ends(normaliser: Normaliser) -> list[np.ndarray]:
    """Model numbers at both ends of normalised space, in the checkpoint's own units."""
    return [normaliser.unnormalise(np.full(normaliser.num_dims, end)) for end in (-1.0, 1.0)]


def _list(
    section: Section, kind: str, names: tuple[str, ...], normaliser: Normaliser, ends: list[np.ndarray]
) -> None:
    width = max(map(len, names))
    for dim, name in enumerate(names):
        low, high = sorted((float(ends[0][dim]), float(ends[1][dim])))
        text = f"{kind} {dim:2} {name:{width}}  {normaliser.mode.value:9}  {low:10.4f} .. {high:.4f}"
        values = {
            "kind": kind,
            "index": dim,
            "name": name,
            "mode": normaliser.mode.value,
            "low": low,
            "high": high,
        }
        if dim in normaliser.degenerate:
            section.warn(
                f"{text}  never moved in training: kept within {DEGENERATE_BOUND:g} of model space",
                "degenerate_range",
                f"see that {name} stands where it stood in the data",
                **values,
            )
        else:
            section.fact(text, **values)


def _check_limits(section: Section, opened: OpenedPi05, config: OxygenConfig, ends: list[np.ndarray]) -> None:
    """Compare what the checkpoint commands with what the robot's limits allow."""
    robot, relative = config.robot, opened.processor.relative
    for dim, name in enumerate(robot.command_joint_names):
        joint = robot.joints[name]
        low, high = sorted((float(ends[0][dim]), float(ends[1][dim])))
        is_relative = relative is not None and bool(relative.mask[dim])
        slack = LIMIT_SLACK * max(high - low, 1e-9)
        if is_relative or (low >= joint.position_min - slack and high <= joint.position_max + slack):
            continue
        section.warn(
            f"command {name}: the checkpoint's range {low:.3f} .. {high:.3f} leaves the robot's limits "
            f"{joint.position_min:g} .. {joint.position_max:g}",
            "command_range",
            "check units (degrees or radians), sign and order of the joints",
        )
