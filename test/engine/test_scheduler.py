import random

import pytest

from oxygen_ros.engine.scheduler import Ending, Plan, SchedulerLimits, TextEntry, plan
from oxygen_ros.types import FinishReason

SECOND = 1_000_000_000
LIMITS = SchedulerLimits(num_prefixes=3, num_rows=2, max_waiting=3, aging_ns=SECOND)


def entry(request_id, priority=0, submitted_s=0.0, *, task="ask", slot=None, age_s=30.0, **changes):
    return TextEntry(
        request_id,
        task,
        priority,
        round(submitted_s * SECOND),
        round(age_s * SECOND),
        prefix_slot=slot,
        **changes,
    )


def memory(request_id, submitted_s=0.0, slot=None, running=False):
    return entry(
        request_id, 0, submitted_s, task="memory", slot=slot, is_superseding=True, supersede_running=running
    )


def test_waiting_texts_are_admitted_in_order_of_submission_while_rows_last():
    entries = [entry("a"), entry("b"), entry("c")]
    assert plan(entries, LIMITS, 0, 0) == Plan(admitted=("a", "b"), decoding=("a", "b"), waiting=("c",))


def test_running_texts_go_on_and_keep_their_rows():
    entries = [entry("a", slot=0), entry("b"), entry("c")]
    assert plan(entries, LIMITS, 1, 0) == Plan(admitted=("b",), decoding=("a", "b"), waiting=("c",))


def test_without_a_current_prefix_none_is_admitted_and_running_ones_go_on():
    assert plan([entry("a", slot=0), entry("b")], LIMITS, None, 0) == Plan(decoding=("a",), waiting=("b",))


def test_texts_never_hold_the_prefix_slot_of_the_next_observation():
    limits = SchedulerLimits(num_prefixes=3, num_rows=9, max_waiting=9, aging_ns=SECOND)
    held = [entry("a", slot=0), entry("b", slot=1)]
    assert plan([*held, entry("c")], limits, 2, 0) == Plan(decoding=("a", "b"), waiting=("c",))
    on_shared = plan([*held, entry("c"), entry("d")], limits, 1, 0)
    assert on_shared == Plan(admitted=("c", "d"), decoding=("a", "b", "c", "d"))
    tiny = SchedulerLimits(num_prefixes=1, num_rows=9, max_waiting=9, aging_ns=SECOND)
    assert plan([entry("a")], tiny, 0, 0) == Plan(waiting=("a",))


def test_higher_priority_goes_first_and_waiting_makes_up_for_priority():
    entries = [entry("old", 0, 0.0), entry("high", 2, 1.5), entry("late", 2, 2.5)]
    one = SchedulerLimits(num_prefixes=3, num_rows=1, max_waiting=9, aging_ns=SECOND)
    assert plan(entries, one, 0, 3 * SECOND).admitted == ("high",)
    assert plan([entries[0], entries[2]], one, 0, 3 * SECOND).admitted == ("old",)


@pytest.mark.parametrize("gap", [1, 5, 100])
def test_starvation_is_bounded_under_an_endless_stream_of_higher_priority(gap):
    """One row, one new request of priority +gap each second: the low one waits gap seconds and no longer."""
    limits = SchedulerLimits(num_prefixes=2, num_rows=1, max_waiting=1000, aging_ns=SECOND)
    waiting = [entry("low", 0, 0.0, age_s=1e6)]
    for second in range(1, 1000):
        waiting.append(entry(f"high-{second}", gap, float(second), age_s=1e6))
        (chosen,) = plan(waiting, limits, 0, second * SECOND).admitted
        waiting = [e for e in waiting if e.request_id != chosen]
        if chosen == "low":
            break
    assert second == gap


def test_newer_request_of_a_superseding_task_replaces_the_waiting_ones():
    entries = [memory("m-1"), entry("a"), memory("m-2"), memory("m-3")]
    planned = plan(entries, LIMITS, 0, 0)
    assert planned.ended == tuple(
        Ending(old, FinishReason.SUPERSEDED, "superseded", "replaced by m-3") for old in ("m-1", "m-2")
    )
    assert planned.admitted == ("a", "m-3")


def test_running_text_is_replaced_only_where_the_task_says_so():
    kept = plan([memory("m-1", slot=0), memory("m-2")], LIMITS, 1, 0)
    assert kept == Plan(admitted=("m-2",), decoding=("m-1", "m-2"))
    replaced = plan([memory("m-1", slot=0), memory("m-2", running=True)], LIMITS, 1, 0)
    assert [ending.request_id for ending in replaced.ended] == ["m-1"]
    assert replaced.decoding == replaced.admitted == ("m-2",)


def test_replaced_text_frees_its_row_and_prefix_in_the_same_plan():
    full = [memory("m-1", slot=0), entry("a", slot=1), memory("m-2", running=True)]
    assert plan(full, LIMITS, 2, 0).admitted == ("m-2",)


def test_tasks_do_not_replace_each_other():
    entries = [entry("a", task="subtask"), memory("m-1")]
    assert plan(entries, LIMITS, 0, 0).ended == ()


def test_text_older_than_its_age_expires_waiting_or_running():
    entries = [entry("run", slot=0, age_s=2.0), entry("wait", age_s=2.0), entry("young", submitted_s=1.0)]
    assert plan(entries, LIMITS, 1, 2 * SECOND).ended == ()
    planned = plan(entries, LIMITS, 1, 2 * SECOND + SECOND // 2)
    assert planned.ended == (
        Ending("run", FinishReason.EXPIRED, "expired", "2.50 s old while being written, limit 2.00 s"),
        Ending("wait", FinishReason.EXPIRED, "expired", "2.50 s old while waiting, limit 2.00 s"),
    )
    assert planned.decoding == ("young",)


def test_newest_requests_are_refused_with_numbers_when_the_list_is_full():
    entries = [entry(name, slot=0 if name in "ab" else None) for name in "abcdefg"]
    planned = plan(entries, LIMITS, 0, 0)
    assert planned.waiting == ("c", "d", "e")
    words = "2 of 2 rows are in use and 3 requests wait, the most allowed"
    assert planned.ended == tuple(Ending(name, FinishReason.REFUSED, "queue_full", words) for name in "fg")


def test_flood_of_one_task_takes_no_place_from_another_and_priority_decides_within_one():
    flood = [entry(f"a{n}", 50, n / 10) for n in range(8)]
    others = [entry("m", 0, 1.0, task="memory"), entry("s", 0, 1.0, task="subtask"), entry("a8", 90, 1.0)]
    planned = plan([*flood, *others], LIMITS, None, SECOND)
    assert planned.waiting == ("m", "s", "a8")
    assert [ending.request_id for ending in planned.ended] == [f"a{n}" for n in range(8)]


def test_plan_can_be_printed_and_read():
    assert str(plan([entry("a")], LIMITS, 0, 0)) == (
        "Plan(ended=(), admitted=('a',), decoding=('a',), waiting=())"
    )


@pytest.mark.parametrize("seed", range(100))
def test_every_plan_shares_out_all_texts_within_the_limits(seed):
    rng = random.Random(seed)
    limits = SchedulerLimits(rng.randint(1, 5), rng.randint(1, 5), rng.randint(0, 4), SECOND)
    entries = []
    for n in range(rng.randint(0, 15)):
        slots = {e.prefix_slot for e in entries if e.prefix_slot is not None}
        num_running = sum(e.prefix_slot is not None for e in entries)
        slot = rng.randrange(limits.num_prefixes)
        may_run = num_running < limits.num_rows and len(slots | {slot}) < limits.num_prefixes
        entries.append(
            entry(
                f"t{n}",
                rng.randint(-3, 3),
                n / 10,
                task=rng.choice("xy"),
                slot=slot if may_run and rng.random() < 0.5 else None,
                age_s=rng.choice((0.5, 30)),
                is_superseding=rng.random() < 0.3,
            )
        )
    current = rng.choice((None, *range(limits.num_prefixes)))
    planned = plan(entries, limits, current, 2 * SECOND)
    assert planned == plan(list(entries), limits, current, 2 * SECOND)
    ended = [ending.request_id for ending in planned.ended]
    assert sorted([*ended, *planned.decoding, *planned.waiting]) == sorted(e.request_id for e in entries)
    assert len(planned.decoding) <= limits.num_rows
    assert len(planned.waiting) <= limits.max_waiting
    slot_of = {e.request_id: e.prefix_slot for e in entries}
    held = {current if slot_of[i] is None else slot_of[i] for i in planned.decoding}
    assert len(held) <= limits.num_prefixes - 1
    assert set(planned.admitted) == {i for i in planned.decoding if slot_of[i] is None}
