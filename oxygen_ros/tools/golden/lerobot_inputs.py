"""Compares what the processor makes of a recorded frame: pictures, state, prompt, tokens."""

from __future__ import annotations

import numpy as np
import torch

from oxygen_ros.models.pi05.normalise import DEGENERATE_BOUND
from oxygen_ros.models.pi05.processor import Pi05Processor
from oxygen_ros.tools.golden.lerobot_frame import RecordedFrame
from oxygen_ros.tools.golden.report import Report

INPUT_TOLERANCE = 1e-5
NORMALIZED = "_NormalizerProcessorStep"


def compare_inputs(frame: RecordedFrame, processor: Pi05Processor, report: Report) -> None:
    """Compare all inputs of the model with the record."""
    inputs = processor.prepare(frame.observation)
    prompt = processor.prompt(frame.observation)
    _compare_pictures(f"{frame.name}/image", frame.images, inputs.images, processor, report)
    if "img_masks" in frame.stages:
        fed = torch.tensor([slot.role is not None for slot in processor.slots])
        report.equal(f"{frame.name}/img_masks", torch.from_numpy(frame.stages["img_masks"]).ravel(), fed)
    state = processor.state_normaliser.normalise(frame.observation.state)
    for name, recorded in frame.stages.items():
        if name.endswith(NORMALIZED):
            within = f"{frame.name}/{name}"
            expected = torch.from_numpy(_bounded(recorded.ravel(), state))
            report.within(within, expected, torch.from_numpy(state), INPUT_TOLERANCE)
    if "prompt" in frame.text:
        report.same_text(f"{frame.name}/prompt", frame.text["prompt"][0], prompt.text)
    ids = torch.from_numpy(inputs.token_ids)
    if "token_ids" in frame.text:
        report.equal(f"{frame.name}/token_ids", torch.tensor(frame.text["token_ids"]), ids)
    if "tokens" in frame.stages:
        mask = torch.from_numpy(frame.stages["token_mask"][0])
        report.equal(f"{frame.name}/tokens", torch.from_numpy(frame.stages["tokens"][0])[mask], ids)


def compare_legacy(frame: RecordedFrame, older: Pi05Processor, report: Report) -> None:
    """Compare pictures and prompt of the dialect that LeRobot had up to 0.4.4, where they are recorded."""
    if not frame.legacy_text:
        return
    inputs, prompt = older.prepare(frame.observation), older.prompt(frame.observation)
    _compare_pictures(f"{frame.name}/legacy/image", frame.legacy_images, inputs.images, older, report)
    report.same_text(f"{frame.name}/legacy/prompt", frame.legacy_text["prompt"], prompt.text)
    ids = torch.from_numpy(inputs.token_ids)
    report.equal(f"{frame.name}/legacy/token_ids", torch.tensor(frame.legacy_text["token_ids"]), ids)


def _compare_pictures(
    name: str, recorded: dict[str, np.ndarray], pictures: np.ndarray, processor: Pi05Processor, report: Report
) -> None:
    """Pictures that are fed against those of their slots; the others are never made."""
    fed = [slot.index for slot in processor.slots if slot.role is not None]
    for picture, slot in zip(pictures, fed, strict=True):
        if (expected := recorded.get(f"image{slot}")) is not None:
            computed = torch.from_numpy(picture)
            report.within(f"{name}{slot}", torch.from_numpy(expected[0]), computed, INPUT_TOLERANCE)


def _bounded(recorded: np.ndarray, computed: np.ndarray) -> np.ndarray:
    """The record with our bound where we applied it: to joints that never moved, whose values may be huge."""
    if recorded.shape != computed.shape:
        return recorded
    is_bounded = np.abs(computed) == DEGENERATE_BOUND
    return np.where(is_bounded, np.clip(recorded, -DEGENERATE_BOUND, DEGENERATE_BOUND), recorded)
