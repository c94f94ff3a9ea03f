"""The result file: everything that was measured, as plain data, with a schema number."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
from pathlib import Path
from typing import Any

SCHEMA = 1


def to_plain(value: Any) -> Any:
    """Dataclasses, tuples and numbers as JSON takes them; what is not finite becomes None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        computed = {
            name: to_plain(getattr(value, name))
            for name, member in vars(type(value)).items()
            if isinstance(member, property)
        }
        return {**fields, **computed}
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value


def write_results(path: Path, results: dict[str, Any]) -> None:
    """Write ``results`` as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(to_plain(results), indent=1) + "\n", encoding="utf-8")


def read_results(path: Path) -> dict[str, Any]:
    """Read a result file.

    Raises:
        ValueError: if it is of another schema.
    """
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if results.get("schema") != SCHEMA:
        raise ValueError(f"{path} has schema {results.get('schema')}, this benchmark reads {SCHEMA}")
    return results
