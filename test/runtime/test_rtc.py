"""Guided chunks: weights, what is held where the last chunk ends, and delays counted in actions."""

from __future__ import annotations

import numpy as np
import pytest

from oxygen_ros.runtime.rtc import ChunkGuide, GuideSettings, Schedule, guidance_weights
from oxygen_ros.types import Observation


def _observation(played: int, number: int = 1) -> Observation:
    return Observation(number, number, {}, np.zeros(2, np.float32), "wave", played)


class Rig:
    """A guide, and a player's count that the test sets."""

    def __init__(self, **settings) -> None:
        self.played = 0
        chosen = {
            "schedule": Schedule.LINEAR,
            "window": 8,
            "max_gain": 10.0,
            "delay_window": 10,
            "first_delay": 2,
        }
        self.guide = ChunkGuide(GuideSettings(**(chosen | settings)), lambda: self.played)

    def made(self, start: int, delay: int = 0, horizon: int = 16) -> np.ndarray:
        """A chunk of numbered rows, of an observation at count ``start``, done ``delay`` actions later."""
        actions = np.arange(start, start + horizon, dtype=np.float32)[:, None].repeat(2, axis=1)
        self.played = start + delay
        self.guide.made("default", _observation(start), actions)
        return actions


def test_weights_are_full_over_the_delay_and_fade_over_the_window():
    linear = guidance_weights(2, 5, 20, 8, Schedule.LINEAR)
    np.testing.assert_allclose(linear, [1, 1, 0.75, 0.5, 0.25, 0, 0, 0])
    exp = guidance_weights(2, 5, 20, 8, Schedule.EXP)
    ramp = np.array([0.75, 0.5, 0.25])
    np.testing.assert_allclose(exp[2:5], ramp * (np.exp(ramp) - 1) / (np.e - 1), rtol=1e-6)
    np.testing.assert_array_equal(guidance_weights(2, 5, 20, 8, Schedule.ONES), [1] * 5 + [0] * 3)
    np.testing.assert_array_equal(guidance_weights(2, 5, 20, 8, Schedule.ZEROS), [1] * 2 + [0] * 6)


@pytest.mark.parametrize("schedule", Schedule)
@pytest.mark.parametrize("delay", [0, 1, 15, 16, 19, -3])
@pytest.mark.parametrize("num_previous", [0, 3, 16])
def test_b31_any_delay_gives_usable_weights(schedule, delay, num_previous):
    weights = guidance_weights(delay, 8, num_previous, 16, schedule)
    assert weights.shape == (16,)
    assert weights.dtype == np.float32
    assert ((weights >= 0) & (weights <= 1)).all()
    assert not weights[min(8, num_previous) :].any()


def test_b30_guidance_holds_the_last_action_where_the_last_chunk_ends():
    rig = Rig()
    rig.made(start=5)
    guidance = rig.guide.guidance("default", _observation(18))
    np.testing.assert_array_equal(guidance.previous[:3, 0], [18, 19, 20])
    np.testing.assert_array_equal(guidance.previous[3:, 0], [20] * 13)
    assert guidance.weights[2] > 0
    assert not guidance.weights[3:].any()


@pytest.mark.parametrize("played", [21, 400])
def test_b30_nothing_left_means_no_guidance(played):
    rig = Rig()
    rig.made(start=5)
    assert rig.guide.guidance("default", _observation(played)) is None


def test_no_guidance_before_anything_was_played_or_after_a_withdrawal_or_for_another_expert():
    rig = Rig()
    assert rig.guide.guidance("default", _observation(3)) is None
    rig.made(start=3)
    assert rig.guide.guidance("default", _observation(0)) is None, "the player is not heard"
    assert rig.guide.guidance("default", _observation(2)) is None, "another player, whose count began anew"
    assert rig.guide.guidance("left", _observation(5)) is None
    assert rig.guide.guidance("default", _observation(5)) is not None
    rig.guide.forget()
    assert rig.guide.guidance("default", _observation(5)) is None


@pytest.mark.parametrize("played", [4, 7, 12])
def test_b32_row_0_of_the_guidance_is_the_action_played_next(played):
    rig = Rig()
    rig.made(start=4)
    guidance = rig.guide.guidance("default", _observation(played))
    assert guidance.previous[0, 0] == played


def test_b29_delay_is_counted_in_actions_and_leaves_out_the_warm_up():
    rig = Rig(first_delay=3)
    assert rig.guide.delay == 3, "until something was measured"
    rig.played = 21
    rig.guide.made("default", _observation(0), np.zeros((30, 2), np.float32))
    assert rig.guide.delay == 3, "nothing was played while the first chunk was made"
    for start in range(10, 110, 10):
        rig.made(start=start, delay=9 + start % 20 // 10)
    assert rig.guide.delay == 10


def test_b31_delay_beyond_what_is_left_is_clamped_and_counted():
    rig = Rig(window=4)
    rig.made(start=10, delay=9)
    guidance = rig.guide.guidance("default", _observation(12))
    np.testing.assert_array_equal(guidance.weights, [1] * 4 + [0] * 12)
    assert rig.guide.num_clamped == 1
