import numpy as np
import pytest
import torch

from oxygen_ros.models.flow_matching import TimeGrid, integrate, step_times


@pytest.mark.parametrize("grid", TimeGrid)
@pytest.mark.parametrize("num_steps", [*range(1, 11), 12, 15, 20, 25, 30, 50])
def test_times_start_at_one_fall_evenly_and_stop_before_zero(grid, num_steps):
    times = step_times(num_steps, grid)
    assert times.dtype == np.float32
    assert len(times) == num_steps
    assert times[0] == 1.0
    np.testing.assert_allclose(times, 1 - np.arange(num_steps) / num_steps, atol=1e-5)
    assert times[-1] > 0.5 / num_steps


def test_accumulated_times_are_sums_of_float32_steps():
    times = step_times(10, TimeGrid.ACCUMULATED)
    assert times[5] != np.float32(0.5)
    assert times[1] == np.float32(1.0) + np.float32(-0.1)


def test_no_steps_are_refused():
    with pytest.raises(ValueError, match="at least one"):
        step_times(0, TimeGrid.EXACT)


def test_integration_of_a_constant_field_arrives_whatever_the_number_of_steps():
    noise, action = torch.randn(2, 4, 3)
    for num_steps in (1, 7, 10):
        seen = []
        arrived = integrate(noise, num_steps, lambda x, i, seen=seen: (seen.append(i), noise - action)[1])
        torch.testing.assert_close(arrived, action, atol=1e-5, rtol=0)
        assert seen == list(range(num_steps))
