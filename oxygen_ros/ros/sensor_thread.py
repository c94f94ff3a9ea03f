"""Serves topics that send often, on a thread with a wait set of their own.

An executor makes a wait set of all entities of its node for every message: a millisecond or two of Python.
Joints at 500 Hz take all of a CPU that way. Figures: docs/decisions/0005-sensor-thread.md.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from rclpy.event_handler import EventHandler, SubscriptionEventCallbacks
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from oxygen_ros.ros.managed_node import ManagedNode
from oxygen_ros.ros.never_group import NeverGroup

LOOK_EVERY_NS = 500_000_000
"""So often it looks whether ROS has been shut down under it."""
ENDS_WITHIN_S = 1.0


@dataclass(frozen=True)
class Heard:
    """A subscription and what is done with its messages."""

    subscription: Subscription
    message_type: Any
    callback: Callable[[Any], None]


class SensorThread:
    """Callbacks run on its thread, one at a time. What one raises is counted as ``callback_error``."""

    def __init__(self, node: ManagedNode) -> None:
        """Nothing is heard yet."""
        self._node = node
        self._group = NeverGroup()
        self._heard: list[Heard] = []
        self._events: list[EventHandler] = []
        self._ended = threading.Event()
        self._wake = node.create_guard_condition(lambda: None, callback_group=self._group)
        self._thread = threading.Thread(target=self._run, name="sensors", daemon=True)

    def hear(
        self,
        message_type: Any,
        topic: str,
        callback: Callable[[Any], None],
        profile: QoSProfile,
        on_incompatible: Callable[[Any], None],
    ) -> None:
        """Subscribe; before ``start``. ``on_incompatible`` gets the event of a publisher that misfits."""
        silent = SubscriptionEventCallbacks(use_default_callbacks=False)
        subscription = self._node.create_subscription(
            message_type, topic, callback, profile, callback_group=self._group, event_callbacks=silent
        )
        self._heard.append(Heard(subscription, message_type, callback))
        wanted = SubscriptionEventCallbacks(incompatible_qos=on_incompatible, use_default_callbacks=False)
        self._events += wanted.create_event_handlers(self._group, subscription.handle, topic)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def end(self) -> None:
        """Serve no more. The subscriptions may be destroyed then; not from within a callback."""
        self._ended.set()
        self._wake.trigger()
        self._thread.join(ENDS_WITHIN_S)
        for event in self._events:
            event.destroy()
        self._node.destroy_guard_condition(self._wake)

    def _run(self) -> None:
        with ExitStack() as used:
            for heard in self._heard:
                used.enter_context(heard.subscription.handle)
            for entity in (*self._events, self._wake.handle):
                used.enter_context(entity)
            counts = (len(self._heard), 1, 0, 0, 0, len(self._events))
            wait_set = rclpy_implementation.WaitSet(*counts, self._node.context.handle)
            while not self._ended.is_set() and self._node.context.ok():
                # The boundary of all callbacks: a damaged message or a fault of ours must not end the others.
                try:
                    self._serve(wait_set)
                except Exception as error:
                    if self._node.context.ok():
                        detail = f"{type(error).__name__}: {error}"
                        self._node.refusals.add("callback_error", "sensors", detail)

    def _serve(self, wait_set: Any) -> None:
        wait_set.clear_entities()
        for heard in self._heard:
            wait_set.add_subscription(heard.subscription.handle)
        for event in self._events:
            event.add_to_wait_set(wait_set)
        wait_set.add_guard_condition(self._wake.handle)
        wait_set.wait(LOOK_EVERY_NS)
        for event in self._events:
            if event.is_ready(wait_set) and (what := event.take_data()) is not None:
                event.callback(what)
        ready = wait_set.get_ready_entities("subscription")
        for heard in self._heard:
            if heard.subscription.handle.pointer in ready:
                self._take(heard)

    def _take(self, heard: Heard) -> None:
        if (taken := heard.subscription.handle.take_message(heard.message_type, False)) is not None:
            heard.callback(taken[0])
