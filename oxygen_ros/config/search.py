"""Finds robot presets and device profiles: in the source tree and where the package is installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oxygen_ros.config.value import nearest
from oxygen_ros.errors import ConfigError

PRESETS = "presets"
DEVICES = "devices"


def default_config_dirs() -> tuple[Path, ...]:
    """Folders named ``config`` that hold presets: beside the package, then in the share folders above it."""
    parents = Path(__file__).parents
    candidates = [parents[2] / "config", *(up / "share" / "oxygen_ros" / "config" for up in parents[2:])]
    return tuple(folder for folder in candidates if (folder / PRESETS).is_dir())


def available(kind: str, config_dirs: Sequence[Path]) -> tuple[str, ...]:
    """Names of all presets (``PRESETS``) or device profiles (``DEVICES``)."""
    found = {path.stem for folder in config_dirs for path in (folder / kind).glob("*.yaml")}
    return tuple(sorted(found))


def find(kind: str, name: str, config_dirs: Sequence[Path]) -> Path:
    """File of a preset or device profile; ``name`` may also be the path of a YAML file.

    Raises:
        ConfigError: unknown_preset or unknown_device, with the names that exist.
    """
    if name.endswith((".yaml", ".yml")):
        return Path(name).expanduser()
    for folder in config_dirs:
        path = folder / kind / f"{name}.yaml"
        if path.is_file():
            return path
    parameter, noun = ("preset", "robot preset") if kind == PRESETS else ("device", "device profile")
    names = available(kind, config_dirs)
    listed = ", ".join(names) or f"none, in none of: {', '.join(map(str, config_dirs))}"
    near = nearest(name, names)
    raise ConfigError(
        f"unknown_{parameter}",
        f"There is no {noun} '{name}'. There are: {listed}. The path of a YAML file is taken too.",
        f"{parameter}: {near}" if near else "",
    )
