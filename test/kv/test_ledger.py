import random

import pytest
from naive_ledger import NaiveLedger

from oxygen_ros.errors import IntegrityError
from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.kv.ledger import KVLedger, Lease, SlotLedger


def test_acquire_gives_the_lowest_free_slot_and_none_when_full():
    ledger = SlotLedger(3)
    leases = [ledger.acquire() for _ in range(3)]
    assert [lease.slot for lease in leases] == [0, 1, 2]
    assert ledger.acquire() is None
    ledger.release(leases[2])
    ledger.release(leases[0])
    assert ledger.acquire().slot == 0
    assert ledger.acquire().slot == 2


def test_slot_with_several_leases_is_free_only_after_the_last_release():
    ledger = SlotLedger(2)
    first = ledger.acquire()
    second, third = ledger.retain(first), ledger.retain(first)
    assert ledger.num_holds(first.slot) == 3
    assert not ledger.release(first)
    assert not ledger.release(third)
    assert (ledger.num_used, ledger.num_free) == (1, 1)
    assert ledger.release(second)
    assert (ledger.num_used, ledger.num_free) == (0, 2)


def test_lease_that_ended_can_neither_be_released_nor_retained():
    ledger = SlotLedger(1)
    lease = ledger.acquire()
    ledger.release(lease)
    again = ledger.acquire()  # the same slot under another lease
    with pytest.raises(IntegrityError, match="is not held"):
        ledger.release(lease)
    with pytest.raises(IntegrityError, match="is not held"):
        ledger.retain(lease)
    with pytest.raises(IntegrityError):
        ledger.release(Lease(slot=1, lease_id=again.lease_id))
    assert ledger.num_holds(0) == 1


@pytest.mark.parametrize("seed", range(20))
def test_ledger_agrees_with_its_naive_twin_over_random_use(seed):
    rng = random.Random(seed)
    num_slots = rng.randint(1, 9)
    ledger, twin = SlotLedger(num_slots), NaiveLedger(num_slots)
    live = []
    for _ in range(400):
        verb = rng.choice(("acquire", "acquire", "retain", "release", "release"))
        if verb == "acquire":
            lease = ledger.acquire()
            assert lease == twin.acquire()
            live += [lease] if lease else []
        elif live:
            lease = rng.choice(live)
            if verb == "retain":
                live.append(ledger.retain(lease))
                assert live[-1] == twin.retain(lease)
            else:
                live.remove(lease)
                assert ledger.release(lease) == twin.release(lease)
        assert ledger.num_used == twin.num_used
        assert [ledger.num_holds(s) for s in range(num_slots)] == [
            twin.num_holds(s) for s in range(num_slots)
        ]
        assert ledger.lease_ids() == sorted(lease.lease_id for lease in live)
        ledger.check_integrity()
    for lease in live:
        ledger.release(lease)
    ledger.check_integrity()
    assert ledger.num_free == num_slots


@pytest.mark.parametrize(
    "damage",
    [
        lambda ledger: ledger._free.append(0),
        lambda ledger: ledger._free.clear(),
        lambda ledger: ledger._counts.__setitem__(0, 2),
        lambda ledger: ledger._live.clear(),
        lambda ledger: ledger._free.append(1),
    ],
    ids=[
        "held slot in free list",
        "free slots lost",
        "count too high",
        "leases lost",
        "free slot listed twice",
    ],
)
def test_integrity_check_finds_every_kind_of_damage(damage):
    ledger = SlotLedger(2)
    ledger.acquire()
    ledger.check_integrity()
    damage(ledger)
    with pytest.raises(IntegrityError, match="slot"):
        ledger.check_integrity()


def test_memory_use_counts_both_ledgers_and_keeps_its_bytes():
    layout = KVLayout(2, 1, 8, "float32", num_prefixes=3, prefix_capacity=10, num_rows=5, row_capacity=4)
    ledger = KVLedger(layout)
    ledger.prefixes.acquire()
    row = ledger.rows.acquire()
    use = ledger.use()
    assert (use.prefixes_used, use.prefixes_total, use.rows_used, use.rows_total) == (1, 3, 1, 5)
    assert use.kv_bytes == layout.total_bytes == (3 * 10 + 5 * 4) * 2 * 2 * 1 * 8 * 4
    ledger.rows.release(row)
    assert ledger.use().kv_bytes == use.kv_bytes
    ledger.check_integrity()
