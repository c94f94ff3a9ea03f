"""Which camera of the robot fills which slot of the model: by name, fixed for good, refused where unclear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from oxygen_ros.errors import ConfigError
from oxygen_ros.models.pi05.checkpoint import CameraSlot, Checkpoint, Origin

LEROBOT_IMAGES = "observation.images."


class CameraView(Protocol):
    """What is read of a camera's configuration."""

    @property
    def slot(self) -> str:
        """Slot of the model; empty for the role's own name."""
        ...

    @property
    def feature(self) -> str:
        """Image key of a LeRobot checkpoint; empty for none."""
        ...

    @property
    def required(self) -> bool:
        """False if the robot acts on without it."""
        ...

    @property
    def rotate_180(self) -> bool:
        """True if its pictures are turned first."""
        ...


@dataclass(frozen=True)
class BoundSlot:
    """One slot of the model. Without a role it is never fed.

    Attributes:
        index: place among all slots; a slot that is not fed keeps its place.
    """

    index: int
    name: str
    role: str | None
    is_required: bool = False
    is_upside_down: bool = False


def bind_cameras(
    checkpoint: Checkpoint, roles: Sequence[str], cameras: Mapping[str, CameraView]
) -> tuple[BoundSlot, ...]:
    """Slots of ``checkpoint`` in order, each with the role that fills it.

    Raises:
        ConfigError: if a role fits no slot, two fit the same, or a slot that was trained with pictures
            gets none. Lists what the model wants, what is given and what is unmapped.
    """
    names = [slot.name for slot in checkpoint.cameras]
    role_of: dict[str, str] = {}
    unmapped = []
    for role in roles:
        name = next((name for name in _candidates(checkpoint, role, cameras[role]) if name in names), None)
        if name is None:
            unmapped.append(role)
        elif name in role_of:
            raise ConfigError(
                "camera_twice",
                f"the cameras {role_of[name]!r} and {role!r} both fill the slot {name!r}",
                f"give each its own robot.cameras.{role}.slot or .feature",
            )
        else:
            role_of[name] = role
    unfed = [
        slot.name
        for slot in checkpoint.cameras
        if _must_be_fed(checkpoint, slot) and slot.name not in role_of
    ]
    if unmapped or unfed:
        raise ConfigError(
            "camera_map",
            f"the model wants {', '.join(names)}; given: {', '.join(roles) or 'nothing'}; "
            f"cameras that fit no slot: {', '.join(unmapped) or 'none'}; "
            f"slots without a camera: {', '.join(unfed) or 'none'}",
            "set robot.cameras.<role>.slot or .feature to a name that the model wants",
        )
    return tuple(_bind(index, name, role_of.get(name), cameras) for index, name in enumerate(names))


def _candidates(checkpoint: Checkpoint, role: str, camera: CameraView) -> list[str]:
    """Names of slots that ``role`` may mean, the most explicit first."""
    if checkpoint.origin is Origin.OPENPI:
        return [camera.slot] if camera.slot else [role]
    given = [name for name in (camera.feature, camera.slot) if name] or [role]
    full = [name for short in given for name in (short, LEROBOT_IMAGES + short)]
    return [checkpoint.renamed.get(name, name) for name in full]


def _must_be_fed(checkpoint: Checkpoint, slot: CameraSlot) -> bool:
    """LeRobot declares its empty slots; openpi's models are trained with absent wrist cameras."""
    if checkpoint.origin is Origin.LEROBOT:
        return not slot.is_empty
    return slot is checkpoint.cameras[0]


def _bind(index: int, name: str, role: str | None, cameras: Mapping[str, CameraView]) -> BoundSlot:
    if role is None:
        return BoundSlot(index, name, None)
    camera = cameras[role]
    return BoundSlot(index, name, role, is_required=camera.required, is_upside_down=camera.rotate_180)
