"""The eager runner: one prefix for actions and texts, batches of any composition, and refusals by name.

Size: one short test per part of the contract, on the same tiny model.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from pi05_models import EXPERT, NaiveBackbone, config, inputs, model, with_kv_heads

from oxygen_ros.config.field import PARAMETER_KEY
from oxygen_ros.config.kv import KVConfig
from oxygen_ros.errors import ConfigError, ContractError, RunnerError
from oxygen_ros.models.pi05.config import AttentionMode, DtypePolicy
from oxygen_ros.models.pi05.names import EMBEDDING, LM_HEAD, PROJECTOR
from oxygen_ros.models.pi05.random_weights import random_state
from oxygen_ros.runners.device import pick_device, pick_dtype
from oxygen_ros.runners.eager import EagerRunner
from oxygen_ros.runners.protocol import BatchRow
from oxygen_ros.types import SamplingParams


def runner(settings=None, num_prefixes=4, num_rows=6, row_capacity=24, **tensors):
    loaded = model(settings, **tensors)
    return EagerRunner(loaded, loaded.kv_layout(num_prefixes, num_rows, row_capacity), warm_up_runs=1)


class Text:
    """One text as the engine would drive it."""

    def __init__(self, row, slot, num_tokens, prompt=(), sampling=None):
        self.row, self.slot, self.num_tokens = row, slot, num_tokens
        self.prompt, self.sampling = tuple(prompt), sampling or SamplingParams()
        self.steps = 0
        self.tokens = []

    def batch_row(self):
        is_first = self.steps == 0
        held = 0 if is_first else len(self.prompt) + self.steps - 1
        new = self.prompt if is_first else ()
        return BatchRow(self.row, self.slot, self.num_tokens, held, new, self.steps, self.sampling)


def step(run, texts, count=1):
    """Take ``count`` decode steps of all ``texts`` and read once."""
    for _ in range(count):
        run.decode_step([text.batch_row() for text in texts])
        for text in texts:
            text.steps += 1
    written = run.read_tokens()
    assert set(written) == {text.row for text in texts}
    for text in texts:
        text.tokens += written[text.row]


MODES = [AttentionMode.BIDIRECTIONAL, AttentionMode.CAUSAL_TEXT]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
def test_texts_of_any_prompt_and_birth_equal_the_naive_model(mode, num_kv_heads):
    settings = with_kv_heads(num_kv_heads, attention=mode)
    run, naive = runner(settings), NaiveBackbone(settings)
    observations = [inputs(1, 5), inputs(2, 9, num_images=1), inputs(3, 3, num_images=3)]
    sizes = [run.prefill(observation, slot) for slot, observation in enumerate(observations)]
    births = [(0, 0, ()), (0, 0, (7, 8, 9)), (1, 1, (11,)), (2, 2, ()), (2, 1, (4, 5, 6, 7, 8))]
    texts = [Text(i, slot, sizes[slot], prompt) for i, (_, slot, prompt) in enumerate(births)]
    for cycle in range(8):
        step(run, [t for t, (birth, _, _) in zip(texts, births, strict=True) if birth <= cycle])
    for text in texts:
        expected = naive.greedy(observations[text.slot], list(text.prompt), len(text.tokens))
        assert text.tokens == expected
        assert len(text.tokens) >= 6


def test_suffix_prompt_in_one_step_gives_what_the_longer_prefix_gives():
    """Causal text: a suffix prompt behind the prefix is the same as one prompt that holds both."""
    run = runner(config(attention=AttentionMode.CAUSAL_TEXT))
    whole = inputs(1, 10)
    split = inputs(1, 10, token_ids=whole.token_ids[:4])
    first = Text(0, 0, run.prefill(split, 0), whole.token_ids[4:].tolist())
    second = Text(1, 1, run.prefill(whole, 1))
    step(run, [first, second], 6)
    assert first.tokens == second.tokens


def test_b40_action_sampling_twice_around_texts_gives_the_same_bits_and_leaves_the_prefix():
    """The prefix cache was extended in place: the second sampling saw a longer one, and crashed."""
    run = runner()
    num_tokens = run.prefill(inputs(), 1)
    before = run.memory.prefix_checksums(1, num_tokens)
    first = run.sample_actions(1, "default", seed=3)
    texts = [Text(row, 1, num_tokens, prompt) for row, prompt in enumerate([(), (5, 6), (9,)])]
    step(run, texts, 5)
    second = run.sample_actions(1, "default", seed=3)
    assert first.tobytes() == second.tobytes()
    assert run.memory.prefix_checksums(1, num_tokens) == before


def test_texts_first_or_actions_first_give_the_same():
    results = []
    for is_text_first in (True, False):
        run = runner()
        text = Text(0, 0, run.prefill(inputs(), 0))
        if is_text_first:
            step(run, [text], 4)
        actions = run.sample_actions(0, "default", seed=1)
        if not is_text_first:
            step(run, [text], 4)
        results.append((actions.tobytes(), text.tokens))
    assert results[0] == results[1]


BIRTHS = [(1, 3), (2, 7), (4, 12), (7, 20)]


def drive(run, members, num_tokens=8):
    """Texts of ``members`` (birth frame, prompt length) on prefixes of their own, each to ``num_tokens``."""
    texts = {}
    for frame in range(1, 7 + num_tokens + 1):
        for row, (birth, length) in enumerate(members):
            if birth == frame:
                texts[length] = Text(row, row, run.prefill(inputs(length, length), row))
        running = [text for text in texts.values() if len(text.tokens) < num_tokens]
        if running:
            step(run, running)
    return {length: text.tokens for length, text in texts.items()}


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_b42_requests_of_several_frames_each_equal_their_solo_run(order):
    """Position ids were shared by the batch, so short rows of it gave another text."""
    solo = {}
    for member in BIRTHS:
        solo |= drive(runner(), [member])
    joint = drive(runner(), [BIRTHS[i] for i in order])
    assert joint == solo
    assert all(len(tokens) == 8 for tokens in joint.values())
    assert len({tuple(tokens) for tokens in joint.values()}) == 4


def test_b45_chunks_and_tokens_are_owned_by_the_caller():
    """A later run reused the output buffer, and a kept chunk changed."""
    run = runner()
    run.prefill(inputs(), 0)
    first = run.sample_actions(0, "default", seed=1)
    kept = first.copy()
    second = run.sample_actions(0, "default", seed=2)
    assert not np.shares_memory(first, second)
    assert np.array_equal(first, kept)
    assert not np.array_equal(first, second)
    assert first.flags.owndata
    assert first.flags.writeable


def test_b46_steps_add_up_in_float32_though_the_model_is_bfloat16(monkeypatch):
    """Ten small bfloat16 steps lose what float32 keeps: near one, bfloat16 cannot hold a change of 0.002."""
    loaded = model(config(dtypes=DtypePolicy.openpi(torch.bfloat16), num_denoise_steps=10))
    seen = []

    def small_velocity(weights, settings, expert, x_t, *rest):
        seen.append(x_t.dtype)
        return torch.full_like(x_t, 0.02)

    monkeypatch.setattr(loaded, "denoise_step", small_velocity)
    noise = torch.ones(EXPERT.horizon, EXPERT.action_dim)
    monkeypatch.setattr(torch, "randn", lambda *args, **kwargs: noise)
    run = EagerRunner(loaded, loaded.kv_layout(1, 1, 4))
    run.prefill(inputs(), 0)
    actions = run.sample_actions(0, "default", seed=0)
    assert seen == [torch.float32] * 10
    assert actions.dtype == np.float32
    np.testing.assert_allclose(actions, 0.98, atol=1e-6)


def test_b46_float16_is_refused_by_name():
    with pytest.raises(ConfigError, match="float16"):
        pick_dtype("float16")
    assert pick_dtype("bfloat16") is torch.bfloat16


def test_b39_cuda_without_a_gpu_is_refused_and_never_becomes_the_cpu(monkeypatch):
    """A compiled path ran on the CPU without notice."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="cuda"):
        pick_device("cuda")
    assert pick_device("cpu").type == "cpu"


@pytest.mark.parametrize("name", ["gpu", "mps", "cuda:99"])
def test_device_that_is_not_there_is_refused(name):
    with pytest.raises(ConfigError):
        pick_device(name)


def test_two_experts_read_one_prefix_and_each_gives_its_own_chunk():
    head = replace(
        EXPERT, name="head", size=replace(EXPERT.size, width=24, mlp_dim=40), horizon=3, action_dim=2
    )
    run = runner(config(experts=(EXPERT, head)))
    num_tokens = run.prefill(inputs(), 0)
    before = run.memory.prefix_checksums(0, num_tokens)
    chunks = {name: run.sample_actions(0, name, seed=5) for name in ("default", "head", "default")}
    assert chunks["default"].shape == (5, 6)
    assert chunks["head"].shape == (3, 2)
    assert run.memory.prefix_checksums(0, num_tokens) == before
    alone = runner(config(experts=(EXPERT,)))
    alone.prefill(inputs(), 0)
    assert np.isfinite(chunks["head"]).all()
    assert [expert.name for expert in run.spec.experts] == ["default", "head"]
    with pytest.raises(ContractError, match="no expert 'arm'"):
        run.sample_actions(0, "arm", seed=0)


def test_extra_expert_does_not_change_what_the_first_one_does():
    head = replace(EXPERT, name="head", horizon=3)
    tensors = random_state(config(experts=(EXPERT, head)))
    shared = {name: tensor for name, tensor in tensors.items() if not name.startswith("experts.")}
    both = runner(config(experts=(EXPERT, head)), **tensors)
    alone = runner(config(), **shared)
    for run in (both, alone):
        run.prefill(inputs(), 0)
    both.sample_actions(0, "head", seed=1)
    first, second = both.sample_actions(0, "default", seed=1), alone.sample_actions(0, "default", seed=1)
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_actions_depend_on_the_seed_alone():
    run = runner()
    for slot in (0, 1):
        run.prefill(inputs(), slot)
    chunks = [run.sample_actions(slot, "default", seed) for slot, seed in ((0, 1), (1, 1), (0, 2))]
    assert np.array_equal(chunks[0], chunks[1])
    assert not np.array_equal(chunks[0], chunks[2])


BAD_INPUTS = {
    "images are": {"images": np.zeros((2, 3, 28, 28), np.float64)},
    "wanted float32 .cameras, 3, 28, 28.": {"images": np.zeros((2, 28, 28, 3), np.float32)},
    "4 images, the model takes 3": {"images": np.zeros((4, 3, 28, 28), np.float32)},
    "wanted int64": {"token_ids": np.ones(3, np.int32)},
    "at least one": {"token_ids": np.ones(0, np.int64)},
    "vocabulary 0..63": {"token_ids": np.array([3, 64])},
    "token ids -1..3": {"token_ids": np.array([3, -1])},
    "37 tokens, 36 fit": {"token_ids": np.ones(29, np.int64)},
    "state is not finite": {"state": np.array([0.0, np.nan], np.float32)},
}


@pytest.mark.parametrize("message", BAD_INPUTS)
def test_prefill_refuses_inputs_out_of_contract_by_name_and_keeps_the_prefix(message):
    run = runner()
    num_tokens = run.prefill(inputs(), 0)
    before = run.memory.prefix_checksums(0, num_tokens)
    with pytest.raises(ContractError, match=message):
        run.prefill(inputs(2, **BAD_INPUTS[message]), 0)
    assert run.memory.prefix_checksums(0, num_tokens) == before
    run.sample_actions(0, "default", seed=0)


@pytest.mark.parametrize("slot", [-1, 4])
def test_prefill_refuses_a_slot_that_is_not_there(slot):
    with pytest.raises(ContractError, match=f"prefix slot {slot} of 4"):
        runner().prefill(inputs(), slot)


BAD_ROWS = {
    "there are 6 rows": {"row": 6},
    "prefix slot 1 was never written": {"prefix_slot": 1},
    "holds 15 tokens, not 14": {"prefix_tokens": 14},
    "24 tokens and 1 more, 24 fit": {"suffix_tokens": 24},
    "0 tokens and 25 more, 24 fit": {"suffix_tokens": 0, "tokens_written": 0, "new_token_ids": (1,) * 25},
    "belongs to the first step": {"new_token_ids": (1,)},
    "suffix prompt token ids 64..64": {"suffix_tokens": 0, "tokens_written": 0, "new_token_ids": (64,)},
}


@pytest.mark.parametrize("message", BAD_ROWS)
def test_decode_step_refuses_a_row_out_of_contract_by_name(message):
    run = runner()
    run.prefill(inputs(), 0)
    good = BatchRow(0, 0, 15, 2, (), 3, SamplingParams())
    run.decode_step([good])
    with pytest.raises(ContractError, match=message):
        run.decode_step([replace(good, **BAD_ROWS[message])])


def test_decode_step_refuses_one_row_twice_and_takes_none():
    run = runner()
    run.prefill(inputs(), 0)
    row = BatchRow(0, 0, 15, 0, (), 0, SamplingParams())
    with pytest.raises(ContractError, match="must differ"):
        run.decode_step([row, row])
    run.decode_step([])
    assert run.read_tokens() == {}


def test_runner_refuses_a_layout_of_another_model():
    loaded = model()
    with pytest.raises(ConfigError, match="not the model's"):
        EagerRunner(loaded, replace(loaded.kv_layout(1, 1, 4), num_layers=3))


def test_actions_that_are_not_finite_are_a_runner_error():
    run = runner(**{"action_out_proj.bias": torch.full((6,), torch.nan)})
    run.prefill(inputs(), 0)
    with pytest.raises(RunnerError, match="not finite"):
        run.sample_actions(0, "default", seed=0)


def test_prefix_that_is_not_finite_is_a_runner_error():
    run = runner(**{f"{PROJECTOR}.bias": torch.full((32,), torch.inf)})
    with pytest.raises(RunnerError, match="not finite"):
        run.prefill(inputs(), 0)
    with pytest.raises(ContractError, match="never written"):
        run.sample_actions(0, "default", seed=0)


def test_text_that_is_not_finite_gives_none_and_spoils_nobody_else():
    """A token whose embedding is not a number: its row ends, the others and the row's next text do not."""
    head = random_state(config())[LM_HEAD]
    head[5] = torch.nan
    healthy = random_state(config())[LM_HEAD]
    run = runner(**{EMBEDDING: head, LM_HEAD: healthy})
    num_tokens = run.prefill(inputs(), 0)
    bad, good = Text(0, 0, num_tokens, (5,) * 9), Text(1, 0, num_tokens, (6, 7))
    alone = Text(2, 0, num_tokens, (6, 7))
    step(run, [bad, good], 3)
    step(run, [alone], 3)
    assert bad.tokens == [None] * 3
    assert good.tokens == alone.tokens
    run.prefill(inputs(), 0)
    heir = Text(0, 0, num_tokens, (6, 7))
    other = Text(3, 0, num_tokens, tuple(range(6, 20)))
    step(run, [heir, other], 3)
    assert heir.tokens == good.tokens
    assert None not in other.tokens


def test_drawn_texts_depend_on_seed_and_not_on_the_batch():
    run = runner()
    num_tokens = run.prefill(inputs(), 0)
    settings = [
        SamplingParams(temperature=1.5, seed=1),
        SamplingParams(temperature=1.5, seed=2, top_k=5),
        SamplingParams(),
        SamplingParams(temperature=0.7, seed=1, top_k=3),
    ]
    together = [Text(row, 0, num_tokens, (), params) for row, params in enumerate(settings)]
    step(run, together, 8)
    for params, text in zip(settings, together, strict=True):
        alone = Text(5, 0, num_tokens, (), params)
        step(run, [alone], 8)
        assert alone.tokens == text.tokens
    assert together[0].tokens != together[1].tokens


def test_tokens_of_several_steps_come_in_one_read_and_only_once():
    run = runner()
    text = Text(2, 0, run.prefill(inputs(), 0))
    step(run, [text], 5)
    assert len(text.tokens) == 5
    assert run.read_tokens() == {}


def test_warm_up_measures_every_phase_and_bucket_and_leaves_the_memory_as_it_was():
    run = runner(num_rows=6)
    num_bytes = run.memory.num_bytes
    costs = run.warm_up()
    assert sorted(costs.decode_step_ns) == [1, 2, 4, 6, 8, 16]
    assert all(cost > 0 for times in costs.decode_step_ns.values() for cost in times)
    assert costs.prefill_ns[0] > 0
    assert costs.act_ns[0] > 0
    assert (costs.device, costs.dtype) == ("cpu", "float32")
    assert costs.backend.startswith("eager")
    assert run.read_tokens() == {}
    assert run.memory.num_bytes == num_bytes == run.layout.total_bytes
    with pytest.raises(ContractError, match="never written"):
        run.sample_actions(0, "default", seed=0)


def test_bfloat16_runs_every_phase_close_to_float32():
    precise, coarse = runner(), runner(config(dtypes=DtypePolicy.openpi(torch.bfloat16)))
    chunks = []
    for run in (precise, coarse):
        num_tokens = run.prefill(inputs(), 0)
        chunks.append(run.sample_actions(0, "default", seed=1))
        step(run, [Text(0, 0, num_tokens, (5, 6)), Text(1, 0, num_tokens)], 3)
    assert coarse.layout.dtype == "bfloat16"
    assert coarse.memory.num_bytes * 2 == precise.memory.num_bytes
    np.testing.assert_allclose(chunks[1], chunks[0], atol=0.1)


def test_longest_row_that_the_configuration_allows_is_written_to_its_last_place():
    capacity = KVConfig.__dataclass_fields__["row_capacity"].metadata[PARAMETER_KEY].maximum
    run = runner(num_prefixes=1, num_rows=1, row_capacity=capacity)
    num_tokens = run.prefill(inputs(1, 5), 0)
    run.decode_step([BatchRow(0, 0, num_tokens, capacity - 1, (), capacity, SamplingParams())])
    assert None not in run.read_tokens()[0]
