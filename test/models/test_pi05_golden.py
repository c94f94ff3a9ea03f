"""Our pi0.5 against recorded runs of openpi, of OxyGen's fork and of LeRobot, from their model inputs on."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from lerobot_cases import FRAMES, PI05_CASES, Frame, checkpoint_folder

from oxygen_ros.kv.memory import KVMemory
from oxygen_ros.models.family import PrefixInputs, TensorGuidance
from oxygen_ros.models.flow_matching import TimeGrid, integrate, step_times
from oxygen_ros.models.pi05.config_source import config_from_shapes
from oxygen_ros.models.pi05.expert import modulations
from oxygen_ros.models.pi05.model import Pi05Model
from oxygen_ros.models.pi05.weights import build_weights
from oxygen_ros.models.tensor_source import SafetensorsSource
from oxygen_ros.runtime.rtc import Schedule, guidance_weights
from oxygen_ros.tools.compare_golden import compare

GOLDEN = Path(__file__).parents[1] / "resources" / "golden" / "pi05"
CPU = torch.device("cpu")
TOLERANCE = 1e-4
BOTH_MODES = {
    "prefix_hidden", "prefix_k.2", "prefix_v.2", "prefix_att_2d", "velocity.3", "euler_traj", "actions_10",
    "actions_5",
}  # fmt: skip
WITH_TEXT = {
    "text.correct_seed.tokens", "text.correct_seed.logprobs", "text.correct_seed.cache_k.2 prefix",
    "text.correct_seed.cache_k.2 written", "eos.correct_seed.tokens",
    "eos.correct_seed.current_step", "cb.correct_seed.frame_tokens", "cb.correct_seed.tokens",
    "seed_index_correct",
}  # fmt: skip


@pytest.mark.parametrize("case", ["openpi_seed0", "openpi_seed1", "oxygen_seed0", "oxygen_seed1"])
def test_golden_pi05_folder_holds_to_absolute_tolerance(case):
    report = compare(GOLDEN / case, TOLERANCE)
    assert [str(c) for c in report.comparisons if not c.difference <= TOLERANCE] == []
    assert [str(c) for c in report.comparisons if not c.holds] == []
    wanted = BOTH_MODES | (WITH_TEXT if case.startswith("oxygen") else set())
    assert wanted <= {comparison.name for comparison in report.comparisons}


class LeRobotRun:
    """One recorded LeRobot frame in our model; its checkpoint states no sizes."""

    def __init__(self, frame: Frame) -> None:
        self.stages = {name: torch.from_numpy(array) for name, array in frame.stages().items()}
        source = SafetensorsSource(checkpoint_folder(frame.case) / "model.safetensors")
        horizon, max_token_len = self.stages["noise"].shape[1], self.stages["tokens"].shape[1]
        config = config_from_shapes(
            source.shapes(), horizon=horizon, max_token_len=max_token_len, num_vision_heads=4
        )
        self.config = replace(config, time_grid=TimeGrid.EXACT)
        weights = build_weights(self.config, source, CPU)
        self.conditioning = weights.conditioning["default"]
        self.model = Pi05Model(self.config, weights, CPU)
        self.memory = KVMemory(self.model.kv_layout(1, 1, 1), CPU)
        self.kv = self.memory.prefix(0)
        images = [array[0] for name, array in sorted(frame.images().items()) if self._is_there(name)]
        tokens = self.stages["tokens"][self.stages["token_mask"]]
        self.inputs = PrefixInputs(torch.from_numpy(np.stack(images)), tokens)
        self.valid = self.stages["prefix_pad_masks"][0]

    def _is_there(self, name: str) -> bool:
        return bool(self.stages["img_masks"][int(name.removeprefix("image")), 0])


@pytest.fixture(
    scope="module", params=[Frame(case, frame) for case in PI05_CASES for frame in FRAMES], ids=str
)
def run(request):
    return LeRobotRun(request.param)


def assert_close(computed, recorded):
    torch.testing.assert_close(computed, recorded, atol=TOLERANCE, rtol=0.0)


def test_golden_lerobot_prefix_hidden_rows_keys_and_values_agree(run):
    hidden = run.model.prefill_rows(run.inputs, run.kv, is_every_row_wanted=True)
    assert_close(run.model.embed_prefix(run.inputs), run.stages["prefix_embs"][0][run.valid])
    assert_close(hidden, run.stages["prefix_hidden"][0][run.valid])
    num_tokens = int(run.valid.sum())
    for layer in range(run.config.vlm.depth):
        keys, values = run.stages[f"prefix_k_{layer}"][0], run.stages[f"prefix_v_{layer}"][0]
        assert_close(run.kv.k[layer, :, :num_tokens], keys[:, run.valid])
        assert_close(run.kv.v[layer, :, :num_tokens], values[:, run.valid])


def test_golden_lerobot_first_token_scores_come_from_the_last_text_row(run):
    state = run.model.prefill(run.inputs, run.kv)
    assert_close(run.model.logits(state.last_hidden[None]), run.stages["lm_logits_last_valid"])


def test_golden_lerobot_every_velocity_and_step_agrees(run):
    state = run.model.prefill(run.inputs, run.kv)
    times = torch.from_numpy(step_times(10, TimeGrid.EXACT))
    assert_close(times, run.stages["step_times"])
    table = modulations(run.conditioning, run.config, run.config.experts[0].size.width, times)
    visited, velocities = [], []

    def velocity(x_t, step):
        visited.append(x_t)
        velocities.append(run.model.velocity("default", x_t, table[step], run.kv, state.num_tokens))
        return velocities[-1]

    actions = integrate(run.stages["noise"][0], 10, velocity)
    assert_close(torch.stack(velocities), run.stages["v_t_steps"][:, 0])
    assert_close(torch.stack([*visited[1:], actions]), run.stages["x_t_steps"][:, 0])
    assert_close(actions, run.stages["actions_padded"][0])
    sampled = run.model.sample_actions("default", state, run.kv, run.stages["noise"][0])
    assert torch.equal(sampled, actions)


@pytest.mark.parametrize("schedule", list(Schedule), ids=lambda schedule: schedule.value)
def test_golden_lerobot_guided_actions_agree(run, schedule):
    """Recorded with a delay of 4, a window of 10 and a gain of 10, on the noise of the plain chunk."""
    stages, noise = run.stages, run.stages["noise"][0]
    name = schedule.value.upper()
    left = stages["rtc_prev_chunk_left_over"]
    weights = guidance_weights(4, 10, len(left), len(noise), schedule)
    assert_close(torch.from_numpy(weights), stages[f"rtc_weights_{name}_d4_h10"])
    previous = torch.zeros_like(noise)  # as LeRobot pads: rows without weight, columns without a joint
    previous[: len(left), : left.shape[1]] = left
    guidance = TensorGuidance(previous, torch.from_numpy(weights)[:, None], 10.0)
    state = run.model.prefill(run.inputs, run.kv)
    actions = run.model.sample_actions("default", state, run.kv, noise, guidance)
    assert_close(actions[:, : left.shape[1]], stages[f"rtc_actions_{name}_d4_h10"][0])
