"""Compares the action expert of a recorded pi0.5 run: conditioning, velocities, Euler steps, actions."""

from __future__ import annotations

import re

import numpy as np
import torch
from torch import Tensor

from oxygen_ros.models.flow_matching import integrate, step_times
from oxygen_ros.models.pi05.expert import condition, modulations, time_embedding
from oxygen_ros.tools.golden.pi05_run import Pi05Run, Recorded
from oxygen_ros.tools.golden.report import Report


def compare_actions(run: Pi05Run, recorded: Recorded, report: Report) -> None:
    """Compare what is recorded about actions. They belong to the first expert."""
    _compare_velocities(run, recorded, report)
    if (expected := recorded.get("euler_times")) is not None:
        report.close("euler_times", expected, torch.from_numpy(_times(run, len(expected))))
    if (expected := recorded.get("euler_traj")) is not None:
        report.close("euler_traj", expected, _trajectory(run, len(expected)))
    for name in recorded.names():
        if match := re.fullmatch(r"actions_(\d+)(_with_kv)?", name):
            _compare_chunk(name, _trajectory(run, int(match[1]))[-1], recorded, report)
        elif name == "cb.correct_seed.actions":
            _compare_chunk(name, _trajectory(run, run.config.num_denoise_steps)[-1], recorded, report)


def _compare_chunk(name: str, computed: Tensor, recorded: Recorded, report: Report) -> None:
    expected = recorded.get(name)
    if expected is not None:
        report.close(name, expected, computed)


def _compare_velocities(run: Pi05Run, recorded: Recorded, report: Report) -> None:
    """Conditioning and velocity at x_t = noise for the recorded times."""
    expert = run.config.experts[0]
    width = expert.size.width
    conditioning, noise = run.weights.conditioning[expert.name], run.inputs["noise"]
    for name in recorded.names():
        if name.startswith("time_emb."):
            time = torch.tensor([float(name.removeprefix("time_emb."))])
            embedding = time_embedding(time, width, run.config.min_period, run.config.max_period)
            _compare_chunk(name, embedding, recorded, report)
    if (times := recorded.get("velocity_times")) is None:
        return
    computed = condition(conditioning, run.config, width, times)
    table = modulations(conditioning, run.config, width, times)
    embedded = run.weights.experts[expert.name].action_in(noise)
    for index in range(len(times)):
        velocity = torch.stack([_velocity(run, row, noise[row], table[index]) for row in range(len(noise))])
        rows = computed[index].expand(len(noise), -1)
        _compare_chunk(f"suffix_emb.{index}", embedded, recorded, report)
        _compare_chunk(f"adarms_cond.{index}", rows, recorded, report)
        _compare_chunk(f"velocity.{index}", velocity, recorded, report)


def _velocity(run: Pi05Run, row: int, x_t: Tensor, modulation: Tensor) -> Tensor:
    name, num_tokens = run.config.experts[0].name, run.samples[row].num_tokens
    return run.model.velocity(name, x_t, modulation, run.memory.prefix(row), num_tokens)


def _times(run: Pi05Run, num_steps: int) -> np.ndarray:
    return step_times(num_steps, run.config.time_grid)


def _trajectory(run: Pi05Run, num_steps: int) -> Tensor:
    """State after each of ``num_steps`` Euler steps, [num_steps, B, H, action_dim]."""
    expert = run.config.experts[0]
    times = torch.from_numpy(_times(run, num_steps))
    table = modulations(run.weights.conditioning[expert.name], run.config, expert.size.width, times)
    rows = []
    for row in range(run.num_samples):
        visited: list[Tensor] = []

        def velocity(x_t: Tensor, step: int, row: int = row, visited: list[Tensor] = visited) -> Tensor:
            visited.append(x_t)
            return _velocity(run, row, x_t, table[step])

        last = integrate(run.inputs["noise"][row], num_steps, velocity)
        rows.append(torch.stack([*visited[1:], last]))
    return torch.stack(rows, dim=1)
