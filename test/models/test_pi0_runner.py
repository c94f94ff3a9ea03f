"""pi0 on the eager runner: warm-up, recorded actions through the public verbs, and a state that is wrong."""

import dataclasses

import numpy as np
import pytest
import torch
from lerobot_cases import FRAMES, Frame, checkpoint_folder
from test_pi05_processor import observation_of, processor_for

from oxygen_ros.errors import ContractError
from oxygen_ros.models.pi05.checkpoint_open import open_checkpoint
from oxygen_ros.models.pi05.loading import load_model
from oxygen_ros.runners.eager import EagerRunner

CASE = "pi0_droid_seed0"


@pytest.fixture(scope="module")
def runner():
    model = load_model(open_checkpoint(checkpoint_folder(CASE)), torch.float32, torch.device("cpu"))
    made = EagerRunner(model, model.kv_layout(2, 2, 16), row_buckets=(1,), warm_up_runs=1)
    made.warm_up()
    return made


def inputs_of(frame):
    return processor_for(CASE).prepare(observation_of(CASE, frame))


@pytest.mark.parametrize("frame", FRAMES)
def test_pi0_actions_from_the_recorded_noise_equal(runner, frame):
    stages = Frame(CASE, frame).stages()
    noise = torch.from_numpy(stages["noise"][0])
    runner.prefill(inputs_of(frame), 0)
    with torch.inference_mode():
        actions = runner.model.sample_actions("default", runner._prefixes[0], runner.memory.prefix(0), noise)
    np.testing.assert_allclose(actions.numpy(), stages["actions_padded"][0], rtol=0, atol=1e-5)


def test_pi0_actions_depend_on_the_state_and_leave_the_prefix_alone(runner):
    inputs = inputs_of("frame0")
    num_tokens = runner.prefill(inputs, 0)
    before = runner.memory.prefix_checksums(0, num_tokens)
    first = runner.sample_actions(0, "default", seed=3)
    assert runner.memory.prefix_checksums(0, num_tokens) == before
    np.testing.assert_array_equal(first, runner.sample_actions(0, "default", seed=3))
    runner.prefill(dataclasses.replace(inputs, state=inputs.state + 1), 1)
    assert not np.allclose(first, runner.sample_actions(1, "default", seed=3))


@pytest.mark.parametrize("state", [None, np.zeros(8, np.float32), np.full(32, np.nan, np.float32)])
def test_pi0_state_that_is_absent_or_wrong_is_refused(runner, state):
    with pytest.raises(ContractError) as caught:
        runner.prefill(dataclasses.replace(inputs_of("frame0"), state=state), 0)
    assert caught.value.code == "state"
