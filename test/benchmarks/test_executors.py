"""Executors on the tiny model: equal outputs, and a check that notices when they are not."""

from dataclasses import replace

import numpy as np
import pytest
from bench_lab import tiny_lab

from benchmarks.ablations import ABLATIONS, ablated
from benchmarks.equality import check_equality, compare_records
from benchmarks.lab import EXECUTORS
from benchmarks.rounds import run_rounds
from benchmarks.workloads import make_jobs


def jobs_of(lab, num_more=1):
    return make_jobs(lab.workload, lab.config, lab.workload.cycles_until_steady + num_more)


@pytest.mark.parametrize("name", [name for name in EXECUTORS if name != "oxygen"])
def test_every_executor_gives_the_tokens_and_actions_of_ours(name):
    lab = tiny_lab()
    found = check_equality(lab.oxygen(), lab.executor(name), jobs_of(lab))
    assert found.holds
    assert found.num_tokens >= 20
    assert found.num_distinct_tokens > 3


@pytest.mark.parametrize("name", ["reference", "isolated"])
def test_texts_with_suffix_prompts_equal_texts_with_a_prefill_of_their_own(name):
    lab = tiny_lab("W6")
    found = check_equality(lab.oxygen(), lab.executor(name), jobs_of(lab))
    assert found.holds
    assert found.num_texts >= 6


def test_two_experts_give_two_equal_chunks():
    lab = tiny_lab("E2")
    found = check_equality(lab.oxygen(), lab.executor("reference"), jobs_of(lab, 0))
    assert found.holds
    assert found.num_chunks == 2 * lab.workload.cycles_until_steady


def test_one_other_token_or_action_voids_the_comparison():
    lab = tiny_lab()
    records = [lab.oxygen().run(job) for job in jobs_of(lab)[:1]]
    assert compare_records(records, records).holds
    moved = replace(records[0], actions={"default": records[0].actions["default"] + 2e-4})
    assert not compare_records(records, [moved]).holds
    lab = tiny_lab(steps_per_cycle=10)
    record = lab.oxygen().run(jobs_of(lab)[0])
    text = record.finished[0]
    other = replace(text, token_ids=(*text.token_ids[:-1], (text.token_ids[-1] + 1) % 512))
    assert not compare_records([record], [replace(record, finished=(other,))]).holds


def test_rounds_run_all_executors_and_leave_out_the_warm_up():
    lab = tiny_lab()
    executors = [lab.executor(name) for name in ("isolated", "oxygen")]
    jobs = jobs_of(lab, 4)
    records = run_rounds(executors, jobs, len(jobs) - 4, lambda text: None, ("isolated",), 2)
    assert {name: len(r) for name, r in records.items()} == {"isolated": 2, "oxygen": 4}
    assert {r.rows for r in records["oxygen"]} == {lab.workload.steady_rows}


@pytest.mark.parametrize("ablation", ABLATIONS, ids=lambda a: a.feature)
def test_taking_a_feature_away_changes_no_output(ablation):
    lab = tiny_lab()
    found = check_equality(lab.oxygen(), ablated(lab, "ablated", [ablation]), jobs_of(lab))
    if ablation.changes_outputs:
        assert not found.holds
    else:
        assert found.holds


def test_isolated_waits_for_no_text_and_the_reference_for_all():
    lab = tiny_lab()
    job = jobs_of(lab)[0]
    first, last = (lab.executor(name).run(job) for name in ("isolated", "reference"))
    assert first.action_latency_ns < first.wall_ns
    assert last.action_latency_ns == last.wall_ns
    np.testing.assert_allclose(first.actions["default"], last.actions["default"], atol=1e-5)
