"""The publishers, subscriptions and services of a node: freed in time, and not before they are heard."""

from __future__ import annotations

from typing import Any

from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNodeMixin
from rclpy.node import Node

from oxygen_ros.clock import Clock

ACKNOWLEDGED_WITHIN_NS = 500_000_000


def wait_until_acknowledged(node: Node, clock: Clock) -> None:
    """Wait until all reliable messages of ``node`` have arrived, half a second at most in all."""
    until_ns = clock.now_ns() + ACKNOWLEDGED_WITHIN_NS
    for publisher in tuple(node.publishers):
        left_ns = max(0, until_ns - clock.now_ns())
        publisher.wait_for_all_acked(Duration(nanoseconds=left_ns))


class EntityMark:
    """Remembers the publishers, subscriptions and services that a node has when this is made."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._lasting = set(self._entities())

    def destroy_newer(self) -> None:
        """Destroy those that were made since."""
        node = self._node
        for publisher in [p for p in node.publishers if p not in self._lasting]:
            if isinstance(node, LifecycleNodeMixin):
                node._managed_entities.discard(publisher)
            node.destroy_publisher(publisher)
        for subscription in [s for s in node.subscriptions if s not in self._lasting]:
            node.destroy_subscription(subscription)
        for service in [s for s in node.services if s not in self._lasting]:
            node.destroy_service(service)

    def _entities(self) -> list[Any]:
        return [*self._node.publishers, *self._node.subscriptions, *self._node.services]
