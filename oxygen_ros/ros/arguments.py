"""Starts rclpy so that a broken params file becomes a message at configure, not the end of the process.

rcl refuses to start when a file given by ``--params-file`` is missing, is no YAML, is not in the ROS form,
or has a list of mixed numbers. Here such files are taken off the command line and read by our own loader.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import rclpy
from rclpy._rclpy_pybind11 import RCLError

_LAUNCH_FILES = "/launch_params_"


@dataclasses.dataclass(frozen=True)
class RosArguments:
    """What the command line says about parameters.

    Attributes:
        params_files: files that rcl read, in order.
        assigned: names set by ``-p``.
        unread_files: files that rcl could not read; ``NodeParameters`` reads them.
    """

    params_files: tuple[str, ...] = ()
    assigned: frozenset[str] = frozenset()
    unread_files: tuple[str, ...] = ()

    @staticmethod
    def label(path: str) -> str:
        """How values from ``path`` are named; launch hands its arguments over in files of its own."""
        return "launch arguments" if _LAUNCH_FILES in path else f"params file {path}"


def start_ros(arguments: Sequence[str], **init_options: Any) -> RosArguments:
    """``rclpy.init`` that survives params files which rcl cannot read.

    Args:
        arguments: command line with the program's name, as in ``sys.argv``.
        init_options: passed on to ``rclpy.init``.

    Raises:
        RCLError: if the other arguments are wrong.
    """
    without_files, files, assigned = _split(list(arguments))
    try:
        rclpy.init(args=list(arguments), **init_options)
    except RCLError:
        if not files:
            raise
        rclpy.init(args=without_files, **init_options)
        return RosArguments(assigned=assigned, unread_files=tuple(files))
    return RosArguments(params_files=tuple(files), assigned=assigned)


def _split(arguments: list[str]) -> tuple[list[str], list[str], frozenset[str]]:
    """Arguments without ``--params-file``, the files, and the names that ``-p`` sets."""
    kept: list[str] = []
    files: list[str] = []
    assigned: set[str] = set()
    is_ros = False
    rest = iter(arguments)
    for word in rest:
        is_ros = (is_ros or word == "--ros-args") and word != "--"
        if is_ros and word == "--params-file":
            files.append(next(rest, ""))
            continue
        kept.append(word)
        if is_ros and word in ("-p", "--param"):
            rule = next(rest, "")
            kept.append(rule)
            assigned.add(rule.partition(":=")[0].rpartition(":")[2])
    return kept, files, frozenset(assigned)
