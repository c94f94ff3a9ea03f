"""KV memory of text requests: what the reference holds for each, and what ours does."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.lab import Lab


@dataclass(frozen=True)
class KVBytes:
    """Bytes of KV per text request, at its full length.

    Tokens held are what a request keeps alive; slots are what is set aside for it, used or not. A request
    alone on its observation is charged the whole prefix, though the action expert reads it too.

    Attributes:
        reference: padded prefix and N tokens, a cache for each request.
        one_task: ours, valid prefix tokens and N tokens.
        each_of_three: ours, a third of the prefix and N tokens each.
        one_task_slots, each_of_three_slots: the same by slots.
    """

    bytes_per_token: int
    reference: int
    one_task: int
    each_of_three: int
    one_task_slots: int
    each_of_three_slots: int

    @property
    def one_task_ratio(self) -> float:
        """Ours by the reference's, one task."""
        return self.one_task / self.reference

    @property
    def each_of_three_ratio(self) -> float:
        """Ours by the reference's, each of three tasks on one observation."""
        return self.each_of_three / self.reference


def count_kv_bytes(lab: Lab) -> KVBytes:
    """From real tensors: the cache the reference made, and the slots of our memory."""
    workload, robot = lab.workload, lab.workload.robot
    layout = lab.model.kv_layout(4, 4, workload.max_tokens)
    per_token, written = layout.bytes_per_token, workload.max_tokens * layout.bytes_per_token
    valid = lab.model.num_prefix_tokens(robot.num_cameras, robot.prompt_tokens) * per_token
    padded = lab.config.max_prefix_tokens * per_token
    return KVBytes(
        bytes_per_token=per_token,
        reference=padded + written,
        one_task=valid + written,
        each_of_three=valid // 3 + written,
        one_task_slots=layout.prefix_bytes + layout.row_bytes,
        each_of_three_slots=layout.prefix_bytes // 3 + layout.row_bytes,
    )
