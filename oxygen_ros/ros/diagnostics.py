"""Health messages: plain values to diagnostic_msgs. No node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from std_msgs.msg import Header

from oxygen_ros.ros.conversions import to_time

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


def status(
    name: str, level: bytes, message: str, values: Mapping[str, object] | None = None
) -> DiagnosticStatus:
    """One line of health with its figures."""
    pairs = [KeyValue(key=key, value=_shown(value)) for key, value in (values or {}).items()]
    return DiagnosticStatus(level=level, name=name, message=message, hardware_id="oxygen_ros", values=pairs)


def life_line(name: str, state: str, failure: str, is_time_known: bool) -> DiagnosticStatus:
    """Where a node is in its life: OK while it acts and when it has ended well."""
    is_good = state in ("active", "finalized")
    level = ERROR if failure else OK if is_good else WARN
    values = {"state": state, "ros_time": "known" if is_time_known else "no /clock"}
    return status(f"{name}: state", level, failure or state, values)


def health(statuses: Iterable[DiagnosticStatus], now_ns: int) -> DiagnosticArray:
    """All lines of one node."""
    return DiagnosticArray(header=Header(stamp=to_time(now_ns)), status=list(statuses))


def worst(levels: Iterable[bytes]) -> bytes:
    """The worst of some levels; OK of none."""
    return max(levels, default=OK)


def _shown(value: object) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
