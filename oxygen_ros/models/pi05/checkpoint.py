"""A pi0.5 or pi0 checkpoint as it lies on disk, opened and understood, with nothing loaded yet.

``open_checkpoint`` (in ``checkpoint_open``) makes one, or refuses by name. Knows no robot.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from oxygen_ros.models.pi05.config import Pi05Config
from oxygen_ros.models.pi05.dialect import Dialect
from oxygen_ros.models.pi05.prompt import PromptStyle
from oxygen_ros.models.pi05.statistics import FeatureStatistics, NormMode
from oxygen_ros.models.tensor_files import StoredTensor


class Origin(enum.Enum):
    """Which project wrote the directory."""

    LEROBOT = "lerobot"
    OPENPI = "openpi"


@dataclass(frozen=True)
class Feature:
    """State or action of the checkpoint.

    Attributes:
        num_dims: None where the files do not say it (openpi): the robot does.
    """

    statistics: FeatureStatistics
    mode: NormMode
    num_dims: int | None


@dataclass(frozen=True)
class RelativeRule:
    """Which actions are offsets from the state, in LeRobot's words."""

    action_names: tuple[str, ...] | None
    excluded: tuple[str, ...]


@dataclass(frozen=True)
class CameraSlot:
    """One camera slot of the model. An empty one is never fed and costs nothing."""

    name: str
    is_empty: bool = False


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a directory says about its model.

    Attributes:
        dialect_reason: why this dialect, for people.
        tensors: by openpi's plain name, whatever the prefix in the file.
        cameras: in slot order; the order never changes.
        renamed: LeRobot's map from a data set's camera names to the model's.
        decisions: what was concluded and why, one sentence each.
        warnings: what is odd but not wrong, one sentence each.
    """

    path: Path
    origin: Origin
    config: Pi05Config
    dialect: Dialect
    dialect_reason: str
    tensors: Mapping[str, StoredTensor]
    state: Feature
    action: Feature
    cameras: tuple[CameraSlot, ...]
    relative: RelativeRule | None
    prompt_style: PromptStyle
    tokenizer_path: Path | None
    tokenizer_name: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    decisions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The model: "pi05" or "pi0"."""
        return self.config.experts[0].head.value

    @property
    def num_bytes(self) -> int:
        """Bytes of all tensors that are read, as stored."""
        return sum(tensor.num_bytes for tensor in self.tensors.values())

    @property
    def num_parameters(self) -> int:
        """Parameters of all tensors that are read; a tied head counts once."""
        return sum(tensor.num_elements for tensor in self.tensors.values())
