from dataclasses import replace

import numpy as np
import pytest
from fakes import COSTS, MS, SETTINGS, CycleBench, Source, observation, request, spec

from oxygen_ros.engine.budget import FixedSteps
from oxygen_ros.engine.settings import EngineSettings
from oxygen_ros.engine.tasks import TextTask, TextTasks
from oxygen_ros.errors import ConfigError
from oxygen_ros.models.protocol import ExpertSpec
from oxygen_ros.runtime.control_cycle import Numbering
from oxygen_ros.runtime.ports import NotReady
from oxygen_ros.types import ActionChunk, CycleReport, CycleStatus, FinishReason, TextDelta, TextKind

ENDLESS = {"Q": [100, 101, 102]}
STALE = NotReady(CycleStatus.HOLDING, "stale: camera base (0.35 s)")
WAITING = NotReady(CycleStatus.WAITING, "waiting: joints")
NAN = float("nan")


def test_action_is_published_before_the_first_decode_step():
    bench = CycleBench(ENDLESS)
    bench.engine.submit(request("a", max_tokens=90))
    verbs_at_publish = []
    bench.sinks.on_action = lambda chunk: verbs_at_publish.append(bench.verbs())
    bench.run()
    assert verbs_at_publish == [["prefill", "sample_actions"]]
    assert bench.verbs()[2] == "decode_step"
    first, *between, last = (type(event) for event in bench.sinks.events)
    assert (first, set(between), last) == (ActionChunk, {TextDelta}, CycleReport)


def test_chunk_says_which_observation_and_cycle_it_came_from():
    bench = CycleBench(source=Source([observation(7, "pour", actions_played=42)]))
    bench.run()
    (chunk,) = bench.sinks.chunks
    assert (chunk.observation_id, chunk.stamp_ns, chunk.instruction) == (7, 700 * MS, "pour")
    assert (chunk.cycle_id, chunk.chunk_id, chunk.expert) == (1, 1, "default")
    assert (chunk.joint_names, chunk.actions.shape) == (("j1", "j2", "j3", "j4"), (10, 4))
    assert (chunk.dt_ns, chunk.execute_horizon, chunk.latency_ns) == (40 * MS, 5, 70 * MS)
    assert chunk.actions_played == 42


def test_report_has_the_times_of_all_sections_and_what_text_got():
    bench = CycleBench(ENDLESS)
    bench.engine.submit(request("a", max_tokens=90))
    bench.engine.submit(request("b", "no way" * 50))
    report = bench.run()
    assert report == bench.sinks.reports[-1]
    assert (report.status, report.reason, report.observation_id) == (CycleStatus.ACTED, "", 1)
    assert (report.prefill_ns, report.act_ns, report.decode_ns) == (40 * MS, 30 * MS, 120 * MS)
    assert (report.action_latency_ns, report.period_ns, report.slack_ns) == (70 * MS, 200 * MS, 10 * MS)
    assert (report.decode_steps, report.decode_steps_possible) == (12, 12)
    assert (report.text_rows, report.text_tokens, report.texts_waiting, report.texts_finished) == (
        1,
        12,
        0,
        1,
    )
    assert (report.is_late, report.deadline_misses) == (False, 0)
    assert report.memory == bench.engine.memory()
    assert report.memory.rows_used == 1
    assert report.refusals == {"text_too_long": 1}


def test_without_text_the_runner_is_called_for_prefill_and_actions_alone():
    bench = CycleBench()
    report = bench.run(3)
    assert bench.verbs() == ["prefill", "sample_actions"] * 3
    assert (report.decode_ns, report.decode_steps, report.decode_steps_possible) == (0, 0, 12)


def test_each_expert_publishes_right_after_its_own_denoising():
    experts = (ExpertSpec("default", 10, 4), ExpertSpec("base", 10, 4))
    bench = CycleBench(model=spec(experts=experts))
    bench.cycle._processor._joint_names["base"] = ("b1", "b2")
    verbs = []
    bench.sinks.on_action = lambda chunk: verbs.append(bench.verbs())
    report = bench.run()
    assert [(c.expert, c.latency_ns, c.chunk_id) for c in bench.sinks.chunks] == [
        ("default", 70 * MS, 1),
        ("base", 100 * MS, 2),
    ]
    assert [len(seen) for seen in verbs] == [2, 3]
    assert (report.action_latency_ns, report.act_ns) == (70 * MS, 60 * MS)
    assert bench.sinks.chunks[1].actions.shape == (10, 2)


@pytest.mark.parametrize("not_ready", [STALE, WAITING])
def test_without_observation_there_is_no_action_and_running_texts_go_on(not_ready):
    bench = CycleBench(ENDLESS, source=Source([observation(1), not_ready]))
    bench.engine.submit(request("a", max_tokens=90))
    bench.run()
    report = bench.run()
    assert (report.status, report.reason) == (not_ready.status, not_ready.reason)
    assert (report.observation_id, len(bench.sinks.chunks)) == (0, 1)
    assert report.decode_steps == 19  # all the time there is
    assert bench.run().status is CycleStatus.ACTED


def test_running_texts_hold_too_where_the_settings_say_so_but_can_be_cancelled():
    settings = replace(SETTINGS, decode_while_holding=False)
    bench = CycleBench(ENDLESS, source=Source([observation(1), STALE]), cycle_settings=settings)
    for name in "ab":
        bench.engine.submit(request(name, max_tokens=90))
    bench.run()
    bench.engine.cancel("a")
    report = bench.run()
    assert (report.decode_steps, report.texts_finished, report.memory.rows_used) == (0, 1, 1)
    assert bench.run().decode_steps == 12


def test_question_asked_while_the_robot_is_blind_is_answered_from_the_next_observation():
    bench = CycleBench({"Q": "ok"}, source=Source([observation(1), STALE, WAITING, observation(2)]))
    bench.run()
    bench.engine.submit(request("a"))
    reports = [bench.run(), bench.run()]
    assert [(report.texts_waiting, report.memory.prefixes_used) for report in reports] == [(1, 0)] * 2
    bench.run()
    assert [delta.observation_id for delta in bench.sinks.deltas] == [2]


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ({"state": np.array([0, NAN, 0, 0], np.float32)}, "state_not_finite"),
        ({"state": np.array([0, np.inf, 0, 0], np.float32)}, "state_not_finite"),
        ({"state": np.zeros(3, np.float32)}, "state_shape"),
        ({"state": np.zeros(4, np.float64)}, "state_shape"),
        ({"images": {}}, "camera_missing"),
        ({"images": {"base": np.zeros((4, 4), np.uint8)}}, "image_shape"),
        ({"images": {"base": np.zeros((4, 4, 3), np.float32)}}, "image_shape"),
        ({"images": {"base": np.zeros((0, 4, 3), np.uint8)}}, "image_shape"),
    ],
)
def test_bad_observation_is_refused_by_name_and_counted_and_the_next_good_one_used(bad, code):
    bench = CycleBench(ENDLESS, source=Source([observation(1), observation(2, **bad)], {"nan_state": 3}))
    bench.engine.submit(request("a", max_tokens=90))
    bench.run()
    report = bench.run()
    assert report.status is CycleStatus.HOLDING
    assert report.reason.startswith(f"[{code}] ")
    assert report.observation_id == 2
    assert report.refusals == {"nan_state": 3, code: 1}
    assert report.decode_steps > 0
    assert len(bench.sinks.chunks) == 1
    assert bench.run().status is CycleStatus.ACTED


def test_instruction_that_changes_during_a_cycle_counts_from_the_next_one():
    told = {"now": "A"}
    bench = CycleBench(source=Source(make=lambda n: observation(n, told["now"])))
    bench.sinks.on_action = lambda chunk: told.update(now="B")
    bench.run(2)
    assert [chunk.instruction for chunk in bench.sinks.chunks] == ["A", "B"]
    first, second = (chunk.actions for chunk in bench.sinks.chunks)
    assert np.abs(first[-1] - second[-1]).max() > 0.02


@pytest.mark.parametrize("verb", ["prefill", "sample_actions", "decode_step", "read_tokens"])
def test_fault_of_the_runner_becomes_a_failed_report_and_a_hold(verb):
    bench = CycleBench(ENDLESS)
    bench.engine.submit(request("a", max_tokens=90))
    bench.run()
    num_chunks = len(bench.sinks.chunks)
    bench.runner.fail_next(verb, "device lost")
    report = bench.run()
    assert report.status is CycleStatus.FAILED
    assert report.reason == "RunnerError: [fake_failure] device lost"
    assert (report.observation_id, report.texts_finished) == (2, 1)
    hold = bench.sinks.chunks[-1]
    assert (hold.expert, hold.actions.shape, hold.execute_horizon) == ("", (0, 0), 0)
    assert len(bench.sinks.chunks) == num_chunks + (2 if verb in ("decode_step", "read_tokens") else 1)
    assert [d.finish_reason for d in bench.sinks.deltas if d.is_final] == [FinishReason.ERROR]
    assert bench.run().status is CycleStatus.ACTED


def test_fault_of_any_other_part_is_caught_at_the_same_place():
    bench = CycleBench(ENDLESS)
    bench.cycle._processor.finish = lambda *about: 1 / 0
    bench.engine.submit(request("a"))
    report = bench.run()
    assert (report.status, report.reason) == (CycleStatus.FAILED, "ZeroDivisionError: division by zero")
    assert [chunk.expert for chunk in bench.sinks.chunks] == [""]
    assert bench.sinks.deltas[-1].finish_reason is FinishReason.ERROR
    assert bench.engine.memory().prefixes_used == 0


def test_actions_that_are_not_finite_in_robot_units_are_never_published():
    bench = CycleBench()
    bench.cycle._processor.finish = lambda expert, actions, seen: actions * NAN
    report = bench.run()
    assert report.status is CycleStatus.FAILED
    assert "actions_not_finite" in report.reason
    assert [chunk.expert for chunk in bench.sinks.chunks] == [""]


def test_chunk_and_cycle_ids_never_repeat_over_halt_failure_and_a_new_cycle():
    numbering = Numbering()
    bench = CycleBench(numbering=numbering)
    bench.run(2)
    bench.cycle.halt("reset")
    bench.runner.fail_next("prefill")
    bench.run(2)
    other = CycleBench(numbering=numbering)  # cleaned up and configured anew
    other.run()
    chunks, reports = (bench.sinks.chunks + other.sinks.chunks), (bench.sinks.reports + other.sinks.reports)
    assert [chunk.chunk_id for chunk in chunks] == [1, 2, 3, 4, 5, 6]
    assert [report.cycle_id for report in reports] == [1, 2, 3, 4, 5]


def test_halt_ends_texts_withdraws_chunks_and_clears_the_counters():
    bench = CycleBench(ENDLESS, costs=replace(COSTS, prefill_ns=300 * MS))
    bench.engine.submit(request("a", max_tokens=90))
    assert bench.run().deadline_misses == 1
    bench.cycle.halt("deactivated")
    assert bench.sinks.chunks[-1].actions.size == 0
    final = bench.sinks.deltas[-1]
    assert (final.finish_reason, final.detail) == (FinishReason.CANCELLED, "deactivated")
    assert bench.engine.memory().prefixes_used == bench.engine.memory().rows_used == 0
    report = bench.run()
    assert (report.status, report.deadline_misses) == (CycleStatus.ACTED, 1)


def test_tasks_ask_every_n_cycles_that_act_after_the_action_is_out():
    tasks = TextTasks(
        [TextTask("memory", TextKind.MEMORY, "M", every_cycles=2), TextTask("ask", TextKind.ASK)]
    )
    source = Source([observation(1), STALE, observation(2), observation(3)])
    bench = CycleBench({"M": "ok"}, tasks=tasks, source=source)
    bench.run(4)
    finals = [delta for delta in bench.sinks.deltas if delta.is_final]
    assert [(d.request_id, d.observation_id, d.kind) for d in finals] == [
        ("memory-1", 1, TextKind.MEMORY),
        ("memory-2", 3, TextKind.MEMORY),
    ]


def test_late_cycle_is_reported_with_its_negative_slack_and_counted():
    bench = CycleBench(costs=replace(COSTS, prefill_ns=180 * MS))
    reports = [bench.run(), bench.run()]
    assert [(r.is_late, r.slack_ns, r.deadline_misses) for r in reports] == [
        (True, -10 * MS, 1),
        (True, -10 * MS, 2),
    ]
    assert all(r.status is CycleStatus.ACTED for r in reports)


def test_cycle_that_starts_late_has_less_time_for_text():
    bench = CycleBench(ENDLESS)
    bench.engine.submit(request("a", max_tokens=90))
    due_ns = bench.clock.now_ns()
    bench.clock.advance_ns(55 * MS)
    report = bench.cycle.run(due_ns)
    assert (report.decode_steps, report.is_late) == (6, False)  # 200 - 55 - 70 - 10 ms of reserve
    assert report.action_latency_ns == 70 * MS  # counted from taking the observation


def test_fixed_steps_may_be_asked_for_and_zero_is_one_of_them():
    for num_steps in (0, 5):
        bench = CycleBench(ENDLESS, settings=EngineSettings(steps=FixedSteps(num_steps)))
        bench.engine.submit(request("a", max_tokens=90))
        report = bench.run()
        assert (report.decode_steps, report.decode_steps_possible) == (num_steps, 12)


@pytest.mark.parametrize("execute_horizon", [0, 11])
def test_more_rows_to_run_than_the_expert_gives_are_refused_at_configure(execute_horizon):
    with pytest.raises(ConfigError, match="expert 'default' gives 10"):
        CycleBench(cycle_settings=replace(SETTINGS, execute_horizon=execute_horizon))


def test_action_noise_depends_on_seed_and_observation_alone():
    def actions(seed, ids):
        bench = CycleBench(
            source=Source([observation(n) for n in ids]), cycle_settings=replace(SETTINGS, seed=seed)
        )
        bench.run(len(ids))
        return {chunk.observation_id: chunk.actions.tobytes() for chunk in bench.sinks.chunks}

    assert actions(1, [1, 2, 3])[3] == actions(1, [3])[3]
    assert actions(1, [3])[3] != actions(2, [3])[3]
