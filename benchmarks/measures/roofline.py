"""Time of each phase over what this machine could do at best: operations by rate, or bytes by bandwidth."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.lab import Lab
from benchmarks.machine import Machine


@dataclass(frozen=True)
class Bound:
    """One phase.

    Attributes:
        operations: multiply-adds times two, of matrices and attention.
        num_bytes: weights and KV that have to be read at least once.
        bound_ms: the larger of the two times.
    """

    phase: str
    operations: float
    num_bytes: float
    compute_ms: float
    memory_ms: float

    @property
    def bound_ms(self) -> float:
        """Least time this machine needs."""
        return max(self.compute_ms, self.memory_ms)


def bounds(lab: Lab, machine: Machine, rows: int) -> dict[str, Bound]:
    """Bounds of prefill, of all denoise steps, and of one decode step of ``rows`` rows."""
    workload, config, counts = lab.workload, lab.config, lab.parameters
    robot, layers = workload.robot, config.vlm.depth
    tokens = lab.model.num_prefix_tokens(robot.num_cameras, robot.prompt_tokens)
    image_tokens = robot.num_cameras * config.vision.num_tokens
    heads = config.vlm.num_heads * config.vlm.head_dim
    per_value = config.dtypes.model.itemsize
    kv_token = 2 * layers * config.vlm.num_kv_heads * config.vlm.head_dim * per_value
    expert = (counts.expert - counts.modulations) / len(config.experts)
    flops = machine.gemm_flops[str(lab.dtype).removeprefix("torch.")]

    def bound(phase: str, operations: float, num_bytes: float) -> Bound:
        compute, memory = operations / flops * 1e3, num_bytes / machine.read_bytes_per_s * 1e3
        return Bound(phase, operations, num_bytes, compute, memory)

    vision_attention = 4 * image_tokens * config.vision.num_tokens * config.vision.width * config.vision.depth
    prefill = 2 * (counts.backbone * tokens + counts.vision * image_tokens) + vision_attention
    prefill += 4 * layers * heads * tokens * tokens
    horizon, steps = robot.horizon, workload.denoise_steps
    act = steps * (2 * expert * horizon + 4 * layers * heads * horizon * (tokens + horizon))
    length = tokens + workload.max_tokens // 2
    decode = rows * (2 * (counts.backbone + counts.embedding) + 4 * layers * heads * length)
    return {
        "prefill": bound("prefill", prefill, (counts.backbone + counts.vision) * per_value),
        "act": bound("act", act, steps * (expert * per_value + kv_token * (tokens + horizon))),
        "decode_step": bound(
            "decode_step",
            decode,
            (counts.backbone + counts.embedding) * per_value + rows * kv_token * length,
        ),
    }
