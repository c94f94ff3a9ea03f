"""Two roles that prove the built messages: `send` in one process, `receive` in another. No test by itself.

The receiver exits with 0 once it has got every message type with its content and an answer from the service.
"""

import argparse
import sys
import time

import rclpy
from rclpy.node import Node

from oxygen_ros.msg import ActionChunk, CycleReport, PlayerState, TextDelta, TextRequest
from oxygen_ros.srv import CancelText

LIMIT_S = 60.0  # the receiver gives up after this time
MESSAGES = {
    "chunk": ActionChunk(chunk_id=7, joint_names=["elbow"], horizon=2, action_dim=1, actions=[0.5, 0.25]),
    "report": CycleReport(cycle_id=3, status=CycleReport.STATUS_HOLDING, reason="stale_camera"),
    "player": PlayerState(mode=PlayerState.MODE_PLAYING, actions_played=11),
    "delta": TextDelta(request_id="q", text="größer", is_final=True, finish_reason=TextDelta.FINISH_STOP),
    "request": TextRequest(prompt="what do you see?", max_tokens=5),
}


def send(node: Node) -> None:
    """Publish all messages again and again, and answer cancellations, until ended from outside."""

    def answer(request: CancelText.Request, response: CancelText.Response) -> CancelText.Response:
        response.success, response.num_cancelled, response.message = True, 2, f"ended {request.task}"
        return response

    publishers = {name: node.create_publisher(type(message), name, 10) for name, message in MESSAGES.items()}
    node.create_service(CancelText, "cancel", answer)
    node.create_timer(0.1, lambda: [publishers[name].publish(message) for name, message in MESSAGES.items()])
    print("ready", flush=True)
    rclpy.spin(node)


def receive(node: Node, limit_s: float) -> int:
    """Wait for every message and for the service's answer; return 0 when all came as they were sent."""
    got: dict[str, object] = {}
    for name, message in MESSAGES.items():
        node.create_subscription(type(message), name, lambda m, name=name: got.setdefault(name, m), 10)
    client = node.create_client(CancelText, "cancel")
    answer = None
    give_up = time.monotonic() + limit_s
    while time.monotonic() < give_up:
        rclpy.spin_once(node, timeout_sec=0.1)
        if answer is None and client.service_is_ready():
            answer = client.call_async(CancelText.Request(task="memory"))
        if len(got) == len(MESSAGES) and answer is not None and answer.done():
            break
    wrong = [name for name, message in MESSAGES.items() if got.get(name) != message]
    if answer is None or not answer.done() or answer.result().message != "ended memory":
        wrong.append("cancel")
    print("wrong or missing:" if wrong else "received", *(wrong or sorted(got)), flush=True)
    return 1 if wrong else 0


def main() -> int:
    """Play one role."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=["send", "receive"])
    parser.add_argument("--limit", type=float, default=LIMIT_S)
    options = parser.parse_args()
    rclpy.init()
    node = rclpy.create_node(f"exchange_{options.role}")
    if options.role == "receive":
        return receive(node, options.limit)
    send(node)
    return 0


if __name__ == "__main__":
    sys.exit(main())
