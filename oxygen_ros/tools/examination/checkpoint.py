"""The checkpoint by itself: what it is, why it is taken so, how large it is."""

from __future__ import annotations

import torch

from oxygen_ros.config import OxygenConfig
from oxygen_ros.models.pi05.checkpoint import Checkpoint
from oxygen_ros.models.pi05.loading import FREE_FACTOR, dtype_policy, estimate
from oxygen_ros.tools.examination.findings import Section


def examine_checkpoint(checkpoint: Checkpoint) -> Section:
    """Family, dialect, sizes, and what is odd about the files."""
    section = Section("checkpoint")
    config, expert = checkpoint.config, checkpoint.config.experts[0]
    section.fact(
        f"{checkpoint.path}: {checkpoint.family} of {checkpoint.num_parameters / 1e6:.1f} M parameters, "
        f"{checkpoint.num_bytes / 1e6:.1f} MB on disk",
        path=str(checkpoint.path),
        family=checkpoint.family,
        parameters=checkpoint.num_parameters,
        stored_bytes=checkpoint.num_bytes,
    )
    section.fact(
        f"dialect {checkpoint.dialect.name}: {checkpoint.dialect_reason}",
        dialect=checkpoint.dialect.name,
        reason=checkpoint.dialect_reason,
    )
    section.fact(f"resize: {checkpoint.dialect.resize.value}; letterbox {checkpoint.dialect.letterbox:g}")
    section.fact(
        f"chunks of {expert.horizon} actions, {expert.action_dim} wide; {config.num_denoise_steps} denoise "
        f"steps; prompts up to {config.max_token_len} tokens; {config.attention.value} prefix",
        horizon=expert.horizon,
        denoise_steps=config.num_denoise_steps,
        max_prompt_tokens=config.max_token_len,
        attention=config.attention.value,
    )
    for decision in checkpoint.decisions:
        section.fact(decision)
    return section


def examine_memory(checkpoint: Checkpoint, config: OxygenConfig) -> Section:
    """What weights and KV memory take, and whether there is room."""
    section = Section("memory")
    device = torch.device(config.runner.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        section.refuse("runner.device is cuda, and no CUDA device is found", "device", "runner.device: cpu")
        return section
    dtype = getattr(torch, config.runner.dtype)
    policy = dtype_policy(checkpoint, dtype)
    memory = estimate(checkpoint, policy, device)
    values = {"weights_bytes": memory.weights_bytes, "free_bytes": memory.free_bytes}
    if memory.fits:
        section.fact(f"{memory.in_words()} ({config.runner.dtype} on {config.runner.device})", **values)
    else:
        section.refuse(
            f"{memory.in_words()}; loading wants {FREE_FACTOR} times the weights",
            "memory",
            "free memory, or load in bfloat16 (runner.dtype)",
            **values,
        )
    kv = config.kv
    layout = checkpoint.config.with_dtypes(policy).kv_layout(kv.num_prefixes, kv.num_rows, kv.row_capacity)
    section.fact(layout.in_words(), kv_bytes=layout.total_bytes)
    if layout.total_bytes > kv.memory_limit_bytes:
        section.refuse(
            f"kv.memory_limit_mb allows {kv.memory_limit_mb:g} MiB",
            "memory",
            "fewer kv.num_prefixes or kv.num_rows, or a smaller kv.row_capacity",
        )
    return section
