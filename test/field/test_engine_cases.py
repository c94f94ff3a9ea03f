"""Cases of the field that the engine and the control cycle decide, by their ids, on the fake runner."""

import gc
import random
import sys
from dataclasses import replace

import numpy as np
import pytest
from fakes import COSTS, MS, SETTINGS, CycleBench, EngineBench, Source, layout, observation, request

from oxygen_ros.assembly import build_brain
from oxygen_ros.clock import SimClock
from oxygen_ros.config import load_config
from oxygen_ros.engine.budget import FixedSteps
from oxygen_ros.engine.settings import EngineSettings
from oxygen_ros.errors import ConfigError
from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.runners.fake import FakeCosts
from oxygen_ros.runners.protocol import WarmUp
from oxygen_ros.runtime.control_cycle import Numbering
from oxygen_ros.types import FinishReason

ENDLESS = {"Q": [100, 101, 102]}


def fixed(num_steps, **changes):
    return EngineSettings(steps=FixedSteps(num_steps), **changes)


# Chunks and timing ------------------------------------------------------------------------------------


def test_b29_first_call_is_slow_and_later_chunks_do_not_say_so():
    costs = FakeCosts(prefill_ns=100 * MS, act_ns=200 * MS, first_call_ns=400 * MS)
    settings = replace(SETTINGS, period_ns=333 * MS, execute_horizon=10)
    source = Source(make=lambda n: observation(n, actions_played=10 * (n - 1)))
    bench = CycleBench(costs=costs, cycle_settings=settings, source=source)
    bench.run(11)
    latencies = [chunk.latency_ns // MS for chunk in bench.sinks.chunks]
    assert latencies == [700] + [300] * 10
    assert [chunk.actions_played for chunk in bench.sinks.chunks] == [10 * n for n in range(11)]
    assert bench.sinks.reports[-1].deadline_misses == 1


@pytest.mark.parametrize("jitter_seed", [1, 2, 3])
def test_b32_actions_do_not_depend_on_how_long_anything_took(jitter_seed):
    def play(costs):
        bench = CycleBench(ENDLESS, costs=costs, source=Source([observation(n) for n in range(1, 31)]))
        bench.engine.submit(request("a", max_tokens=20))
        bench.run(30)
        text = "".join(delta.text for delta in bench.sinks.deltas)
        return [(c.observation_id, c.chunk_id, c.actions.tobytes()) for c in bench.sinks.chunks], text

    jitter = replace(COSTS, jitter_ns=40 * MS, seed=jitter_seed)
    assert play(jitter) == play(jitter) == play(COSTS)


def test_b33_observations_that_hardly_differ_are_all_acted_on():
    source = Source(make=lambda n: observation(n, state=np.full(4, 0.01 * n, np.float32)))
    bench = CycleBench(source=source)
    bench.run(200)
    assert [chunk.observation_id for chunk in bench.sinks.chunks] == list(range(1, 201))
    assert len(set(bench.verbs()[::2])) == 1
    still = CycleBench(source=Source(make=lambda n: replace(observation(1), observation_id=n)))
    still.run(200)
    assert len(still.sinks.chunks) == 200


def test_b34_no_action_of_the_old_task_after_reset_and_chunk_ids_never_repeat():
    told, numbering = {"now": "A"}, Numbering()
    bench = CycleBench(source=Source(make=lambda n: observation(n, told["now"])), numbering=numbering)
    for task in ("B", "C"):
        bench.run(5)
        told["now"] = task
        bench.cycle.halt("reset")
    bench.run()
    by_id = {chunk.chunk_id: chunk.instruction for chunk in bench.sinks.chunks}
    assert list(by_id) == list(range(1, 14))
    assert list(by_id.values()) == [*"AAAAA", "", *"BBBBB", "", "C"]
    alone = CycleBench(source=Source([observation(11, "C")]))
    alone.run()
    assert np.array_equal(bench.sinks.chunks[-1].actions, alone.sinks.chunks[-1].actions)


def test_b35_horizon_of_the_checkpoint_below_the_configured_one_fails_at_configure():
    with pytest.raises(ConfigError, match="50 rows to run, expert 'default' gives 10"):
        CycleBench(cycle_settings=replace(SETTINGS, execute_horizon=50))


def test_b37_one_long_tick_is_one_miss_and_the_next_slack_is_measured():
    settings = replace(SETTINGS, period_ns=20 * MS, reserve_ns=1 * MS)
    costs = FakeCosts(prefill_ns=3 * MS, act_ns=2 * MS, decode_ns=1 * MS)
    bench = CycleBench(ENDLESS, cycle_settings=settings, costs=costs)
    bench.engine.submit(request("a", max_tokens=90))
    bench.run()
    bench.runner._costs = replace(costs, prefill_ns=130 * MS)
    late = bench.run()
    bench.runner._costs = costs
    on_time = bench.run()
    assert (late.is_late, late.decode_steps, late.slack_ns) == (True, 0, -112 * MS)
    assert (on_time.is_late, on_time.deadline_misses, on_time.decode_steps) == (False, 1, 14)
    # A timer that keeps its phase may come 9 ms after the stalled tick ended: less time, less text.
    due_ns = bench.clock.now_ns() - 11 * MS
    assert bench.cycle.run(due_ns).decode_steps == 3


def test_b39_line_before_the_first_cycle_names_device_dtype_backend_and_times():
    costs = WarmUp(
        "cuda:0 NVIDIA Thor",
        "bfloat16",
        "cuda_graph",
        prefill_ns=tuple(n * MS for n in range(1, 21)),
        act_ns=(5 * MS,) * 19 + (9 * MS,),
        decode_step_ns={8: (4 * MS,), 1: (2 * MS, 3 * MS)},
    )
    assert costs.in_words() == (
        "cuda_graph on cuda:0 NVIDIA Thor, bfloat16; p50/p99 ms of 20 warm runs: "
        "prefill 10.0/20.0, actions 5.0/9.0, decode of 1 2.0/3.0, decode of 8 4.0/4.0"
    )
    assert "fake on none, float32" in CycleBench().engine.warm_up().in_words()


# Engine, memory, numbers ------------------------------------------------------------------------------


def test_b41_memory_stands_still_over_500_frames_with_text():
    bench = CycleBench({"Q": "I see a cup and a plate. 你好🙂"})
    blocks, kv_bytes = {}, set()
    for frame in range(1, 501):
        bench.engine.submit(request(f"r{frame}", max_tokens=40))
        kv_bytes.add(bench.run().memory.kv_bytes)
        bench.calls.clear()
        bench.sinks.events.clear()
        if frame in (50, 500):
            gc.collect()
            blocks[frame] = sys.getallocatedblocks()
    assert len(kv_bytes) == 1
    assert blocks[500] - blocks[50] < 450  # less than one small object a frame; the case allows 20 kB


@pytest.mark.parametrize("seed", range(5))
def test_b42_texts_of_other_lengths_and_births_equal_their_solo_runs(seed):
    """Tokens of a real model are compared in test_seed_concepts; the fake one is strict about every count."""
    lengths, births = (3, 7, 12, 20), (1, 2, 4, 7)
    prompts = ["pqrs"[i] * length for i, length in enumerate(lengths)]
    script = {prompt: f"text of {prompt} at {{observation_id}}" for prompt in prompts}
    rng = random.Random(seed)
    order = rng.sample(range(4), 4)
    settings = fixed(rng.randint(1, 9), steps_per_round=rng.randint(1, 5))
    together = EngineBench(script, settings=settings, memory=layout(num_prefixes=6))
    for frame in range(1, 60):
        for i in order:
            if births[i] == frame:
                together.engine.submit(request(prompts[i], prompts[i], 60))
        together.frame()
    for i, prompt in enumerate(prompts):
        solo = EngineBench(script)
        solo.num_frames = births[i] - 1
        solo.engine.submit(request(prompt, prompt, 60))
        solo.frame()
        assert together.text(prompt) == solo.text(prompt) == f"text of {prompt} at {births[i]}"
        assert {delta.observation_id for delta in together.deltas[prompt]} == {births[i]}


def test_b44_request_above_the_largest_row_is_rejected_as_too_long_and_never_reaches_the_model():
    bench = EngineBench({}, memory=layout(row_capacity=64), settings=fixed(3))
    for length in range(1, 66):
        bench.engine.submit(request(f"r{length}", "p" * length, 1))
        bench.frame()
    assert [bench.reason(f"r{n}") for n in (64, 65)] == [FinishReason.LENGTH, FinishReason.REFUSED]
    assert bench.detail("r65") == "too_long: 65 prompt tokens and 1 written ones need 65 places, a row has 64"
    fed = {len(row.new_token_ids) for call in bench.calls for row in call.rows}
    assert fed == set(range(1, 65))


def test_b45_chunk_is_a_copy_even_of_a_runner_that_reuses_its_output_buffer():
    bench = CycleBench()
    buffer = np.zeros((10, 4), np.float32)
    sample = bench.runner.sample_actions

    def sample_into_buffer(*about):
        buffer[:] = sample(*about)
        return buffer

    bench.runner.sample_actions = sample_into_buffer
    bench.cycle._processor.finish = lambda expert, actions, seen: actions
    bench.run()
    first = bench.sinks.chunks[0].actions
    kept = first.copy()
    bench.run()
    second = bench.sinks.chunks[1].actions
    assert np.array_equal(first, kept)
    assert not np.array_equal(first, second)
    assert not np.shares_memory(first, second)
    assert not np.shares_memory(first, buffer)


def test_b47_precision_that_is_not_as_asked_is_a_warning_and_a_field():
    def in_float32(model):
        runner = model.runner
        warm_up = runner.warm_up
        runner.warm_up = lambda: replace(warm_up(), dtype="float32")
        return model

    config = load_config(
        preset="libero", overrides={"runner.kind": "fake", "runner.dtype": "bfloat16"}
    ).config
    brain = build_brain(config, SimClock(), adapt=in_float32)
    wanted = "precision not as asked: runner.dtype is bfloat16, the model runs in float32"
    assert brain.model_faults() == (wanted,)
    assert wanted in brain.model.warnings  # these are logged at configure
    assert build_brain(config, SimClock()).model_faults() == ()


def test_b43_compilations_after_warm_up_are_a_fault_with_their_number():
    config = load_config(preset="libero", overrides={"runner.kind": "fake"}).config
    brain = build_brain(config, SimClock())
    assert brain.model_faults() == ()
    brain.model.runner.num_compilations = 3
    assert brain.model_faults()[0].startswith("3 compilations after warm-up")


def test_b51_memory_is_said_in_numbers_and_too_many_requests_are_refused_with_numbers():
    pi05 = KVLayout(18, 1, 256, "bfloat16", 4, 600, 8, 128)
    assert pi05.in_words() == (
        "KV memory 60.2 MiB: 4 prefixes of 600 tokens and 8 text rows of 128 tokens, "
        "18432 bytes per token (18 layers, 1 KV heads of 256, bfloat16)"
    )
    bench = EngineBench(ENDLESS, memory=layout(num_rows=2), settings=fixed(1, max_waiting=3))
    for n in range(5):
        bench.engine.submit(request(f"r{n}"))
    bench.frame()
    bench.engine.submit(request("r5"))
    bench.frame()
    assert bench.detail("r5") == ("queue_full: 2 of 2 rows are in use and 3 requests wait, the most allowed")
    assert bench.engine.refusals() == {"text_queue_full": 1}
