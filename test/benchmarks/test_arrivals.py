import numpy as np
import pytest

from benchmarks.arrivals import ARRIVALS, bursty, mixed_lengths, poisson, uniform


def test_uniform_arrivals_every_fourth_cycle_are_one_per_four_cycles():
    """The reference's parameter `rate` is the time between arrivals; ours says what it counts."""
    assert uniform(8, every=4) == [1, 0, 0, 0, 1, 0, 0, 0]


def test_poisson_arrivals_have_the_asked_for_mean_and_repeat():
    assert np.mean(poisson(4000, rate=1.5)) == pytest.approx(1.5, abs=0.1)
    assert poisson(20) == poisson(20) != poisson(20, seed=1)


def test_bursts_come_four_at_once_in_every_eighth_cycle():
    assert bursty(17) == [4, *[0] * 7, 4, *[0] * 7, 4]


@pytest.mark.parametrize("name", sorted(ARRIVALS))
def test_every_pattern_says_something_of_every_cycle(name):
    assert len(ARRIVALS[name](13)) == 13


def test_mixed_lengths_keep_the_share_of_long_texts():
    lengths = mixed_lengths(1000, short=5, long=30, long_share=0.3)
    assert set(lengths) == {5, 30}
    assert lengths.count(30) == pytest.approx(300, abs=50)
