"""Stamps of messages as integers. Takes anything with the fields of builtin_interfaces/Time. No ROS."""

from __future__ import annotations

from typing import Any

S = 1_000_000_000


def from_time(stamp: Any) -> int:
    """A ROS time as nanoseconds; 0 for a time before 1970."""
    return max(int(stamp.sec) * S + int(stamp.nanosec), 0)
