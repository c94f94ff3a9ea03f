"""Compares the prefix of a recorded pi0.5 run: image tokens, masks, hidden rows, keys and values."""

from __future__ import annotations

import torch

from oxygen_ros.models.pi05.config import AttentionMode
from oxygen_ros.models.pi05.vision import encode_images
from oxygen_ros.tools.golden.pi05_run import Pi05Run, Recorded
from oxygen_ros.tools.golden.report import Report


def compare_prefix(run: Pi05Run, recorded: Recorded, report: Report) -> None:
    """Compare what is recorded about the prefix."""
    _compare_images(run, recorded, report)
    _compare_masks(run, recorded, report)
    rows = {
        "prefix_embs": [sample.embedded for sample in run.samples],
        "prefix_hidden": [sample.hidden for sample in run.samples],
    }
    for name, computed in rows.items():
        if (expected := recorded.get(name)) is not None:
            report.close_to_scale(name, run.valid(expected), torch.cat(computed))
    for layer in range(run.config.vlm.depth):
        for part, memory in (("k", run.memory.prefix_k), ("v", run.memory.prefix_v)):
            name = f"prefix_{part}.{layer}"
            if (expected := recorded.get(name)) is not None:
                report.close_to_scale(name, run.valid_cache(expected), run.valid_rows(memory[layer]))


def _compare_images(run: Pi05Run, recorded: Recorded, report: Report) -> None:
    for camera in run.config.cameras:
        if (pixels := run.inputs.get(f"image_u8.{camera}")) is not None:
            scaled = pixels.transpose(-1, -2).transpose(-2, -3) / 255.0 * 2.0 - 1.0
            report.close(f"image_u8.{camera}", run.inputs[f"image.{camera}"], scaled)
        if (expected := recorded.get(f"image_emb.{camera}")) is not None:
            images = run.inputs[f"image.{camera}"]
            computed = encode_images(run.weights.vision, run.config.vision, images)
            by_image = computed.view(len(images), -1, computed.shape[-1])
            report.close_to_scale(f"image_emb.{camera}", expected, by_image)


def _compare_masks(run: Pi05Run, recorded: Recorded, report: Report) -> None:
    """Validity, positions and who sees whom: what the packed prefix stands for in the padded one."""
    mask = run.pad_mask
    if (expected := recorded.get("prefix_pad_mask")) is not None:
        report.equal("prefix_pad_mask", expected, mask)
    if (expected := recorded.get("prefix_positions")) is not None:
        packed = torch.cat([torch.arange(sample.num_tokens) for sample in run.samples])
        report.equal("prefix_positions", run.valid(expected), packed)
    if (expected := recorded.get("prefix_att_2d")) is not None:
        is_causal = run.config.attention is AttentionMode.CAUSAL_TEXT
        steps = torch.zeros(mask.shape[1], dtype=torch.int64)
        steps[-run.config.max_token_len :] = int(is_causal)
        order = steps.cumsum(0)
        sees = (order[None, :] <= order[:, None])[None] & mask[:, None, :] & mask[:, :, None]
        report.equal("prefix_att_2d", expected, sees)
