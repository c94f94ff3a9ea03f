"""The transform of one robot: all its maps for the state, and all for its commands.

Made from the robot's configuration. Knows nothing of normalising, models or messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oxygen_ros.config.joint import GripperConfig
from oxygen_ros.config.robot import RobotConfig
from oxygen_ros.errors import ConfigError
from oxygen_ros.robots import aloha
from oxygen_ros.robots.maps import Gripper, PairedMap, Signs, Vector, chain_to_model, chain_to_robot

TRANSFORMS = ("identity", "libero", "droid", "aloha")
"""Names of transforms. LIBERO and DROID need no map beside their grippers' conventions."""


@dataclass(frozen=True)
class RobotTransform:
    """State and commands between the robot's units and the numbers its checkpoint was trained on.

    Invariant: ``state_to_robot`` undoes ``state_to_model``, and the same for commands.
    """

    state_maps: tuple[PairedMap, ...]
    command_maps: tuple[PairedMap, ...]

    def state_to_model(self, state: Vector) -> Vector:
        """Model numbers of a state [..., state_dim]."""
        return chain_to_model(self.state_maps, state)

    def state_to_robot(self, state: Vector) -> Vector:
        """Robot units of a state in model numbers."""
        return chain_to_robot(self.state_maps, state)

    def commands_to_model(self, commands: Vector) -> Vector:
        """Model numbers of commands [..., action_dim]."""
        return chain_to_model(self.command_maps, commands)

    def commands_to_robot(self, commands: Vector) -> Vector:
        """Robot units of commands in model numbers."""
        return chain_to_robot(self.command_maps, commands)


def make_transform(robot: RobotConfig, *, adapt_to_pi: bool) -> RobotTransform:
    """Transform of ``robot``.

    Args:
        robot: the configuration.
        adapt_to_pi: ALOHA only: the signs and gripper angles of openpi's base model. LeRobot's
            checkpoints are trained without them.

    Raises:
        ConfigError: if the transform is unknown or does not fit the joints.
    """
    if robot.transform not in TRANSFORMS:
        raise ConfigError(
            "unknown_transform",
            f"robot.transform is {robot.transform!r}; there is {', '.join(TRANSFORMS)}",
            "use identity for a robot without maps of its own",
        )
    state_maps = _grippers(robot.joint_names, robot)
    command_maps = _grippers(robot.command_joint_names, robot)
    if robot.transform == "aloha" and adapt_to_pi:
        _check_aloha(robot)
        signs = Signs(aloha.FLIPPED)
        state_maps += (signs, *(aloha.StateGripper(index) for index in aloha.GRIPPERS))
        command_maps += (signs, *(aloha.CommandGripper(index) for index in aloha.GRIPPERS))
    return RobotTransform(state_maps, command_maps)


def _grippers(names: Sequence[str], robot: RobotConfig) -> tuple[PairedMap, ...]:
    return tuple(
        _gripper(index, robot.grippers[name])
        for index, name in enumerate(names)
        if name in robot.gripper_joints
    )


def _gripper(index: int, config: GripperConfig) -> Gripper:
    is_mirrored = (config.convention == "one_is_closed") != config.invert
    at_one, at_zero = (config.closed, config.open) if is_mirrored else (config.open, config.closed)
    return Gripper(index, at_zero=at_zero, at_one=at_one)


def _check_aloha(robot: RobotConfig) -> None:
    for noun, names in (
        ("joint_names", robot.joint_names),
        ("command_joint_names", robot.command_joint_names),
    ):
        grippers = tuple(index for index, name in enumerate(names) if name in robot.gripper_joints)
        if len(names) != aloha.NUM_JOINTS or grippers != aloha.GRIPPERS:
            raise ConfigError(
                "transform_joints",
                f"robot.{noun} has {len(names)} joints with grippers at {list(grippers)}; "
                f"the aloha transform wants {aloha.NUM_JOINTS}, six joints and a gripper for each arm",
                "use robot.transform: identity, or set robot.adapt_to_pi: false",
            )
