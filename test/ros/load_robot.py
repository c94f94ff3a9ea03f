"""Programs for tests under load: a robot that sends much, and a metronome that shows what the machine can do.

Usage: load_robot.py robot NAMESPACE CAMERA_HZ JOINT_HZ, until it is ended; load_robot.py metronome PERIOD_MS
SECONDS, which prints the time between its beats in milliseconds as JSON.
"""

import itertools
import json
import sys
import threading

from oxygen_ros.clock import SteadyClock

CAMERAS = ("front", "left", "right")
JOINTS = ("j1", "j2", "j3")


def robot(namespace: str, camera_hz: float, joint_hz: float) -> None:
    """Three raw 640x480 cameras and joints, serialised once: it takes little of the machine."""
    import numpy as np
    import rclpy
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import Image, JointState

    from oxygen_ros.config import QosConfig
    from oxygen_ros.ros import qos
    from oxygen_ros.ros.conversions import to_image, to_joint_state

    rclpy.init()
    node = rclpy.create_node("load_robot", namespace=namespace)
    best_effort = qos.sensor(QosConfig())
    picture = np.random.default_rng(0).integers(0, 256, (480, 640, 3), dtype=np.uint8)
    raw_picture = serialize_message(to_image(picture, 0))
    raw_joints = serialize_message(to_joint_state(JOINTS, np.zeros(len(JOINTS)), 0))
    joints = node.create_publisher(JointState, "joint_states", best_effort)
    cameras = [node.create_publisher(Image, f"{role}/image", best_effort) for role in CAMERAS]
    begin_ns, num_pictures = SteadyClock().now_ns(), 0
    for number in itertools.count():
        SteadyClock().sleep_until_ns(begin_ns + round(number * 1e9 / joint_hz))
        joints.publish(raw_joints)
        if number * camera_hz >= num_pictures * joint_hz:
            num_pictures += 1
            for camera in cameras:
                camera.publish(raw_picture)


def metronome(period_ms: float, seconds: float) -> None:
    """Wait for deadlines that do not drift, as the player does, and do nothing else."""
    clock, never, beats_ns = SteadyClock(), threading.Event(), []
    period_ns = round(period_ms * 1e6)
    due_ns = begin_ns = clock.now_ns()
    while due_ns - begin_ns < seconds * 1e9:
        beats_ns.append(clock.now_ns())
        now_ns = clock.now_ns()
        due_ns = due_ns + period_ns if due_ns + period_ns > now_ns else now_ns + period_ns
        never.wait((due_ns - now_ns) / 1e9)
    print(json.dumps([(after - before) / 1e6 for before, after in itertools.pairwise(beats_ns)]))


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "robot":
        robot(words[0], float(words[1]), float(words[2]))
    else:
        metronome(*map(float, words))
