"""The life of one node's process: signals, the executor's thread, an end within three seconds.

The main thread does nothing but wait for a signal, so one is obeyed at any moment, whatever the others do.
rclpy's own handlers would end ROS before the robot could be told to hold.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import rclpy.utilities
from rclpy.executors import Executor, ShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from oxygen_ros.ros.arguments import RosArguments, start_ros
from oxygen_ros.runtime.refusals import Refusals

SPIN_ENDS_WITHIN_S = 1.0
SWITCH_INTERVAL_S = 0.0005


class ProcessNode(Protocol):
    """What a node must have to be run: beside rclpy's own, three things.

    Attributes:
        on_end: set by ``run_node``; ends the process when called.
        refusals: errors that came out of callbacks are counted and logged there.
    """

    on_end: Callable[[], None]
    refusals: Refusals

    def shut_down(self) -> None:
        """End everything; the executor does not spin any more."""
        ...

    def get_logger(self) -> Any:
        """Logger of the node."""
        ...

    def destroy_node(self) -> Any:
        """Destroy what ROS holds."""
        ...


def run_node(make_node: Callable[[RosArguments], ProcessNode], arguments: Sequence[str] | None = None) -> int:
    """Run a node until a signal or its shutdown service ends it. Returns the exit code.

    Args:
        make_node: makes the node; ROS is up then.
        arguments: command line with the program's name; that of the process by default.
    """
    end = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: end.set())
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    options = start_ros(
        sys.argv if arguments is None else arguments, signal_handler_options=SignalHandlerOptions.NO
    )
    node = make_node(options)
    node.on_end = end.set
    executor = SingleThreadedExecutor()
    executor.add_node(cast(Node, node))
    spinning = threading.Thread(target=_spin, args=(executor, node, end), name="io", daemon=True)
    spinning.start()
    end.wait()
    executor.shutdown(timeout_sec=SPIN_ENDS_WITHIN_S)
    spinning.join(SPIN_ENDS_WITHIN_S)
    node.shut_down()
    node.get_logger().info("finalized")
    _leave(node)
    return 0


def _spin(executor: Executor, node: ProcessNode, end: threading.Event) -> None:
    """Serve callbacks until the end. An error of a callback or of a damaged message is counted and logged."""
    while not end.is_set():
        # The boundary of all callbacks: what comes out of one must not end the others.
        try:
            executor.spin_once()
        except ShutdownException:
            return
        except Exception as error:
            if end.is_set():  # an executor that is shut down under its thread
                return
            node.refusals.add("callback_error", "executor", f"{type(error).__name__}: {error}")


def _leave(node: ProcessNode) -> None:
    """End ROS; end the process at once if a thread is still busy inside the model."""
    busy = [thread.name for thread in threading.enumerate() if thread.name in ("io", "control", "loading")]
    if busy:
        node.get_logger().warning(f"leaving busy threads behind: {', '.join(busy)}")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    node.destroy_node()
    rclpy.utilities.try_shutdown()
