"""Compares what the model makes of a recorded frame: prefix, keys, logits, denoising, commands."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from oxygen_ros.kv.memory import KVMemory, PrefixKV
from oxygen_ros.models.family import PrefixInputs, TensorGuidance
from oxygen_ros.models.flow_matching import guided, integrate, step_times
from oxygen_ros.models.pi05.model import Pi05Model
from oxygen_ros.models.pi05.processor import Pi05Processor
from oxygen_ros.runtime.rtc import Schedule, guidance_weights
from oxygen_ros.tools.golden.lerobot_frame import RecordedFrame
from oxygen_ros.tools.golden.report import Report
from oxygen_ros.types import DEFAULT_EXPERT

GUIDED = re.compile(r"rtc_(weights|actions)_([A-Z]+)_d(\d+)_h(\d+)")
"""A tensor of a guided run: what, schedule, delay and window in actions. The gain is always LeRobot's 10."""
GUIDED_FROM = "rtc_prev_chunk_left_over"
MAX_GAIN = 10.0
WEIGHT_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Tolerances:
    """Largest differences by kind of tensor."""

    hidden: float
    keys: float
    velocity: float
    actions: float

    @staticmethod
    def of(tolerance: float, is_low_precision: bool) -> Tolerances:
        """One tolerance for all, or the wider ones of a run that was recorded in bfloat16."""
        wide = (0.1, 0.2, 0.15, 0.03) if is_low_precision else (0.0,) * 4
        return Tolerances(*(max(tolerance, value) for value in wide))


class _Run:
    """One frame in the model, with the record's names looked up as they are compared."""

    def __init__(self, frame: RecordedFrame, processor: Pi05Processor, model: Pi05Model) -> None:
        self.stages = {name: torch.from_numpy(value) for name, value in frame.stages.items()}
        made = processor.prepare(frame.observation)
        state = None if made.state is None else torch.from_numpy(made.state)
        self.inputs = PrefixInputs(torch.from_numpy(made.images), torch.from_numpy(made.token_ids), state)
        self.model, self.processor, self.frame = model, processor, frame
        self.memory = KVMemory(model.kv_layout(1, 1, 1), model.device)
        self.kv: PrefixKV = self.memory.prefix(0)
        self.embedded = model.embed_prefix(self.inputs)
        self.hidden = model.prefill_rows(self.inputs, self.kv, is_every_row_wanted=True)
        self.num_tokens = self.hidden.shape[0]

    def name(self, stage: str) -> str:
        return f"{self.frame.name}/{stage}"


def prefix_error(frame: RecordedFrame, processor: Pi05Processor, model: Pi05Model) -> float:
    """Largest difference of the valid prefix embeddings from the record."""
    run = _Run(frame, processor, model)
    recorded = run.stages["prefix_embs"][0][run.stages["prefix_pad_masks"][0]]
    same_shape = recorded.shape == run.embedded.shape
    return float((recorded - run.embedded).abs().max()) if same_shape else float("inf")


def compare_stages(
    frame: RecordedFrame, processor: Pi05Processor, model: Pi05Model, tolerances: Tolerances, report: Report
) -> None:
    """Compare everything that the model computes with the record."""
    if not frame.stages:
        report.note(f"{frame.name}: no stages are recorded")
        return
    run = _Run(frame, processor, model)
    if "prefix_pad_masks" in run.stages:
        _compare_prefix(run, tolerances, report)
    if "noise" in run.stages:
        _compare_denoising(run, tolerances, report)
    if "noise_seed123" in run.stages:
        _compare_served(run, tolerances, report)
    _compare_guided(run, tolerances, report)


def _compare_prefix(run: _Run, tolerances: Tolerances, report: Report) -> None:
    stages, mask = run.stages, run.stages["prefix_pad_masks"][0]
    report.equal(run.name("prefix_pad_masks"), mask.sum(), torch.tensor(run.num_tokens))
    if "prefix_position_ids" in stages:
        positions = torch.arange(run.num_tokens)
        report.equal(run.name("prefix_position_ids"), stages["prefix_position_ids"][0][mask], positions)
    if "prefix_att_masks" in stages:
        report.equal(run.name("prefix_att_masks"), stages["prefix_att_masks"].any(), torch.tensor(False))
    for name, computed in (("prefix_embs", run.embedded), ("prefix_hidden", run.hidden)):
        if name in stages:
            report.within(run.name(name), stages[name][0][mask], computed, tolerances.hidden)
    for layer in range(run.model.config.vlm.depth):
        for part, memory in (("k", run.kv.k), ("v", run.kv.v)):
            name = f"prefix_{part}_{layer}"
            if name in stages:
                computed = memory[layer, :, : run.num_tokens]
                report.within(run.name(name), stages[name][0][:, mask], computed, tolerances.keys)
    if "last_valid_prefix_index" in stages:
        last = mask.nonzero()[-1, 0]
        report.equal(run.name("last_valid_prefix_index"), stages["last_valid_prefix_index"], last)
    if "lm_logits_last_valid" in stages:
        logits = run.model.logits(run.hidden[-1:])
        report.within(
            run.name("lm_logits_last_valid"), stages["lm_logits_last_valid"], logits, tolerances.hidden
        )


def _denoise(
    run: _Run, noise: Tensor, pull: TensorGuidance | None = None
) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Actions from ``noise`` [H, A], and every state and velocity on the way, before the pull."""
    states: list[Tensor] = []
    velocities: list[Tensor] = []

    def velocity(x_t: Tensor, step: int) -> Tensor:
        states.append(x_t)
        velocities.append(run.model.step_velocity(DEFAULT_EXPERT, x_t, step, run.kv, run.num_tokens))
        return velocities[-1]

    if run.inputs.state is not None:
        run.model.write_state(DEFAULT_EXPERT, run.inputs.state, run.kv, run.num_tokens)
    num_steps, grid = run.model.config.num_denoise_steps, run.model.config.time_grid
    times = step_times(num_steps, grid)
    way = velocity if pull is None else guided(velocity, times, pull.previous, pull.weights, pull.max_gain)
    actions = integrate(noise, num_steps, way)
    return actions, [*states[1:], actions], velocities


def _compare_denoising(run: _Run, tolerances: Tolerances, report: Report) -> None:
    stages, config = run.stages, run.model.config
    if "step_times" in stages:
        times = torch.from_numpy(step_times(config.num_denoise_steps, config.time_grid))
        report.within(run.name("step_times"), stages["step_times"], times, 1e-6)
    actions, states, velocities = _denoise(run, stages["noise"][0])
    for name, computed, tolerance in (
        ("x_t_steps", torch.stack(states)[:, None], tolerances.actions),
        ("v_t_steps", torch.stack(velocities)[:, None], tolerances.velocity),
        ("actions_padded", actions[None], tolerances.actions),
    ):
        if name in stages:
            report.within(run.name(name), stages[name], computed, tolerance)
    if "actions_model_space" in stages:
        width = stages["actions_model_space"].shape[-1]
        expected = stages["actions_model_space"]
        report.within(run.name("actions_model_space"), expected, actions[None, :, :width], tolerances.actions)
    if "actions_post" in stages:
        commands = _finish(run, actions)
        report.within(run.name("actions_post"), stages["actions_post"][0], commands, tolerances.actions)


def _compare_served(run: _Run, tolerances: Tolerances, report: Report) -> None:
    """The first actions of the queue that LeRobot serves one by one, from another noise."""
    actions, _, _ = _denoise(run, run.stages["noise_seed123"][0])
    for name, computed in (
        ("select_action_seed123", actions),
        ("select_action_post_seed123", _finish(run, actions)),
    ):
        if name in run.stages:
            expected = run.stages[name][:, 0]
            computed = computed[: len(expected), : expected.shape[1]]
            report.within(run.name(name), expected, computed, tolerances.actions)


def _compare_guided(run: _Run, tolerances: Tolerances, report: Report) -> None:
    """Chunks that what was left of the last one pulled, from the noise of the plain chunk."""
    left_out = []
    for name in (name for name in run.stages if name.startswith("rtc_") and name != GUIDED_FROM):
        match, recorded = GUIDED.fullmatch(name), run.stages[name]
        known = {schedule.name: schedule for schedule in Schedule}
        if match is None or match[2] not in known or not {GUIDED_FROM, "noise"} <= run.stages.keys():
            left_out.append(name)
            continue
        left, noise = run.stages[GUIDED_FROM], run.stages["noise"][0]
        delay, window, schedule = int(match[3]), int(match[4]), known[match[2]]
        weights = torch.from_numpy(guidance_weights(delay, window, len(left), len(noise), schedule))
        if match[1] == "weights":
            report.within(run.name(name), recorded, weights, WEIGHT_TOLERANCE)
            continue
        previous = torch.zeros_like(noise)  # as LeRobot pads: rows without weight, columns without a joint
        previous[: len(left), : left.shape[1]] = left
        actions, _, _ = _denoise(run, noise, TensorGuidance(previous, weights[:, None], MAX_GAIN))
        report.within(run.name(name), recorded, actions[None, :, : recorded.shape[-1]], tolerances.actions)
    if left_out:
        report.note(f"{run.frame.name}: left out, not a guided run that is known: {', '.join(left_out)}")


def _finish(run: _Run, actions: Tensor) -> Tensor:
    padded = np.ascontiguousarray(actions.numpy())
    return torch.from_numpy(run.processor.finish(DEFAULT_EXPERT, padded, run.frame.observation))
