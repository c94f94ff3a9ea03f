"""Our values as messages in a bag. The ROS side has the same conversions; a test compares their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oxygen_ros.replay.bag.message_types import MessageTypes
from oxygen_ros.runtime.playback import PlayerStatus
from oxygen_ros.runtime.stamps import S
from oxygen_ros.runtime.text_intake import Question
from oxygen_ros.types import ActionChunk, CycleReport, TextDelta

_DURATIONS = ("period", "observe", "prefill", "act", "publish", "action_latency", "decode", "slack")
_COUNTS = (
    "cycle_id",
    "observation_id",
    "decode_steps",
    "decode_steps_possible",
    "text_rows",
    "text_tokens",
    "texts_waiting",
    "texts_finished",
    "deadline_misses",
)
_MEMORY = ("prefixes_used", "prefixes_total", "rows_used", "rows_total", "kv_bytes")


class MessageMaker:
    """Makes messages of one set of types."""

    def __init__(self, types: MessageTypes) -> None:
        self._types = types

    def text(self, text: str) -> Any:
        """std_msgs/String."""
        return self._types.make("std_msgs/msg/String", data=text)

    def clock(self, time_ns: int) -> Any:
        """rosgraph_msgs/Clock."""
        return self._types.make("rosgraph_msgs/msg/Clock", clock=self._time(time_ns))

    def array(self, values: Any) -> Any:
        """std_msgs/Float64MultiArray without a layout."""
        layout = self._types.make("std_msgs/msg/MultiArrayLayout", dim=[], data_offset=0)
        data = np.asarray(values, dtype=np.float64)
        return self._types.make("std_msgs/msg/Float64MultiArray", layout=layout, data=data)

    def joints(self, names: Sequence[str], positions: Any, stamp_ns: int) -> Any:
        """sensor_msgs/JointState."""
        empty = np.zeros(0)
        return self._types.make(
            "sensor_msgs/msg/JointState",
            header=self._header(stamp_ns),
            name=list(names),
            position=np.asarray(positions, dtype=np.float64),
            velocity=empty,
            effort=empty,
        )

    def image(self, image: Any, stamp_ns: int, frame_id: str = "") -> Any:
        """sensor_msgs/Image, rgb8."""
        height, width, _ = image.shape
        return self._types.make(
            "sensor_msgs/msg/Image",
            header=self._header(stamp_ns, frame_id),
            height=height,
            width=width,
            encoding="rgb8",
            is_bigendian=0,
            step=3 * width,
            data=np.ascontiguousarray(image, dtype=np.uint8).reshape(-1),
        )

    def compressed(self, data: bytes, stamp_ns: int, frame_id: str = "") -> Any:
        """sensor_msgs/CompressedImage that holds a JPEG."""
        return self._types.make(
            "sensor_msgs/msg/CompressedImage",
            header=self._header(stamp_ns, frame_id),
            format="rgb8; jpeg compressed bgr8",
            data=np.frombuffer(data, dtype=np.uint8),
        )

    def question(self, question: Question) -> Any:
        """TextRequest."""
        return self._types.make("oxygen_ros/msg/TextRequest", **vars(question))

    def chunk(self, chunk: ActionChunk) -> Any:
        """ActionChunk."""
        horizon, action_dim = chunk.actions.shape
        return self._types.make(
            "oxygen_ros/msg/ActionChunk",
            header=self._header(chunk.stamp_ns),
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
            actions=np.ascontiguousarray(chunk.actions, dtype=np.float32).reshape(-1),
            actions_played=chunk.actions_played,
            latency_ms=chunk.latency_ns / 1e6,
        )

    def delta(self, delta: TextDelta) -> Any:
        """TextDelta."""
        return self._types.make(
            "oxygen_ros/msg/TextDelta",
            header=self._header(delta.stamp_ns),
            request_id=delta.request_id,
            task=delta.task,
            kind=delta.kind.value,
            observation_id=delta.observation_id,
            seq=delta.seq,
            text=delta.text,
            num_tokens=delta.num_tokens,
            is_final=delta.is_final,
            finish_reason=0 if delta.finish_reason is None else delta.finish_reason.value,
            detail=delta.detail,
        )

    def report(self, report: CycleReport, now_ns: int) -> Any:
        """CycleReport."""
        kinds = sorted(report.refusals)
        fields: dict[str, Any] = {name: getattr(report, name) for name in _COUNTS}
        fields |= {name: getattr(report.memory, name) for name in _MEMORY}
        fields |= {f"{name}_ms": getattr(report, f"{name}_ns") / 1e6 for name in _DURATIONS}
        return self._types.make(
            "oxygen_ros/msg/CycleReport",
            header=self._header(report.stamp_ns or now_ns),
            status=report.status.value,
            reason=report.reason,
            is_late=report.is_late,
            refusal_kinds=kinds,
            refusal_counts=np.array([report.refusals[kind] for kind in kinds], dtype=np.uint64),
            **fields,
        )

    def player(self, status: PlayerStatus, now_ns: int) -> Any:
        """PlayerState of a player that sends nothing to a robot."""
        return self._types.make(
            "oxygen_ros/msg/PlayerState",
            header=self._header(now_ns),
            mode=status.mode.value,
            chunk_id=status.chunk_id,
            next_index=status.next_index,
            actions_played=status.actions_played,
            ticks_missed=status.ticks_missed,
            steps_clamped=status.steps_clamped,
            control_enabled=False,
            reason=status.reason,
        )

    def _time(self, time_ns: int) -> Any:
        sec, nanosec = divmod(max(time_ns, 0), S)
        return self._types.make("builtin_interfaces/msg/Time", sec=sec, nanosec=nanosec)

    def _header(self, stamp_ns: int, frame_id: str = "") -> Any:
        return self._types.make("std_msgs/msg/Header", stamp=self._time(stamp_ns), frame_id=frame_id)
