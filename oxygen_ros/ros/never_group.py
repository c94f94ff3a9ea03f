"""A callback group for subscriptions that something else than the executor looks after."""

from __future__ import annotations

from typing import Any

from rclpy.callback_groups import CallbackGroup


class NeverGroup(CallbackGroup):
    """Keeps its subscriptions out of every executor."""

    def can_execute(self, entity: Any) -> bool:
        """Never."""
        return False

    def beginning_execution(self, entity: Any) -> bool:
        """Never."""
        return False

    def ending_execution(self, entity: Any) -> None:
        """Nothing has begun."""
