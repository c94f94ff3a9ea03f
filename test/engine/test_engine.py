import threading
from dataclasses import replace

import numpy as np
import pytest
from fakes import MS, EngineBench, budget, inputs, layout, request, spec

from oxygen_ros.clock import SteadyClock
from oxygen_ros.engine.budget import FixedSteps
from oxygen_ros.engine.engine import Engine
from oxygen_ros.engine.settings import EngineSettings, TextRules
from oxygen_ros.errors import ContractError, RunnerError
from oxygen_ros.models.protocol import ExpertSpec
from oxygen_ros.runners.fake import FakeCosts, FakeRunner
from oxygen_ros.text.byte_tokenizer import END_ID, ByteTokenizer
from oxygen_ros.types import FinishReason, SamplingParams

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


def test_cancel_ends_texts_by_id_by_task_and_all():
    bench = EngineBench(ENDLESS, settings=fixed(1))
    for name, task in (("a", "ask"), ("b", "ask"), ("m", "memory"), ("s", "subtask")):
        bench.engine.submit(request(name, task=task))
    bench.frame()
    assert bench.engine.cancel("nobody") == 0
    assert bench.engine.cancel("a", task="memory") == 1  # the id counts
    assert bench.engine.cancel("a") == 0  # it was hit already
    assert bench.engine.cancel(task="memory") == 1
    bench.decode()
    assert [bench.reason(name) for name in "ambs"] == [FinishReason.CANCELLED] * 2 + [None] * 2
    assert bench.engine.cancel() == 2
    bench.decode()
    assert [bench.reason(name) for name in "bs"] == [FinishReason.CANCELLED] * 2
    assert bench.engine.memory().rows_used == 0
    assert bench.engine.cancel() == 0


def test_cancel_between_two_steps_of_a_round_frees_at_once():
    bench = EngineBench(ENDLESS, settings=fixed(4, steps_per_round=4))
    step = bench.runner.decode_step

    def cancel_after_second_step(rows):
        step(rows)
        if bench.verbs().count("decode_step") == 2:
            bench.engine.cancel("a")

    bench.runner.decode_step = cancel_after_second_step
    bench.engine.submit(request("a"))
    bench.engine.submit(request("b"))
    bench.frame()
    assert [len(call.rows) for call in bench.calls if call.verb == "decode_step"] == [2, 2, 1, 1]
    assert [d.text for d in bench.deltas["a"]] == [""]
    assert bench.deltas["a"][0].detail == "cancelled on request"
    assert bench.deltas["b"][-1].num_tokens == 4
    assert bench.engine.memory().rows_used == 1


def test_id_can_be_used_again_only_after_its_final_delta():
    bench = EngineBench({"Q": "ab"})
    assert bench.engine.submit(request("a")) is None
    assert bench.engine.submit(request("a")).startswith("duplicate_id: ")
    assert bench.engine.submit(request("")).startswith("no_id: ")
    bench.frame()
    assert [d.is_final for d in bench.deltas["a"]] == [True]
    assert bench.engine.submit(request("a")) is None
    bench.frame()
    assert sum(d.is_final for d in bench.deltas["a"]) == 2
    assert bench.engine.refusals() == {"text_duplicate_id": 1, "text_no_id": 1}


NAN = float("nan")
REFUSED = {
    "too_long": (
        request("x", "p" * 90, 8),
        "90 prompt tokens and 8 written ones need 97 places, a row has 96",
    ),
    "max_tokens": (request("x", max_tokens=0), "max_tokens is 0, allowed are 1 to 97"),
    "sampling": (request("x", sampling=SamplingParams(temperature=NAN)), "temperature nan"),
    "priority": (request("x", priority=101), "priority 101 is outside -100..100"),
    "max_age": (request("x", max_age_ns=0), "max_age is 0 ns"),
    "not_unicode": (request("x", "ab\ud800"), "not valid Unicode at character 2"),
}


@pytest.mark.parametrize("code", REFUSED)
def test_request_that_can_never_run_is_refused_with_its_reason_in_words(code):
    asked, words = REFUSED[code]
    bench = EngineBench()
    assert bench.engine.submit(asked) is None
    bench.frame()
    (final,) = bench.deltas["x"]
    assert (final.finish_reason, final.seq, final.observation_id) == (FinishReason.REFUSED, 0, 0)
    assert final.detail.startswith(f"{code}: ")
    assert words in final.detail
    assert bench.engine.refusals() == {f"text_{code}": 1}
    assert bench.verbs() == ["prefill", "sample_actions"]


def test_limits_of_the_configuration_are_refused_by_name():
    rules = TextRules(max_prompt_tokens=4, max_tokens=10)
    bench = EngineBench({"Q": "ok"}, settings=EngineSettings(rules=rules))
    bench.engine.submit(request("long", "QQQQQ", 10))
    bench.engine.submit(request("many", max_tokens=11))
    bench.engine.submit(request("fits", max_tokens=10))
    bench.frame()
    assert bench.detail("long") == "too_long: 5 prompt tokens, the limit is 4"
    assert bench.detail("many") == "max_tokens: max_tokens is 11, allowed are 1 to 10"
    assert bench.reason("fits") is FinishReason.STOP
    off = EngineBench(settings=EngineSettings(rules=TextRules(is_enabled=False)))
    off.engine.submit(request("x"))
    off.frame()
    assert off.detail("x") == "text_off: text is switched off by configuration"


def test_longest_request_that_fits_is_run():
    bench = EngineBench({"p" * 89: [100]})
    bench.engine.submit(request("x", "p" * 89, 8))
    bench.frame()
    assert (bench.reason("x"), bench.deltas["x"][-1].num_tokens) == (FinishReason.LENGTH, 8)


def test_huge_prompt_is_refused_without_being_tokenised():
    bench = EngineBench()
    bench.tokenizer.encode = None  # any call fails
    bench.engine.submit(request("x", "p" * 10_000))
    bench.frame()
    assert bench.detail("x") == "too_long: 10000 characters of prompt, a row has 96 places"


def test_model_or_memory_without_text_refuses_by_name():
    silent = EngineBench(model=spec(supports_text=False))
    silent.engine.submit(request("x"))
    silent.frame()
    assert silent.detail("x") == "no_language: this fake checkpoint has no language head"
    for memory in (layout(num_prefixes=1), layout(num_rows=0)):
        bench = EngineBench(memory=memory)
        bench.engine.submit(request("x"))
        bench.frame()
        assert bench.detail("x").startswith("no_memory: the memory has ")


def test_vocabulary_that_the_model_lacks_is_refused():
    bench = EngineBench(model=spec(vocab_size=100))
    bench.engine.prefill(replace(inputs(1), token_ids=np.array([5])), 0)
    bench.engine.submit(request("x", "Q~"))
    bench.decode()
    assert bench.detail("x") == "not_in_vocabulary: prompt token 129 is outside 0..99"


def test_flood_of_requests_is_bounded_and_told_to_the_caller():
    bench = EngineBench(settings=EngineSettings(max_waiting=2), memory=layout(num_rows=1))
    answers = [bench.engine.submit(request(f"r{n}")) for n in range(20)]
    assert answers.count(None) == 3  # the waiting list and the rows
    assert answers[-1] == "flood: 3 requests of 'ask' came within one cycle, the most allowed"
    others = [bench.engine.submit(request(f"m{n}", task="memory")) for n in range(20)]
    assert others.count(None) == 3  # a flood of one task leaves room for another
    assert bench.engine.submit(request("s", task="subtask")).startswith("flood: ")
    bench.frame()
    assert len(bench.deltas) == 6
    assert bench.engine.submit(request("later")) is None


def test_superseded_expired_and_overflowing_texts_end_once_and_free_their_memory():
    bench = EngineBench(ENDLESS, settings=fixed(1, max_waiting=1), memory=layout(num_rows=1), costs=STEP)
    bench.engine.submit(request("m-1", task="memory", is_superseding=True))
    bench.frame()
    bench.engine.submit(request("m-2", task="memory", is_superseding=True, supersede_running=True))
    bench.engine.submit(request("a", max_age_ns=15 * MS))
    bench.engine.submit(request("b"))
    bench.frame()
    assert bench.reason("m-1") is FinishReason.SUPERSEDED
    assert bench.detail("m-1") == "superseded: replaced by m-2"
    assert bench.detail("b").startswith("queue_full: ")
    bench.frame()
    bench.frame()
    assert bench.reason("a") is FinishReason.EXPIRED
    assert bench.detail("a") == "expired: 0.02 s old while waiting, limit 0.01 s"
    assert bench.engine.memory().rows_used == 1
    assert all(sum(d.is_final for d in deltas) <= 1 for deltas in bench.deltas.values())


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


@pytest.mark.parametrize("verb", ["prefill", "sample_actions", "decode_step", "read_tokens"])
def test_runner_fault_ends_every_text_once_and_the_engine_goes_on(verb):
    bench = EngineBench(ENDLESS, settings=fixed(2), memory=layout(num_rows=1))
    for name in "ab":  # one runs, one waits
        bench.engine.submit(request(name))
    bench.frame()
    bench.runner.fail_next(verb, "device lost")
    with pytest.raises(RunnerError, match="device lost"):
        bench.frame()
    bench.collect()
    for name in "ab":
        assert [d.finish_reason for d in bench.deltas[name] if d.is_final] == [FinishReason.ERROR]
        assert "device lost" in bench.detail(name)
    assert (bench.engine.memory().rows_used, bench.engine.memory().prefixes_used) == (0, 0)
    bench.engine.submit(request("c"))
    bench.frame()
    assert bench.deltas["c"][-1].num_tokens == 2
    assert len(bench.deltas["a"]) == 2  # one with two tokens, the final one


def test_tokens_of_a_round_that_broke_off_are_not_given_to_the_next_text():
    bench = EngineBench({"Q": "abcdef", "R": "xyz"}, settings=fixed(2))
    bench.engine.submit(request("a"))
    bench.runner.fail_next("read_tokens")
    with pytest.raises(RunnerError):
        bench.frame()
    bench.engine.submit(request("c", "R"))
    bench.frame()
    bench.frame()
    assert bench.text("c") == "xyz"


def test_actions_that_are_not_finite_are_a_fault():
    bench = EngineBench()
    bench.engine.prefill(inputs(1), 0)
    sample = bench.runner.sample_actions
    bench.runner.sample_actions = lambda *about: sample(*about) * NAN
    with pytest.raises(RunnerError, match="actions_not_finite"):
        bench.engine.act("default", 0)
    assert bench.engine.memory().prefixes_used == 0


def test_reset_ends_all_texts_as_cancelled_also_those_that_just_came():
    bench = EngineBench(ENDLESS, settings=fixed(1), memory=layout(num_rows=1))
    bench.engine.submit(request("a"))
    bench.frame()
    bench.engine.submit(request("b"))
    bench.engine.reset("deactivated")
    bench.collect()
    assert [(bench.reason(n), bench.detail(n)) for n in "ab"] == [(FinishReason.CANCELLED, "deactivated")] * 2
    assert bench.engine.memory().prefixes_used == 0
    bench.frame()


def test_several_experts_read_one_prefix():
    experts = (ExpertSpec("arm", 10, 4), ExpertSpec("base", 6, 2))
    bench = EngineBench(model=spec(experts=experts))
    bench.engine.prefill(inputs(1), 0)
    arm, base = bench.engine.act("arm", 0), bench.engine.act("base", 0)
    assert (arm.shape, base.shape) == ((10, 4), (6, 2))
    assert bench.verbs() == ["prefill", "sample_actions", "sample_actions"]
    assert len({call.prefix_slot for call in bench.calls}) == 1


def test_submit_and_cancel_from_many_threads_lose_and_double_nothing():
    clock, tokenizer = SteadyClock(), ByteTokenizer()
    runner = FakeRunner(spec(), layout(num_rows=4), clock, tokenizer, script={"Q": [*range(50, 60), END_ID]})
    engine = Engine(runner, tokenizer, clock, EngineSettings(max_waiting=8))
    taken, stop = [], threading.Event()

    def ask(thread):
        num_taken = 0
        while num_taken < 60:  # a flood is refused: only the control thread's progress ends this
            request_id = f"{thread}-{num_taken}"
            if engine.submit(request(request_id)) is None:
                taken.append(request_id)
                num_taken += 1
                if num_taken % 3 == 0:
                    engine.cancel(request_id)

    threads = [threading.Thread(target=ask, args=(n,), daemon=True) for n in range(4)]
    waiter = threading.Thread(target=lambda: [[t.join() for t in threads], stop.set()], daemon=True)
    for thread in [*threads, waiter]:
        thread.start()
    deltas, frame = [], 0
    while not stop.is_set() or engine.num_waiting or engine.memory().rows_used:
        frame += 1
        engine.prefill(inputs(frame), frame)
        engine.decode(budget(now_ns=clock.now_ns()))
        deltas += engine.take_deltas()
        engine.check_integrity()
    waiter.join()
    engine.decode(budget(now_ns=clock.now_ns()))
    deltas += engine.take_deltas()
    finals = [delta.request_id for delta in deltas if delta.is_final]
    assert len(taken) == 240
    assert sorted(finals) == sorted(taken)
    last = {delta.request_id: index for index, delta in enumerate(deltas)}
    assert all(deltas[index].is_final for index in last.values())
    assert engine.cancel() == 0
