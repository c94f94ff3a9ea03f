"""Our values as ROS messages and back. No state, no node.

Arrays are filled from ``array.array``: rclpy checks a numpy array element by element, which takes a hundred
times as long.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Duration, Time
from numpy.typing import NDArray
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from oxygen_ros.errors import ContractError
from oxygen_ros.msg import ActionChunk as ActionChunkMessage
from oxygen_ros.msg import CycleReport as CycleReportMessage
from oxygen_ros.msg import PlayerState
from oxygen_ros.msg import TextDelta as TextDeltaMessage
from oxygen_ros.runtime.playback import PlayerStatus
from oxygen_ros.runtime.stamps import from_time
from oxygen_ros.types import ActionChunk, CycleReport, ImageArray, TextDelta

S = 1_000_000_000
MAX_STAMP_NS = (2**31 - 1) * S
MAX_ACTIONS = 1_000_000


def to_time(stamp_ns: int) -> Time:
    """Nanoseconds as a ROS time."""
    sec, nanosec = divmod(min(max(stamp_ns, 0), MAX_STAMP_NS), S)
    return Time(sec=sec, nanosec=nanosec)


def to_chunk_message(chunk: ActionChunk) -> ActionChunkMessage:
    """The chunk with its provenance. One without rows withdraws."""
    horizon, action_dim = chunk.actions.shape
    return ActionChunkMessage(
        header=Header(stamp=to_time(chunk.stamp_ns)),
        observation_id=chunk.observation_id,
        cycle_id=chunk.cycle_id,
        chunk_id=chunk.chunk_id,
        expert=chunk.expert,
        instruction=chunk.instruction,
        joint_names=list(chunk.joint_names),
        dt_s=chunk.dt_ns / S,
        horizon=horizon,
        action_dim=action_dim,
        execute_horizon=chunk.execute_horizon,
        actions=_floats(chunk.actions),
        actions_played=chunk.actions_played,
        latency_ms=chunk.latency_ns / 1e6,
    )


def from_chunk_message(message: ActionChunkMessage) -> ActionChunk:
    """The chunk that a message holds.

    Raises:
        ContractError: if its sizes contradict each other.
    """
    horizon, action_dim, size = message.horizon, message.action_dim, len(message.actions)
    if horizon * action_dim != size or size > MAX_ACTIONS or (horizon and not action_dim):
        raise ContractError("malformed_chunk", f"{size} actions, wanted {horizon} x {action_dim}")
    if not 0 < message.dt_s < 3600 and horizon:
        raise ContractError("malformed_chunk", f"{message.dt_s} s between two actions")
    latency_ms = message.latency_ms if np.isfinite(message.latency_ms) else 0.0
    return ActionChunk(
        observation_id=message.observation_id,
        stamp_ns=from_time(message.header.stamp),
        cycle_id=message.cycle_id,
        chunk_id=message.chunk_id,
        expert=message.expert,
        instruction=message.instruction,
        joint_names=tuple(message.joint_names),
        actions=np.array(message.actions, dtype=np.float32).reshape(horizon, action_dim),
        dt_ns=round(message.dt_s * S) if horizon else 0,
        execute_horizon=message.execute_horizon,
        latency_ns=round(latency_ms * 1e6),
        actions_played=message.actions_played,
    )


def to_trajectory(
    names: Sequence[str], rows: NDArray[np.float32] | NDArray[np.float64], dt_ns: int, stamp_ns: int = 0
) -> JointTrajectory:
    """Positions [num_rows, num_joints] as a trajectory: row i is due (i + 1) * dt after its start.

    Stamp 0 starts it on arrival: a trajectory controller drops one that lies in the past.
    """
    points = []
    for i, row in enumerate(rows):
        sec, nanosec = divmod((i + 1) * dt_ns, S)
        due = Duration(sec=sec, nanosec=nanosec)
        points.append(JointTrajectoryPoint(positions=doubles(row), time_from_start=due))
    return JointTrajectory(header=Header(stamp=to_time(stamp_ns)), joint_names=list(names), points=points)


def to_joint_state(names: Sequence[str], values: NDArray[np.float64], stamp_ns: int) -> JointState:
    """One command by joint name."""
    header = Header(stamp=to_time(stamp_ns))
    return JointState(header=header, name=list(names), position=doubles(values))


def to_image(image: ImageArray, stamp_ns: int, frame_id: str = "") -> Image:
    """RGB uint8 [H, W, 3] as an rgb8 message."""
    height, width, _ = image.shape
    data = array("B")
    data.frombytes(np.ascontiguousarray(image, dtype=np.uint8).tobytes())
    return Image(
        header=Header(stamp=to_time(stamp_ns), frame_id=frame_id),
        height=height,
        width=width,
        encoding="rgb8",
        step=3 * width,
        data=data,
    )


def to_jpeg(image: ImageArray, stamp_ns: int, frame_id: str = "", quality: int = 90) -> CompressedImage:
    """RGB uint8 [H, W, 3] as a JPEG message. Needs OpenCV."""
    import cv2

    _, encoded = cv2.imencode(".jpg", image[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    header = Header(stamp=to_time(stamp_ns), frame_id=frame_id)
    return CompressedImage(
        header=header, format="rgb8; jpeg compressed bgr8", data=array("B", encoded.tobytes())
    )


def to_delta_message(delta: TextDelta) -> TextDeltaMessage:
    """A piece of text, clean: a lone surrogate could not be sent."""
    reason = delta.finish_reason
    return TextDeltaMessage(
        header=Header(stamp=to_time(delta.stamp_ns)),
        request_id=delta.request_id,
        task=delta.task,
        kind=delta.kind.value,
        observation_id=delta.observation_id,
        seq=delta.seq,
        text=delta.text,
        num_tokens=delta.num_tokens,
        is_final=delta.is_final,
        finish_reason=TextDeltaMessage.FINISH_NONE if reason is None else reason.value,
        detail=delta.detail,
    )


def to_report_message(report: CycleReport, now_ns: int) -> CycleReportMessage:
    """The report; ``now_ns`` (ROS time) stamps it where there was no observation."""
    kinds = sorted(report.refusals)
    message = CycleReportMessage(
        header=Header(stamp=to_time(report.stamp_ns or now_ns)),
        status=report.status.value,
        reason=report.reason,
        is_late=report.is_late,
        refusal_kinds=kinds,
        refusal_counts=array("Q", [report.refusals[kind] for kind in kinds]),
        prefixes_used=report.memory.prefixes_used,
        prefixes_total=report.memory.prefixes_total,
        rows_used=report.memory.rows_used,
        rows_total=report.memory.rows_total,
        kv_bytes=report.memory.kv_bytes,
    )
    for name in ("cycle_id", "observation_id", "decode_steps", "decode_steps_possible", "text_rows"):
        setattr(message, name, getattr(report, name))
    for name in ("text_tokens", "texts_waiting", "texts_finished", "deadline_misses"):
        setattr(message, name, getattr(report, name))
    for name in ("period", "observe", "prefill", "act", "publish", "action_latency", "decode", "slack"):
        setattr(message, f"{name}_ms", getattr(report, f"{name}_ns") / 1e6)
    return message


def fill_player_state(message: PlayerState, status: PlayerStatus, is_enabled: bool, now_ns: int) -> None:
    """What the player does, into a message that is used again: at each tick a new one costs too much."""
    stamp = message.header.stamp
    stamp.sec, stamp.nanosec = divmod(now_ns, S)
    message.mode = status.mode.value
    message.chunk_id = status.chunk_id
    message.next_index = status.next_index
    message.actions_played = status.actions_played
    message.ticks_missed = status.ticks_missed
    message.steps_clamped = status.steps_clamped
    message.control_enabled = is_enabled
    message.reason = status.reason


def doubles(values: NDArray[np.float32] | NDArray[np.float64]) -> array[float]:
    """Numbers of a double field of a message."""
    return array("d", values.astype(np.float64, copy=False).tobytes())


def _floats(values: NDArray[np.float32]) -> array[float]:
    return array("f", values.astype(np.float32, copy=False).tobytes())
