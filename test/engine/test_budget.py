import random

import pytest
from fakes import MS

from oxygen_ros.engine.budget import AutoSteps, CycleBudget, FixedSteps, StepCostEstimator


def budget(time_ms=100, reserve_ms=10):
    return CycleBudget(cycle_id=1, start_ns=0, deadline_ns=time_ms * MS, reserve_ns=reserve_ms * MS)


def steps_run(policy, cost_ns, time_ms=100, reserve_ms=10, true_cost_ns=None):
    """Take steps as the engine does, the deadline looked at before each. Steps run, time at the end."""
    now_ns = num_done = 0
    while num_done < 1000 and policy.allows(num_done, cost_ns, budget(time_ms, reserve_ms), now_ns):
        now_ns += cost_ns if true_cost_ns is None else true_cost_ns
        num_done += 1
    return num_done, now_ns


def test_budget_keeps_its_reserve():
    assert budget().remaining_ns(30 * MS) == 60 * MS
    assert budget().fits(60 * MS, 30 * MS)
    assert not budget().fits(60 * MS + 1, 30 * MS)
    assert budget().remaining_ns(120 * MS) == -30 * MS
    assert not budget().fits(0, 120 * MS)


def test_budget_counts_steps_that_fit():
    assert budget().num_steps(20 * MS, 0) == 4
    assert budget().num_steps(90 * MS, 0) == 1
    assert budget().num_steps(91 * MS, 0) == 0
    assert budget().num_steps(10 * MS, 200 * MS) == 0
    assert budget().num_steps(0, 0) == 0


@pytest.mark.parametrize(("cost_ms", "steps"), [(20, 4), (30, 3), (90, 1), (91, 0), (7, 12)])
def test_auto_steps_are_the_floor_of_time_over_cost(cost_ms, steps):
    assert steps_run(AutoSteps(), cost_ms * MS) == (steps, steps * cost_ms * MS)


def test_auto_steps_are_zero_when_late_or_without_time():
    assert steps_run(AutoSteps(), 5 * MS, time_ms=10, reserve_ms=10)[0] == 0
    assert steps_run(AutoSteps(), 5 * MS, time_ms=0)[0] == 0
    assert steps_run(AutoSteps(), 0, time_ms=0)[0] == 0


def test_steps_that_cost_more_than_estimated_overrun_by_less_than_one():
    _, end_ns = steps_run(AutoSteps(), cost_ns=5 * MS, true_cost_ns=40 * MS)
    assert end_ns <= 100 * MS - 10 * MS + 40 * MS - 5 * MS


def test_fixed_steps_are_run_whatever_they_are_said_to_cost_but_none_begins_past_the_reserve():
    assert steps_run(FixedSteps(5), cost_ns=80 * MS, true_cost_ns=1 * MS)[0] == 5
    assert steps_run(FixedSteps(0), cost_ns=1 * MS)[0] == 0
    num_done, end_ns = steps_run(FixedSteps(5), cost_ns=40 * MS)
    assert num_done == 3  # begun at 0, 40 and 80 ms; the reserve begins at 90 ms
    assert end_ns - 90 * MS < 40 * MS


def test_estimate_is_a_high_quantile_and_not_the_mean_or_the_worst():
    estimator = StepCostEstimator(quantile=0.95, window=100)
    for cost in range(1, 101):
        estimator.observe(1, cost)
    assert estimator.estimate_ns(1) == 95


def test_estimate_begins_with_warm_up_and_follows_what_is_measured():
    estimator = StepCostEstimator(window=8)
    assert estimator.estimate_ns(1) == 0
    estimator.seed({1: (10, 12), 4: (20, 22)})
    assert (estimator.estimate_ns(1), estimator.estimate_ns(2), estimator.estimate_ns(4)) == (12, 22, 22)
    for _ in range(8):
        estimator.observe(3, 50)
    assert (estimator.estimate_ns(1), estimator.estimate_ns(4)) == (12, 50)
    for _ in range(8):
        estimator.observe(4, 5)  # the window is bounded: what is old is forgotten
    assert estimator.estimate_ns(4) == 5


def test_bucket_without_a_measure_costs_no_less_than_the_smaller_ones():
    estimator = StepCostEstimator()
    estimator.seed({1: (10,), 4: (30,), 8: ()})
    assert estimator.estimate_ns(8) == estimator.estimate_ns(100) == 30
    estimator.observe(100, 70)
    assert (estimator.estimate_ns(128), estimator.estimate_ns(129), estimator.estimate_ns(40)) == (70, 70, 30)
    bare = StepCostEstimator()
    bare.observe(8, 40)
    assert bare.estimate_ns(1) == 40  # better too dear than free


@pytest.mark.parametrize("seed", range(20))
def test_estimates_are_monotone_over_buckets_that_were_never_measured(seed):
    rng = random.Random(seed)
    estimator = StepCostEstimator()
    costs = sorted(rng.sample(range(1, 1000), 4))
    estimator.seed({n: (cost,) for n, cost in zip((1, 2, 8, 32), costs, strict=True) if rng.random() < 0.6})
    estimates = [estimator.estimate_ns(n) for n in range(1, 200)]
    assert estimates == sorted(estimates)


def test_one_stall_is_forgotten_step_by_step_but_never_the_last_measure():
    estimator = StepCostEstimator()
    estimator.seed({1: (10,), 2: (20, 500, 21)})
    estimator.forget_dearest(2)
    assert estimator.estimate_ns(2) == 21
    for _ in range(5):
        estimator.forget_dearest(2)
    assert estimator.estimate_ns(2) == 20
    estimator.observe(1, 900)
    assert estimator.estimate_ns(64) == 900  # it stands in for a bucket without measures
    estimator.forget_dearest(64)
    assert estimator.estimate_ns(64) == 20
