"""How requests come in, are refused, replaced and cancelled."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from fakes import MS, EngineBench, budget, inputs, layout, request, spec

from oxygen_ros.assembly.brain import text_tasks
from oxygen_ros.clock import SteadyClock
from oxygen_ros.config import load_config
from oxygen_ros.engine.budget import FixedSteps
from oxygen_ros.engine.engine import Engine
from oxygen_ros.engine.settings import EngineSettings, TextRules
from oxygen_ros.errors import ConfigError
from oxygen_ros.runners.fake import FakeCosts, FakeRunner
from oxygen_ros.text.byte_tokenizer import END_ID, ByteTokenizer
from oxygen_ros.types import MAX_PRIORITY, FinishReason, SamplingParams

ENDLESS = {"Q": [100, 101, 102]}  # never an end token


STEP = FakeCosts(decode_ns=10 * MS)


def fixed(num_steps, **changes):
    return EngineSettings(steps=FixedSteps(num_steps), **changes)


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
    assert bench.engine.is_alive("a")
    bench.frame()
    assert not bench.engine.is_alive("a")
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


@pytest.mark.parametrize("priority", [MAX_PRIORITY, -MAX_PRIORITY])
def test_any_priority_that_can_be_configured_is_run(priority):
    config = load_config(preset="libero", overrides={"text.tasks.memory.priority": priority}).config
    bench = EngineBench({"Memory: ": "ok"})
    bench.engine.submit(replace(text_tasks(config).ask("memory"), request_id="x"))
    bench.frame()
    assert bench.reason("x") is FinishReason.STOP


@pytest.mark.parametrize("priority", [MAX_PRIORITY + 1, -MAX_PRIORITY - 1])
def test_priority_that_the_engine_refuses_cannot_be_configured(priority):
    with pytest.raises(ConfigError, match=r"text\.tasks\.memory\.priority"):
        load_config(preset="libero", overrides={"text.tasks.memory.priority": priority})


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
