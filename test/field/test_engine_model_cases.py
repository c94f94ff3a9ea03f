"""Cases of the field that need a real model under the engine: a tiny random pi0.5, eager, float32."""

import gc
import os

import numpy as np
import pytest
import tiny_pi05
import torch
from fakes import budget, request

from oxygen_ros.clock import SimClock
from oxygen_ros.engine.budget import FixedSteps
from oxygen_ros.engine.engine import Engine
from oxygen_ros.engine.settings import EngineSettings
from oxygen_ros.errors import ContractError, RunnerError
from oxygen_ros.runners.protocol import BatchRow
from oxygen_ros.types import FinishReason, SamplingParams

PAGE = os.sysconf("SC_PAGE_SIZE")


def engine_on(runner, num_steps=4):
    settings = EngineSettings(steps=FixedSteps(num_steps))
    return Engine(runner, tiny_pi05.NumberTokenizer(), SimClock(), settings)


def frame(engine, number):
    engine.prefill(tiny_pi05.inputs(number), number)
    engine.act("arm", number)
    engine.decode(budget())


def rss_bytes():
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * PAGE


def test_b40_actions_after_three_texts_are_bit_equal_and_the_prefix_is_unchanged():
    runner = tiny_pi05.runner()
    engine = engine_on(runner, num_steps=100)
    engine.prefill(tiny_pi05.inputs(4), 0)
    before = runner.memory.prefix_checksums(0, tiny_pi05.num_tokens(4))
    first = [engine.act(expert, seed=9) for expert in ("arm", "base", "arm")]
    for n, length in enumerate((0, 5, 12)):
        engine.submit(request(f"r{n}", tiny_pi05.prompt(n, length), 20))
    engine.decode(budget())
    again = [engine.act(expert, seed=9) for expert in ("arm", "base", "arm")]
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one, other)
        assert not np.shares_memory(one, other)
    assert runner.memory.prefix_checksums(0, tiny_pi05.num_tokens(4)) == before
    assert sum(delta.is_final for delta in engine.take_deltas()) == 3


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="resident memory is read from /proc")
def test_b41_resident_memory_stands_still_over_500_frames_with_text():
    runner = tiny_pi05.runner()
    engine = engine_on(runner, num_steps=3)
    resident = {}
    tensors = [tensor.data_ptr() for tensor in (runner.memory.prefix_k, runner.memory.row_k)]
    for number in range(1, 501):
        engine.submit(request(f"r{number}", tiny_pi05.prompt(number, number % 9), 6))
        frame(engine, number)
        engine.take_deltas()
        if number in (50, 500):
            gc.collect()
            resident[number] = rss_bytes()
    assert runner.memory.num_bytes == engine.memory().kv_bytes
    assert tensors == [tensor.data_ptr() for tensor in (runner.memory.prefix_k, runner.memory.row_k)]
    assert (resident[500] - resident[50]) / 450 < 20_000


@torch.inference_mode()
def decode_once(runner, num_rows, length, num_tokens):
    """One step of so many rows that have written so much."""
    rows = [BatchRow(row, 0, num_tokens, length - 1, (), length, SamplingParams()) for row in range(num_rows)]
    runner.decode_step(rows)
    runner.read_tokens()


def test_b43_no_compilation_after_warm_up_for_any_batch_and_length():
    runner = tiny_pi05.runner(num_rows=8)
    runner.warm_up()
    num_tokens = runner.prefill(tiny_pi05.inputs(1), 0)
    for num_rows in range(1, 9):
        for length in range(1, 65):
            decode_once(runner, num_rows, length, num_tokens)
    assert runner.num_compilations == 0


def test_b43_counter_sees_a_shape_that_warm_up_forgot(monkeypatch):
    """The counter is a real one: here is a model that compiles its head for each number of rows."""
    runner = tiny_pi05.runner(num_rows=4)
    compiled = torch.compile(runner.model.logits, backend="eager", dynamic=False)
    monkeypatch.setattr(runner.model, "logits", compiled)
    runner._row_buckets = (1, 2)
    runner.warm_up()
    num_tokens = runner.prefill(tiny_pi05.inputs(1), 0)
    for num_rows in (1, 2, 4):
        decode_once(runner, num_rows, 5, num_tokens)
    assert runner.num_compilations == 0
    decode_once(runner, 3, 5, num_tokens)
    assert runner.num_compilations == 1


def test_b49_compiler_that_fails_is_named_with_its_cause_in_one_line(monkeypatch):
    """Torch's text begins with a line that names no cause; the runner gave that one alone."""

    def ptxas(graph, inputs):
        raise RuntimeError(
            "PTXAS error: Internal Triton PTX codegen error\n`ptxas` stderr:\n"
            "ptxas fatal   : Value 'sm_110a' is not defined for option 'gpu-name'\n"
        )

    runner = tiny_pi05.runner()
    monkeypatch.setattr(runner.model, "logits", torch.compile(runner.model.logits, backend=ptxas))
    with pytest.raises(RunnerError) as caught:
        runner.warm_up()
    assert caught.value.code == "runner_failed"
    assert "ptxas fatal   : Value 'sm_110a' is not defined" in caught.value.message
    assert "\n" not in str(caught.value)


def test_fault_without_words_is_named_by_its_kind(monkeypatch):
    """It was an IndexError."""

    def silent(*_):
        raise RuntimeError

    runner = tiny_pi05.runner()
    monkeypatch.setattr(runner.model, "logits", silent)
    with pytest.raises(RunnerError, match="RuntimeError"):
        runner.warm_up()


def test_b44_every_shape_that_is_let_in_runs_and_the_one_above_is_refused():
    engine = engine_on(tiny_pi05.runner(num_rows=8, row_capacity=32), num_steps=100)
    engine.warm_up()
    for number in range(1, 34):
        engine.submit(request(f"r{number}", tiny_pi05.prompt(number, number), 1))
        frame(engine, number)
    ends = {delta.request_id: delta for delta in engine.take_deltas() if delta.is_final}
    assert ends.pop("r33").detail.startswith("too_long: 33 prompt tokens and 1 written ones need 33 places")
    assert {delta.finish_reason for delta in ends.values()} <= {FinishReason.LENGTH, FinishReason.STOP}
    assert len(ends) == 32


def test_logits_that_are_not_finite_end_their_text_alone_and_the_row_is_clean_afterwards():
    def play(spoil):
        runner = tiny_pi05.runner(num_prefixes=3, num_rows=2)
        engine = engine_on(runner, num_steps=2)
        engine.submit(request("good", tiny_pi05.prompt(1, 4), 12))
        frame(engine, 1)
        engine.submit(request("bad", tiny_pi05.prompt(2, 4), 12))
        frame(engine, 2)
        if spoil:
            runner.memory.row_k[:, 1, :, :2] = float("nan")
        frame(engine, 3)
        engine.cancel("bad")
        frame(engine, 4)
        engine.submit(request("next", tiny_pi05.prompt(3, 4), 6))
        for number in range(5, 12):
            frame(engine, number)
        texts = {}
        for delta in engine.take_deltas():
            texts[delta.request_id] = texts.get(delta.request_id, "") + delta.text
            if delta.request_id == "bad" and delta.is_final:
                reason = delta.finish_reason
        engine.check_integrity()
        return texts, reason

    clean, spoilt = play(spoil=False), play(spoil=True)
    assert (clean[1], spoilt[1]) == (FinishReason.CANCELLED, FinishReason.ERROR)
    assert {name: spoilt[0][name] for name in ("good", "next")} == {
        name: clean[0][name] for name in ("good", "next")
    }


def test_prefix_that_is_not_finite_is_a_fault_that_the_next_frame_recovers_from():
    runner = tiny_pi05.runner()
    engine = engine_on(runner)
    frame(engine, 1)
    bad = tiny_pi05.inputs(2)
    bad.images[:] = np.nan
    with pytest.raises((RunnerError, ContractError)):
        engine.prefill(bad, 2)
    engine.check_integrity()
    frame(engine, 3)
    expected = engine.act("arm", 3)
    other = engine_on(tiny_pi05.runner())
    frame(other, 3)
    assert np.array_equal(other.act("arm", 3), expected)
