"""What is allowed but likely not meant is warned about, and nothing else is."""

from typing import Any

import pytest

from oxygen_ros.config import OxygenConfig, load_config


def _warnings(**overrides: Any) -> tuple[str, ...]:
    return load_config(preset="libero", overrides=overrides).warnings


def test_b27_overlap_below_one_is_warned_about() -> None:
    """B27 (b): without overlap a streamed chunk comes to rest at its end."""
    (warning,) = _warnings(player={"overlap_steps": 0})
    assert "player.overlap_steps is 0" in warning
    assert _warnings(player={"overlap_steps": 1}) == ()


def test_b35_default_runs_at_most_half_of_a_chunk() -> None:
    """B35 (b)."""
    config = OxygenConfig()
    assert config.cycle.execute_horizon <= config.model.horizon / 2


def test_b35_all_steps_of_a_chunk_give_one_warning() -> None:
    """B35 (c)."""
    (warning,) = _warnings(cycle={"execute_horizon": 10})
    assert "cycle.execute_horizon is 10 of model.horizon 10" in warning


@pytest.mark.parametrize(("rate", "is_warned"), [(20.0, False), (21.9, False), (22.1, True), (17.9, True)])
def test_b36_rate_off_by_more_than_a_tenth_is_warned_about(rate: float, is_warned: bool) -> None:
    """B36 (a): the preset states the rate the checkpoint was trained at."""
    warnings = _warnings(cycle={"action_rate_hz": rate})
    assert any("robot.trained_rate_hz is 20 Hz" in warning for warning in warnings) == is_warned


def test_rate_of_a_robot_that_does_not_know_its_trained_rate_is_not_warned_about() -> None:
    assert _warnings(robot={"trained_rate_hz": 0.0}, cycle={"action_rate_hz": 100.0}) == ()


def test_reserve_as_long_as_the_cycle_is_warned_about() -> None:
    (warning,) = _warnings(cycle={"reserve_ms": 250.0})
    assert "no text is ever decoded" in warning


def test_text_switched_off_is_not_checked() -> None:
    config = load_config(preset="libero", overrides={"text.enabled": False, "kv.row_capacity": 8}).config
    assert config.kv.row_capacity == 8
