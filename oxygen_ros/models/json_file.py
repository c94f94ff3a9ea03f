"""JSON files of checkpoints, read with types checked: every refusal names file, key, got and wanted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oxygen_ros.errors import CheckpointError

MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class JsonObject:
    """One JSON object and where it is: ``where`` is the file, and the path of keys inside it."""

    where: str
    data: Mapping[str, Any]

    def __contains__(self, key: object) -> bool:
        """Whether ``key`` is there."""
        return key in self.data

    def text(self, key: str) -> str:
        """A string."""
        value = self._get(key)
        if not isinstance(value, str):
            raise self.wrong(key, "a string")
        return value

    def integer(self, key: str, minimum: int = 0) -> int:
        """A whole number of at least ``minimum``."""
        value = self._get(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise self.wrong(key, f"a whole number of at least {minimum}")
        return value

    def number(self, key: str) -> float:
        """A finite number."""
        value = self._get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < float("inf"):
            raise self.wrong(key, "a number")
        return float(value)

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self._get(key)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def child(self, key: str) -> JsonObject:
        """An object."""
        value = self._get(key)
        if not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return JsonObject(f"{self.where}: {key}", value)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        value = self._get(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(key, "a list of strings")
        return tuple(value)

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers that are not negative."""
        value = self._get(key)
        is_list = isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)
        if not is_list:
            raise self.wrong(key, "a list of whole numbers")
        return tuple(value)

    def numbers(self, key: str) -> tuple[float, ...]:
        """A list of numbers."""
        value = self._get(key)
        is_list = isinstance(value, list) and all(type(item) in (int, float) for item in value)
        if not is_list:
            raise self.wrong(key, "a list of numbers")
        return tuple(float(item) for item in value)

    def children(self, key: str) -> tuple[JsonObject, ...]:
        """A list of objects."""
        value = self._get(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong(key, "a list of objects")
        return tuple(JsonObject(f"{self.where}: {key}[{i}]", item) for i, item in enumerate(value))

    def wrong(self, key: str, wanted: str) -> CheckpointError:
        """The refusal of one value."""
        value = self.data.get(key)
        shown = json.dumps(value)
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        return CheckpointError(
            "json_value",
            f"{self.where}: {key} is {shown}, want {wanted}",
            "the file was edited or is damaged: copy it again from where the checkpoint was trained",
        )

    def _get(self, key: str) -> Any:
        if key not in self.data:
            raise CheckpointError(
                "json_key",
                f"{self.where} lacks {key!r}",
                "the file was edited, is damaged or belongs to another kind of model",
            )
        return self.data[key]


def read_json(path: Path) -> JsonObject:
    """Object in the file ``path``.

    Raises:
        CheckpointError: if the file cannot be read, is no JSON, or holds no object.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise _broken(path, f"it is larger than {MAX_BYTES} bytes")
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _broken(path, error.strerror or str(error)) from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise _broken(path, str(error)) from error
    if not isinstance(data, dict):
        raise _broken(path, f"it holds a {type(data).__name__}, want an object")
    return JsonObject(str(path), data)


def _broken(path: Path, cause: str) -> CheckpointError:
    return CheckpointError(
        "json_broken",
        f"{path} cannot be read: {cause}",
        "copy the file again; check that the copy was complete",
    )
