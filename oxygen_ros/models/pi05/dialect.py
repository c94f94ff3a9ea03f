"""Dialects: what differs in prompts, pictures and numbers between the projects that train pi0.5.

A dialect is a property of the checkpoint. It says nothing of sizes, files or robots.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from oxygen_ros.errors import ConfigError


class Resize(enum.Enum):
    """How a picture is made small."""

    PIL_UINT8 = "PIL bilinear on 8 bits, antialiased, rounded"
    """openpi."""
    FLOAT_BILINEAR = "plain bilinear on floats, no antialias"
    """LeRobot."""


class Epsilon(enum.Enum):
    """How a division by a range of zero is avoided."""

    ADD_1E_6 = "1e-6 added to every range and deviation, both ways"
    """openpi; computes in float64."""
    REPLACE_1E_8 = "ranges of 0 become 1e-8; deviations + 1e-8 on the way in only"
    """LeRobot; computes in float32."""


class TaskText(enum.Enum):
    """What happens to the instruction of a prompt without state (pi0)."""

    CLEANED = "stripped, '_' and newline become spaces; the closing newline is a token of its own"
    """openpi."""
    AS_IS = "as it is; a closing newline is added if it lacks one"
    """LeRobot."""


@dataclass(frozen=True)
class Dialect:
    """One way to feed pi0.5.

    Attributes:
        prompt_state_dim: the state in the prompt is padded with zeros to this length; 0: not padded.
        letterbox: value of the padding at the model, where pictures lie in [-1, 1].
        has_exact_grid: denoise times are 1 - i/S; otherwise they are summed up in float32.
    """

    name: str
    resize: Resize
    letterbox: float
    prompt_state_dim: int
    task_text: TaskText
    epsilon: Epsilon
    has_exact_grid: bool


OPENPI = Dialect(
    name="openpi",
    resize=Resize.PIL_UINT8,
    letterbox=-1.0,
    prompt_state_dim=0,
    task_text=TaskText.CLEANED,
    epsilon=Epsilon.ADD_1E_6,
    has_exact_grid=False,
)
LEROBOT_0_4 = Dialect(
    name="lerobot_0_4",
    resize=Resize.FLOAT_BILINEAR,
    letterbox=-3.0,
    prompt_state_dim=32,
    task_text=TaskText.AS_IS,
    epsilon=Epsilon.REPLACE_1E_8,
    has_exact_grid=True,
)
LEROBOT_0_5_PLUS = Dialect(
    name="lerobot_0_5_plus",
    resize=Resize.FLOAT_BILINEAR,
    letterbox=-1.0,
    prompt_state_dim=0,
    task_text=TaskText.AS_IS,
    epsilon=Epsilon.REPLACE_1E_8,
    has_exact_grid=True,
)
DIALECTS = {dialect.name: dialect for dialect in (OPENPI, LEROBOT_0_4, LEROBOT_0_5_PLUS)}
AUTO = "auto"


def dialect_by_name(name: str) -> Dialect:
    """Dialect of that name.

    Raises:
        ConfigError: if there is none.
    """
    try:
        return DIALECTS[name]
    except KeyError:
        raise ConfigError(
            "unknown_dialect",
            f"there is no dialect {name!r}",
            f"one of {', '.join((AUTO, *DIALECTS))}",
        ) from None
