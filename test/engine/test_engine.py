from dataclasses import replace

import numpy as np
import pytest
from fakes import MS, EngineBench, inputs, layout, request, spec

from oxygen_ros.engine.budget import FixedSteps
from oxygen_ros.engine.settings import EngineSettings
from oxygen_ros.errors import ContractError
from oxygen_ros.models.protocol import ExpertSpec
from oxygen_ros.runners.fake import FakeCosts
from oxygen_ros.text.byte_tokenizer import ByteTokenizer
from oxygen_ros.types import FinishReason

ENDLESS = {"Q": [100, 101, 102]}  # never an end token
STEP = FakeCosts(decode_ns=10 * MS)


def fixed(num_steps, **changes):
    return EngineSettings(steps=FixedSteps(num_steps), **changes)


def test_text_is_born_on_the_prefix_of_its_admission_and_says_so():
    bench = EngineBench({"Q": "left"}, settings=fixed(2))
    bench.frame()
    bench.engine.submit(request("a"))
    for _ in range(3):
        bench.frame()
    assert bench.text("a") == "left"
    assert bench.reason("a") is FinishReason.STOP
    assert {(d.observation_id, d.stamp_ns) for d in bench.deltas["a"]} == {(2, 200 * MS)}
    assert [d.seq for d in bench.deltas["a"]] == list(range(len(bench.deltas["a"])))
    assert all(d.text for d in bench.deltas["a"][:-1])


def test_first_step_feeds_the_suffix_prompt_and_later_ones_one_token():
    bench = EngineBench({"Memory: ": "ab"}, settings=fixed(9))
    bench.engine.submit(request("a", "Memory: "))
    bench.frame()
    rows = [row for call in bench.calls for row in call.rows]
    assert rows[0].new_token_ids == tuple(ByteTokenizer().encode("Memory: "))
    assert [(len(r.new_token_ids), r.suffix_tokens, r.tokens_written) for r in rows[:3]] == [
        (8, 0, 0),
        (0, 8, 1),
        (0, 9, 2),
    ]


def test_without_suffix_prompt_the_row_is_empty_until_the_second_step():
    bench = EngineBench({"": "abc"}, settings=fixed(9))
    bench.engine.submit(request("a", ""))
    bench.frame()
    rows = [row for call in bench.calls for row in call.rows]
    assert [(row.suffix_tokens, row.tokens_written) for row in rows[:3]] == [(0, 0), (0, 1), (1, 2)]
    assert bench.text("a") == "abc"


def test_tokens_are_read_once_per_round():
    bench = EngineBench(ENDLESS, settings=fixed(10, steps_per_round=4))
    bench.engine.submit(request("a", max_tokens=50))
    bench.frame()
    assert bench.verbs().count("decode_step") == 10
    assert bench.verbs().count("read_tokens") == 3
    assert bench.outcome.num_tokens == bench.deltas["a"][-1].num_tokens == 10


def test_row_at_its_limit_is_not_stepped_further_within_a_round():
    bench = EngineBench(ENDLESS, settings=fixed(8, steps_per_round=8), memory=layout(row_capacity=4))
    bench.engine.submit(request("short", max_tokens=2))
    bench.engine.submit(request("long", max_tokens=4))
    bench.frame()  # the fake runner refuses a row that is written past its end
    assert [len(call.rows) for call in bench.calls if call.verb == "decode_step"] == [2, 2, 1, 1]
    assert bench.deltas["short"][-1].num_tokens == 2
    assert bench.reason("long") is FinishReason.LENGTH


def test_rows_that_became_free_are_filled_within_the_same_cycle():
    bench = EngineBench({"Q": "ab"}, settings=fixed(8), memory=layout(num_rows=1))
    for name in "abc":
        bench.engine.submit(request(name))
    bench.frame()
    assert [bench.reason(name) for name in "ab"] == [FinishReason.STOP] * 2
    assert (bench.engine.memory().rows_used, bench.engine.num_waiting) == (1, 0)  # "c" has begun
    bench.frame()
    assert bench.reason("c") is FinishReason.STOP


def test_second_prefill_of_one_observation_does_nothing():
    bench = EngineBench()
    for _ in range(3):
        bench.engine.prefill(inputs(7), 0)
    assert bench.verbs() == ["prefill"]
    assert bench.engine.num_prefills == 1


def test_prefix_slot_returns_with_the_last_text_on_it():
    bench = EngineBench(ENDLESS, settings=fixed(1))
    bench.engine.submit(request("a", max_tokens=2))
    bench.engine.submit(request("b", max_tokens=4))
    used = []
    for _ in range(5):
        bench.frame()
        used.append(bench.engine.memory().prefixes_used)
    assert used == [1, 2, 2, 1, 1]  # "a" ends in frame 2, "b" in frame 4: only the current one is left


def test_act_needs_a_prefix():
    with pytest.raises(ContractError, match="prefill first"):
        EngineBench().engine.act("default", 0)


def test_actions_are_copies_and_equal_for_equal_seeds():
    bench = EngineBench()
    bench.engine.prefill(inputs(1), 0)
    first, again = (bench.engine.act("default", 5) for _ in range(2))
    assert first.dtype == np.float32
    assert first.shape == (10, 4)
    assert np.array_equal(first, again)
    assert not np.shares_memory(first, again)
    assert not np.array_equal(first, bench.engine.act("default", 6))


@pytest.mark.parametrize("token_id", [-1, 320])
def test_prompt_token_outside_the_vocabulary_is_refused_before_the_runner_sees_it(token_id):
    bench = EngineBench(ENDLESS, settings=fixed(1))
    bench.engine.submit(request("a"))
    bench.frame()
    bad = replace(inputs(2), token_ids=np.array([5, token_id]))
    with pytest.raises(ContractError, match="token_range"):
        bench.engine.prefill(bad, 0)
    assert bench.verbs().count("prefill") == 1
    bench.decode()
    assert bench.deltas["a"][-1].num_tokens == 2  # texts of older frames go on
    bench.frame()


def test_auto_budget_takes_exactly_the_steps_that_fit():
    bench = EngineBench(ENDLESS, costs=STEP)
    bench.engine.submit(request("a", max_tokens=90))
    bench.frame(time_ns=95 * MS, reserve_ns=10 * MS)
    assert (bench.outcome.num_steps, bench.outcome.num_steps_possible) == (8, 8)
    bench.decode(time_ns=5 * MS)
    assert (bench.outcome.num_steps, bench.outcome.num_steps_possible) == (0, 0)
    bench.decode(time_ns=-1)
    assert bench.outcome.num_steps == 0


def test_cost_is_learnt_per_number_of_rows():
    bench = EngineBench(ENDLESS, costs=FakeCosts(decode_ns=10 * MS, decode_token_ns=5 * MS))
    bench.engine.submit(request("a", max_tokens=90))
    bench.frame(time_ns=60 * MS)
    assert bench.outcome.num_steps == 4
    for name in "bcd":
        bench.engine.submit(request(name, max_tokens=80))
    bench.frame(time_ns=60 * MS)
    assert bench.outcome.num_steps == 2  # 30 ms for four rows


def test_one_stall_does_not_silence_the_texts_for_good():
    bench = EngineBench(ENDLESS, costs=STEP)
    bench.engine.submit(request("a", max_tokens=90))
    step = bench.runner.decode_step

    def stall_once(rows):
        step(rows)
        bench.clock.advance_ns(500 * MS)
        bench.runner.decode_step = step

    bench.runner.decode_step = stall_once
    bench.frame(time_ns=50 * MS)
    assert bench.outcome.num_steps == 1
    bench.frame(time_ns=50 * MS)
    assert bench.outcome.num_steps == 0  # the stall is the dearest of two measures
    bench.frame(time_ns=50 * MS)
    assert bench.outcome.num_steps == 5


def test_steps_that_never_fit_are_not_taken_all_the_same():
    bench = EngineBench(ENDLESS, costs=STEP)
    bench.engine.submit(request("a", max_tokens=90))
    for _ in range(20):
        bench.frame(time_ns=9 * MS)
        assert bench.outcome.num_steps == 0


def test_several_experts_read_one_prefix():
    experts = (ExpertSpec("arm", 10, 4), ExpertSpec("base", 6, 2))
    bench = EngineBench(model=spec(experts=experts))
    bench.engine.prefill(inputs(1), 0)
    arm, base = bench.engine.act("arm", 0), bench.engine.act("base", 0)
    assert (arm.shape, base.shape) == ((10, 4), (6, 2))
    assert bench.verbs() == ["prefill", "sample_actions", "sample_actions"]
    assert len({call.prefix_slot for call in bench.calls}) == 1
