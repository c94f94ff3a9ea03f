"""Tokens are chosen on the device, by (seed, token index) alone."""

import numpy as np
import pytest
import torch

from oxygen_ros.models.sampling import choose_tokens, plan_draws, uniform
from oxygen_ros.types import SamplingParams

CPU = torch.device("cpu")


def choose(logits, params, indices=None):
    draws = plan_draws(params, indices or [0] * len(params), logits.shape[-1], CPU)
    return choose_tokens(logits, draws)


def test_greedy_takes_the_largest_and_needs_no_draw():
    logits = torch.tensor([[0.0, 3.0, 1.0], [9.0, 3.0, 1.0]])
    tokens, is_finite = choose(logits, [SamplingParams()] * 2)
    assert tokens.tolist() == [1, 0]
    assert is_finite.tolist() == [True, True]
    assert plan_draws([SamplingParams()] * 2, [0, 0], 3, CPU) is None


def test_uniform_depends_on_seed_and_index_and_is_even():
    draws = np.array([[uniform(seed, index) for index in range(200)] for seed in range(50)])
    assert len(np.unique(draws)) == draws.size
    assert 0.0 <= draws.min() < 0.001
    assert 0.999 < draws.max() < 1.0
    counts = np.histogram(draws, bins=10, range=(0, 1))[0]
    assert counts.min() > 900
    assert counts.max() < 1100
    assert abs(np.corrcoef(draws[:, :-1].ravel(), draws[:, 1:].ravel())[0, 1]) < 0.03
    assert uniform(-1, 0) == uniform((1 << 64) - 1, 0)


def test_draws_follow_the_softmax_of_logits_by_temperature():
    logits = torch.tensor([[0.0, 1.0, 2.0, -1.0]])
    params = SamplingParams(temperature=2.0, seed=7)
    tokens = [int(choose(logits, [params], [index])[0]) for index in range(4000)]
    shares = np.bincount(tokens, minlength=4) / 4000
    np.testing.assert_allclose(shares, torch.softmax(logits[0] / 2.0, -1).numpy(), atol=0.03)


@pytest.mark.parametrize("top_k", [1, 2, 3])
def test_top_k_draws_only_from_the_likeliest(top_k):
    logits = torch.tensor([[0.0, 1.0, 2.0, -1.0]])
    params = SamplingParams(temperature=5.0, top_k=top_k, seed=1)
    tokens = {int(choose(logits, [params], [index])[0]) for index in range(200)}
    assert tokens == {2, 1, 0} & set([2, 1, 0][:top_k])


def test_a_draw_does_not_depend_on_the_rest_of_the_batch():
    logits = torch.randn(5, 40)
    params = [
        SamplingParams(temperature=1.0, seed=4),
        SamplingParams(temperature=0.5, seed=4, top_k=3),
        SamplingParams(),
        SamplingParams(temperature=2.0, seed=9, top_k=39),
        SamplingParams(temperature=2.0, seed=9, top_k=400),
    ]
    indices = [3, 3, 3, 8, 0]
    together = choose(logits, params, indices)[0].tolist()
    alone = [int(choose(logits[i : i + 1], [params[i]], [indices[i]])[0]) for i in range(5)]
    assert together == alone


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_not_finite_are_flagged_and_give_a_valid_id(bad, temperature):
    logits = torch.zeros(3, 16)
    logits[1, 5] = bad
    tokens, is_finite = choose(logits, [SamplingParams(temperature=temperature)] * 3)
    assert is_finite.tolist() == [True, False, True]
    assert all(0 <= token < 16 for token in tokens.tolist())
