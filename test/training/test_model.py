"""The differentiable model against the product's inference: the same numbers, the same tokens."""

import numpy as np
import pytest
import torch

from oxygen_ros.sim import grammar
from oxygen_ros.sim.truth import ALL_TASKS
from oxygen_ros.text.cleaner import clean
from oxygen_ros.training.batches import Prompter, state_bins
from oxygen_ros.training.checkpoint import read_model, write_checkpoint
from oxygen_ros.training.dims import Dims
from oxygen_ros.training.pi05 import TinyPi05
from oxygen_ros.training.product import ProductPolicy
from oxygen_ros.training.vision import to_model_images
from oxygen_ros.training.vocabulary import EOS_ID, pieces
from oxygen_ros.types import Observation, SamplingParams, TextKind, TextRequest

STATE = np.array([0.41, -0.12, 0.2, 0.0, 1.57, 0.0, 0.045, -0.045], np.float32)
TASK = 3


def random_model(seed):
    """Every weight random, those that start at zero too: only then does an equal output say anything."""
    torch.manual_seed(seed)
    model = TinyPi05(Dims(vocab_size=len(pieces())))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoint")
    write_checkpoint(path, random_model(1), {"seed": 1})
    return path


@pytest.fixture(scope="module")
def pictures():
    return np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3), np.uint8)


def observation(pictures, number=1):
    """Cameras upside down, as the preset expects them."""
    base, wrist = (np.ascontiguousarray(picture[::-1, ::-1]) for picture in pictures)
    images = {"base": base, "left_wrist": wrist}
    return Observation(number, 0, images, STATE, ALL_TASKS[TASK].instruction)


def own_prefix(model, pictures):
    ids = torch.tensor([Prompter().prefix(TASK, STATE)])
    return model.prefill(to_model_images(torch.from_numpy(pictures))[None], ids)


def text_requests(prompts):
    sampling = SamplingParams(max_tokens=20)
    return [TextRequest(f"r{i}", "memory", TextKind.MEMORY, p, sampling) for i, p in enumerate(prompts)]


def test_prepare_of_the_product_gives_the_prompt_and_pictures_of_training(folder, pictures):
    inputs = ProductPolicy(folder, decode_steps=4).processor.prepare(observation(pictures))
    assert inputs.token_ids.tolist() == Prompter().prefix(TASK, STATE)
    np.testing.assert_array_equal(inputs.images, to_model_images(torch.from_numpy(pictures)).numpy())


def test_actions_of_the_product_equal_those_of_training(folder, pictures):
    actions, _ = ProductPolicy(folder, decode_steps=1).cycle(observation(pictures), 7, [])
    model = read_model(folder)
    noise = torch.randn(10, 8, generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        own = model.sample_actions(own_prefix(model, pictures), noise[None])[0, :, :7]
    np.testing.assert_allclose(actions, own.numpy(), atol=1e-4)


def test_texts_of_the_product_in_one_batch_equal_those_of_training(folder, pictures):
    prompts = [grammar.MEMORY_PROMPT, grammar.NEXT_PROMPT, "Where is the red cube?"]
    policy, prompter, model = ProductPolicy(folder, decode_steps=4), Prompter(), read_model(folder)
    _, finished = policy.cycle(observation(pictures), 7, text_requests(prompts))
    for number in range(2, 8):
        finished += policy.cycle(observation(pictures, number), 7, [])[1]
    written = {text.request_id: text.text for text in finished}
    with torch.no_grad():
        prefix = own_prefix(model, pictures)
        for index, prompt in enumerate(prompts):
            ids = torch.tensor([prompter.encode(prompt)])
            own = model.greedy_text(prefix, torch.tensor([0]), ids, 20, EOS_ID)[0].tolist()
            # The product shows no control characters and no character that the token limit has cut.
            assert written[f"r{index}"] == clean(prompter.decode(own))


def test_velocity_of_several_samples_equals_each_alone(pictures):
    model = random_model(2)
    with torch.no_grad():
        prefix = own_prefix(model, pictures)
        noisy, time = torch.randn(1, 3, 10, 8), torch.tensor([[0.9, 0.5, 0.1]])
        together = model.velocity(prefix, noisy, time)
        for index in range(3):
            alone = model.velocity(prefix, noisy[:, index : index + 1], time[:, index : index + 1])
            torch.testing.assert_close(together[:, index : index + 1], alone, atol=1e-5, rtol=1e-4)


def test_read_model_gives_back_the_weights_that_were_written(folder):
    for name, tensor in random_model(1).state_dict().items():
        assert torch.equal(tensor, read_model(folder).state_dict()[name]), name


def test_state_bins_at_and_beyond_the_ends_of_the_range():
    low, high = np.full(8, -9.0, np.float32), np.full(8, 9.0, np.float32)
    assert state_bins(low) == [-1] * 8
    assert state_bins(high) == [255] * 8
