"""Text tasks: the configured reasons to write text. Plain data; turned into text requests by number."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from oxygen_ros.errors import ConfigError
from oxygen_ros.types import SamplingParams, TextKind, TextRequest


@dataclass(frozen=True)
class TextTask:
    """One reason to write text.

    Attributes:
        prompt: suffix prompt, appended to the shared prefix.
        every_cycles: asks by itself in every n-th cycle that acts; None: on request only.
        is_superseding: a newer request replaces older waiting ones of the task.
        supersede_running: and one that is being written.
    """

    name: str
    kind: TextKind
    prompt: str = ""
    every_cycles: int | None = None
    sampling: SamplingParams = field(default_factory=SamplingParams)
    priority: int = 0
    max_age_ns: int = 30_000_000_000
    is_superseding: bool = False
    supersede_running: bool = False

    def request(self, number: int) -> TextRequest:
        """Request number ``number`` of this task, e.g. "memory-12". Change it by ``dataclasses.replace``."""
        return TextRequest(
            request_id=f"{self.name}-{number}",
            task=self.name,
            kind=self.kind,
            prompt=self.prompt,
            sampling=self.sampling,
            priority=self.priority,
            max_age_ns=self.max_age_ns,
            is_superseding=self.is_superseding,
            supersede_running=self.supersede_running,
        )


class TextTasks:
    """The tasks of one node by name. Numbers never repeat while it lives. Safe to call from any thread."""

    def __init__(self, tasks: Iterable[TextTask] = ()) -> None:
        self._tasks: dict[str, TextTask] = {}
        for task in tasks:
            if not task.name or task.name in self._tasks:
                raise ConfigError("task_name", f"text task '{task.name}' has no name of its own")
            if task.every_cycles is not None and task.every_cycles < 1:
                raise ConfigError(
                    "task_trigger",
                    f"text task '{task.name}' asks every {task.every_cycles} cycles",
                    "1 or more, or none for a task on request",
                )
            self._tasks[task.name] = task
        self._numbers = {name: itertools.count(1) for name in self._tasks}

    def __getitem__(self, name: str) -> TextTask:
        return self._tasks[name]

    def __contains__(self, name: str) -> bool:
        return name in self._tasks

    def names(self) -> tuple[str, ...]:
        """Task names in the order of the configuration."""
        return tuple(self._tasks)

    def ask(self, name: str) -> TextRequest:
        """The next request of task ``name``.

        Raises:
            KeyError: if there is no such task.
        """
        return self._tasks[name].request(next(self._numbers[name]))

    def due(self, num_acted: int) -> list[TextRequest]:
        """Requests that tasks make by themselves in the ``num_acted``-th cycle that acts, from 1."""
        return [
            self.ask(task.name)
            for task in self._tasks.values()
            if task.every_cycles is not None and (num_acted - 1) % task.every_cycles == 0
        ]
