"""Pieces of text as consumers get them: TextDelta messages back to values."""

from __future__ import annotations

from oxygen_ros.errors import ContractError
from oxygen_ros.msg import TextDelta as TextDeltaMessage
from oxygen_ros.runtime.stamps import from_time
from oxygen_ros.types import FinishReason, TextDelta, TextKind


def from_delta_message(message: TextDeltaMessage) -> TextDelta:
    """The piece that a message holds.

    Raises:
        ContractError: if its kind or reason is unknown, its id is missing, or it contradicts itself.
    """
    reason = message.finish_reason
    if message.is_final == (reason == TextDeltaMessage.FINISH_NONE) or not message.request_id:
        raise ContractError(
            "malformed_delta",
            f"id {message.request_id[:40]!r}, final: {message.is_final}, finish_reason: {reason}",
        )
    try:
        kind = TextKind(message.kind)
        finish_reason = FinishReason(reason) if message.is_final else None
    except ValueError as error:
        raise ContractError("malformed_delta", str(error)) from error
    return TextDelta(
        request_id=message.request_id,
        task=message.task,
        kind=kind,
        observation_id=message.observation_id,
        stamp_ns=from_time(message.header.stamp),
        seq=message.seq,
        text=message.text,
        num_tokens=message.num_tokens,
        finish_reason=finish_reason,
        detail=message.detail,
    )
