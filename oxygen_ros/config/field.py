"""Declares configuration fields: one place for default, unit, bounds, choices and help.

Everything that people see of a parameter (ROS descriptor, config/oxygen.yaml, docs/parameters.md,
error messages) is made from what is written here. Knows no files, no ROS.
"""

from __future__ import annotations

import dataclasses
from typing import Any

Value = bool | int | float | str | tuple[str, ...] | tuple[int, ...] | tuple[float, ...]

PARAMETER_KEY = "oxygen_parameter"
NAMED_KEY = "oxygen_named"


@dataclasses.dataclass(frozen=True)
class Parameter:
    """What is said about one field besides name, type and default.

    Attributes:
        unit: unit of the value, empty for none.
        minimum, maximum: inclusive bounds; for a list they hold for each element.
        choices: allowed strings; empty for any.
        is_read_only: fixed from the start of the process.
    """

    help: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    is_read_only: bool = False


@dataclasses.dataclass(frozen=True)
class NamedSections:
    """A map of equal sections by name. ROS has no maps, so a list elsewhere holds the names.

    Attributes:
        element: dataclass of one section.
        noun: what a name stands for, e.g. "role": used as ``<role>`` in texts.
        names_from: fields of the same dataclass that hold the names, as tuples of str; the first that
            is not empty counts.
    """

    element: type[Any]
    noun: str
    names_from: tuple[str, ...]


def parameter(
    default: Any,
    *,
    help: str,
    unit: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    read_only: bool = False,
) -> Any:
    """Field of a configuration dataclass. A list's default is a tuple.

    ROS cannot type an empty list: there an empty tuple of strings is written ``['']``.
    """
    facts = Parameter(help, unit, minimum, maximum, choices, read_only)
    return dataclasses.field(default=default, metadata={PARAMETER_KEY: facts})


def named_sections(element: type[Any], *, noun: str, names_from: tuple[str, ...]) -> dict[str, NamedSections]:
    """Metadata of a field that holds one ``element`` per name in the lists ``names_from``."""
    return {NAMED_KEY: NamedSections(element, noun, names_from)}
