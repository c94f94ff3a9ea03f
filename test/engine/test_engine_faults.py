"""What is left of an engine whose runner failed, or that was reset."""

import pytest
from fakes import EngineBench, inputs, layout, request

from oxygen_ros.engine.budget import FixedSteps
from oxygen_ros.engine.settings import EngineSettings
from oxygen_ros.errors import RunnerError
from oxygen_ros.types import FinishReason

ENDLESS = {"Q": [100, 101, 102]}  # never an end token


def fixed(num_steps, **changes):
    return EngineSettings(steps=FixedSteps(num_steps), **changes)


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
    bench.runner.sample_actions = lambda *about: sample(*about) * float("nan")
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
