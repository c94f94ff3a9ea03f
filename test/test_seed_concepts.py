"""The nine promises of the design, one test each (or a pair: on exact time, and on a real model).

Read from top to bottom, this is the specification: one prefill per observation, shared by actions and
language; texts of many frames decoded in one batch, in what time the actions leave.

Size: it is read as one page, from the first promise to the last.
"""

import random
from dataclasses import replace

import numpy as np
import pytest
from fakes import (
    COSTS,
    MS,
    SETTINGS,
    CycleBench,
    EngineBench,
    Source,
    budget,
    layout,
    observation,
    request,
    spec,
)

from oxygen_ros.clock import SimClock
from oxygen_ros.engine.budget import AutoSteps, FixedSteps
from oxygen_ros.engine.engine import Engine
from oxygen_ros.engine.settings import EngineSettings
from oxygen_ros.models.protocol import ExpertSpec
from oxygen_ros.runtime.ports import NotReady
from oxygen_ros.types import CycleStatus, FinishReason

ENDLESS = {"Q": [100, 101, 102]}


def fixed(num_steps, **changes):
    return EngineSettings(steps=FixedSteps(num_steps), **changes)


# 1. One observation, one prefill, whatever the number of experts and text requests that use it.


@pytest.mark.parametrize("num_experts", [1, 3])
@pytest.mark.parametrize("num_requests", [0, 1, 4])
def test_1_one_observation_is_one_prefill(num_experts, num_requests):
    experts = tuple(ExpertSpec(name, 10, 4) for name in ("arm", "head", "base")[:num_experts])
    bench = EngineBench(ENDLESS, model=spec(experts=experts), settings=fixed(2))
    for frame in range(1, 6):
        for n in range(num_requests):
            bench.engine.submit(request(f"{frame}-{n}", max_tokens=4))
        bench.frame()
    assert bench.verbs().count("prefill") == bench.engine.num_prefills == 5
    assert bench.verbs().count("sample_actions") == 5 * num_experts
    assert bool(bench.deltas) == bool(num_requests)


# 2. The prefix is stored once; experts read it in place, texts lease it and own only their suffix rows.


def test_2_actions_and_texts_of_a_frame_use_one_slot_that_returns_with_the_last_of_them():
    bench = EngineBench(ENDLESS, settings=fixed(2))
    for n in range(3):
        bench.engine.submit(request(f"r{n}", max_tokens=6))
    bench.frame()
    slots = {call.prefix_slot for call in bench.calls if call.verb in ("prefill", "sample_actions")}
    assert {row.prefix_slot for call in bench.calls for row in call.rows} == slots == {0}
    used = []
    for _ in range(3):
        used.append((bench.engine.memory().prefixes_used, bench.engine.memory().rows_used))
        bench.frame()
    assert used == [(1, 3), (2, 3), (1, 0)]  # three texts share one prefix; a newer frame has its own


def test_2_real_model_reads_the_prefix_in_place_and_never_writes_allocates_or_copies_it():
    import tiny_pi05
    from operator_watch import OperatorWatch

    runner = tiny_pi05.runner()
    engine = Engine(runner, tiny_pi05.NumberTokenizer(), SimClock(), fixed(8))
    engine.prefill(tiny_pi05.inputs(5), 0)
    before = runner.memory.prefix_checksums(0, tiny_pi05.num_tokens(5))
    first = {expert: engine.act(expert, seed=1) for expert in ("arm", "base")}
    for n in range(2):
        engine.submit(request(f"r{n}", tiny_pi05.prompt(n, 6), 40))
    engine.decode(budget())  # prompts are in
    with OperatorWatch([runner.memory.prefix_k, runner.memory.prefix_v]) as watch:
        engine.decode(budget())
    assert watch.num_calls > 50
    assert watch.largest_new_bytes < tiny_pi05.layer_bytes(5)
    assert watch.largest_copy_bytes == 0
    for expert, actions in first.items():
        assert np.array_equal(engine.act(expert, seed=1), actions)  # texts have left no trace
    assert runner.memory.prefix_checksums(0, tiny_pi05.num_tokens(5)) == before


# 3. The chunk is published before the first decode step; text delays an action by at most one step.


@pytest.mark.parametrize("steps", [AutoSteps(), FixedSteps(50)])
def test_3_action_is_out_before_the_first_step_and_the_next_one_waits_for_one_step_at_most(steps):
    bench = CycleBench(ENDLESS, settings=EngineSettings(steps=steps))
    for n in range(4):
        bench.engine.submit(request(f"r{n}", max_tokens=90))
    steps_before = []
    bench.sinks.on_action = lambda chunk: steps_before.append(bench.verbs().count("decode_step"))
    bench.run()
    assert steps_before == [0]
    for stall_ms in (130, 60, 190):  # dearer than ever measured
        bench.runner._costs = replace(COSTS, decode_ns=stall_ms * MS)
        due_ns = bench.clock.now_ns()
        bench.cycle.run(due_ns)
        assert bench.verbs().count("decode_step") > steps_before[-1]
        assert bench.clock.now_ns() - due_ns < SETTINGS.period_ns + stall_ms * MS
        bench.runner._costs = COSTS
        bench.run(3)  # stalls are forgotten
    assert {chunk.latency_ns for chunk in bench.sinks.chunks} == {70 * MS}


# 4. Decode steps come from measured cost and the time left; a fixed number is an option; zero is allowed.


@pytest.mark.parametrize("cost_ms", [3, 10, 25, 119, 121, 500])
def test_4_decode_steps_are_the_time_left_over_the_measured_cost(cost_ms):
    bench = CycleBench(ENDLESS, costs=replace(COSTS, decode_ns=cost_ms * MS))
    bench.engine.submit(request("a", max_tokens=90))
    report = bench.run()
    assert report.decode_steps == report.decode_steps_possible == 120 // cost_ms  # 200 - 40 - 30 - 10 ms
    assert not report.is_late


def test_4_cost_is_measured_while_running_and_the_paper_is_a_fixed_number():
    bench = CycleBench(ENDLESS)
    for n in range(3):
        bench.engine.submit(request(f"r{n}", max_tokens=90))
    assert bench.run().decode_steps == 12
    bench.runner._costs = replace(COSTS, decode_ns=50 * MS)
    reports = [bench.run() for _ in range(3)]
    assert [(report.decode_steps, report.is_late) for report in reports] == [(2, False)] * 3
    for num_steps in (0, 1, 5):
        paper = CycleBench(ENDLESS, settings=fixed(num_steps))
        paper.engine.submit(request("a", max_tokens=90))
        assert [paper.run().decode_steps for _ in range(3)] == [num_steps] * 3


# 5. A text's tokens depend neither on what else is in the batch nor on how many cycles it took.


@pytest.mark.parametrize("seed", range(4))
def test_5_real_tokens_equal_those_of_each_text_alone(seed):
    """Texts with prompts of 3, 7, 12, 20 and no tokens, born in frames 1, 2, 4, 7 and 2 (field case B42)."""
    import tiny_pi05

    rng = random.Random(seed)
    births = {"a": (1, 3), "b": (2, 7), "c": (4, 12), "d": (7, 20), "e": (2, 0)}
    drawn = {"temperature": 1.0, "top_k": 20} if seed % 2 else {}

    def play(names, settings):
        engine = Engine(tiny_pi05.runner(), tiny_pi05.NumberTokenizer(), SimClock(), settings)
        texts = dict.fromkeys(names, "")
        num_final = frame = 0
        while num_final < len(names):
            frame += 1
            engine.prefill(tiny_pi05.inputs(frame), frame)
            for name in names:
                birth, length = births[name]
                if birth == frame:
                    sampling = replace(request("").sampling, max_tokens=30, seed=length, **drawn)
                    engine.submit(request(name, tiny_pi05.prompt(length, length), sampling=sampling))
            engine.decode(budget())
            for delta in engine.take_deltas():
                texts[delta.request_id] += delta.text
                num_final += delta.is_final
        engine.check_integrity()
        return texts

    names = rng.sample(sorted(births), len(births))
    together = play(names, fixed(rng.randint(1, 6), steps_per_round=rng.randint(1, 4)))
    alone = {name: play([name], fixed(100))[name] for name in names}
    assert together == alone
    assert sum(len(text.split()) for text in alone.values()) > 80
    assert len(set(" ".join(alone.values()).split())) > 20
    assert len(set(alone.values())) == len(alone)


# 6. Memory is a parameter; when it is used up, requests wait, are superseded or refused. Nothing grows.


def test_6_flood_of_texts_stays_within_the_memory_and_every_request_gets_its_answer():
    memory = layout(num_prefixes=3, num_rows=4)
    bench = EngineBench(ENDLESS, memory=memory, settings=fixed(1, max_waiting=3))
    asked = refused_at_once = 0
    for frame in range(60):
        asked += 21
        memory_text = request(f"m-{frame}", task="memory", is_superseding=True, max_tokens=9, priority=5)
        for one in (*(request(f"{frame}-{n}", max_tokens=3 + n % 7) for n in range(20)), memory_text):
            refused_at_once += bench.engine.submit(one) is not None
        bench.frame()
        use = bench.engine.memory()
        assert use.kv_bytes == memory.total_bytes
        assert use.rows_used <= 4
        assert use.prefixes_used <= 3
        assert bench.engine.num_waiting <= 3
    bench.engine.reset("end")
    bench.collect()
    assert len(bench.deltas) == asked - refused_at_once
    reasons = [bench.reason(request_id) for request_id in bench.deltas]
    assert {FinishReason.LENGTH, FinishReason.REFUSED, FinishReason.SUPERSEDED} <= set(reasons)
    assert bench.verbs().count("prefill") == 60  # a slot was always left for the next observation


# 7. Every text ends with one final message and a reason; every action says its observation.


def test_7_each_of_the_seven_reasons_comes_in_exactly_one_final_message():
    script = {"stop": "ok", "length": [100], "error": [None], "Q": [100]}
    settings = fixed(3, max_waiting=4)
    bench = CycleBench(script, settings=settings, memory=layout(num_rows=8))
    asked = [request(name, name, 6) for name in ("stop", "length", "error")]
    asked += [request("cancelled", max_tokens=90), request("expired", max_tokens=90, max_age_ns=300 * MS)]
    asked += [request("superseded", max_tokens=90, task="memory"), request("refused", "too long" * 50)]
    for one in asked:
        bench.engine.submit(one)
    bench.run(2)
    bench.engine.cancel("cancelled")
    newer = request("newer", task="memory", supersede_running=True, max_tokens=90)
    bench.engine.submit(newer)
    bench.run(4)
    finals = {delta.request_id: delta for delta in bench.sinks.deltas if delta.is_final}
    assert {name: delta.finish_reason.name.lower() for name, delta in finals.items()} == {
        n: n for n in finals
    }
    assert set(finals) == {reason.name.lower() for reason in FinishReason}
    for name, final in finals.items():
        own = [delta for delta in bench.sinks.deltas if delta.request_id == name]
        assert own[-1] == final
        assert sum(delta.is_final for delta in own) == 1
        assert [delta.seq for delta in own] == list(range(len(own)))
    assert [chunk.observation_id for chunk in bench.sinks.chunks] == [1, 2, 3, 4, 5, 6]
    assert [chunk.stamp_ns for chunk in bench.sinks.chunks] == [n * 100 * MS for n in range(1, 7)]


# 8. Bad input is refused by name and counted; the robot holds; nothing crashes out of a callback.


def test_8_bad_input_and_faults_are_reported_by_name_and_the_robot_recovers_by_itself():
    nan = np.array([0, np.nan, 0, 0], np.float32)
    stale = NotReady(CycleStatus.HOLDING, "stale: camera base (0.35 s)")
    source = Source(
        [observation(1), stale, observation(2, state=nan), observation(3, images={}), observation(4)]
    )
    bench = CycleBench(ENDLESS, source=source)
    bench.engine.submit(request("bad", "\ud800"))
    bench.run(4)
    bench.runner.fail_next("sample_actions", "device lost")
    bench.run(2)
    statuses = [(report.status.name, report.reason.split(" ")[0]) for report in bench.sinks.reports]
    assert statuses == [
        ("ACTED", ""),
        ("HOLDING", "stale:"),
        ("HOLDING", "[state_not_finite]"),
        ("HOLDING", "[camera_missing]"),
        ("FAILED", "RunnerError:"),
        ("ACTED", ""),
    ]
    assert [chunk.expert for chunk in bench.sinks.chunks] == ["default", "", "default"]  # "" withdraws: hold
    assert bench.sinks.reports[-1].refusals == {
        "state_not_finite": 1,
        "camera_missing": 1,
        "text_not_unicode": 1,
    }


# 9. The same inputs and the same seed give the same actions and the same text, byte for byte.


def test_9_same_inputs_and_seed_give_the_same_bytes():
    def play(seed):
        jitter = replace(COSTS, jitter_ns=20 * MS, seed=3)
        bench = CycleBench(
            {"Q": "I see {observation_id} 🙂"}, costs=jitter, cycle_settings=replace(SETTINGS, seed=seed)
        )
        for n in range(20):
            if n % 3 == 0:
                bench.engine.submit(request(f"r{n}", max_tokens=30))
            bench.run()
        actions = [(chunk, chunk.actions.tobytes()) for chunk in bench.sinks.chunks]
        return [str(chunk) + data.hex() for chunk, data in actions], bench.sinks.deltas, bench.sinks.reports

    assert play(seed=1) == play(seed=1)
    assert play(seed=1)[0] != play(seed=2)[0]


def test_9_real_actions_and_tokens_repeat_byte_for_byte():
    import tiny_pi05

    def play(seed):
        engine = Engine(tiny_pi05.runner(), tiny_pi05.NumberTokenizer(), SimClock(), fixed(3))
        sampling = replace(request("").sampling, temperature=1.0, max_tokens=12, seed=seed)
        engine.submit(request("a", tiny_pi05.prompt(1, 4), sampling=sampling))
        actions = []
        for frame in range(1, 6):
            engine.prefill(tiny_pi05.inputs(frame), frame)
            actions.append(engine.act("arm", seed + frame).tobytes())
            engine.decode(budget())
        return actions, engine.take_deltas()

    assert play(1) == play(1)
    assert play(1)[0] != play(100)[0]
    assert play(1)[1] != play(100)[1]
