"""The accounts of the KV memory: which slots are held, and by how many leases. No tensors, no time.

The engine keeps one ledger for prefixes and one for text rows; the runner holds the memory itself.
One thread. A naive twin in the tests is the oracle.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from oxygen_ros.errors import IntegrityError
from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.types import MemoryUse


@dataclass(frozen=True)
class Lease:
    """A counted hold on one slot. Ends by exactly one release; a second release is an error."""

    slot: int
    lease_id: int


class SlotLedger:
    """A fixed number of slots. A slot is free, or held by one or more leases; never both, never neither."""

    def __init__(self, num_slots: int) -> None:
        self.num_slots = num_slots
        self._free = list(range(num_slots))  # heap: the lowest free slot comes first
        self._counts = [0] * num_slots
        self._live: dict[int, int] = {}  # lease_id -> slot
        self._next_id = 1

    @property
    def num_free(self) -> int:
        """Slots that nobody holds."""
        return len(self._free)

    @property
    def num_used(self) -> int:
        """Slots that somebody holds."""
        return self.num_slots - len(self._free)

    def lease_ids(self) -> list[int]:
        """Leases that have not ended, oldest first."""
        return list(self._live)

    def acquire(self) -> Lease | None:
        """Hold the lowest free slot. None when every slot is held."""
        return self._grant(heapq.heappop(self._free)) if self._free else None

    def retain(self, lease: Lease) -> Lease:
        """One more hold on the slot of ``lease``.

        Raises:
            IntegrityError: if ``lease`` has ended or never was.
        """
        self._check_live(lease)
        return self._grant(lease.slot)

    def release(self, lease: Lease) -> bool:
        """End ``lease``. True when its slot is free now.

        Raises:
            IntegrityError: if ``lease`` has ended or never was.
        """
        self._check_live(lease)
        del self._live[lease.lease_id]
        self._counts[lease.slot] -= 1
        if self._counts[lease.slot]:
            return False
        heapq.heappush(self._free, lease.slot)
        return True

    def num_holds(self, slot: int) -> int:
        """Leases on ``slot``."""
        return self._counts[slot]

    def check_integrity(self) -> None:
        """Prove the accounts: counts equal leases, and free and held slots share out all slots.

        Raises:
            IntegrityError: naming the first slot that does not add up.
        """
        leases = list(self._live.values())
        for slot in range(self.num_slots):
            holds, count, times_free = leases.count(slot), self._counts[slot], self._free.count(slot)
            if holds != count or times_free != (count == 0):
                raise IntegrityError(
                    "kv_accounts",
                    f"slot {slot}: {holds} leases, count {count}, {times_free} times in the free list",
                )
        if len(self._free) + len(set(leases)) != self.num_slots:
            raise IntegrityError(
                "kv_accounts", f"{len(self._free)} free and {len(set(leases))} held slots of {self.num_slots}"
            )

    def _grant(self, slot: int) -> Lease:
        lease = Lease(slot, self._next_id)
        self._next_id += 1
        self._live[lease.lease_id] = slot
        self._counts[slot] += 1
        return lease

    def _check_live(self, lease: Lease) -> None:
        if self._live.get(lease.lease_id) != lease.slot:
            raise IntegrityError("kv_lease_ended", f"{lease} is not held", "a lease ends once")


class KVLedger:
    """The two ledgers of one KV memory."""

    def __init__(self, layout: KVLayout) -> None:
        self.prefixes = SlotLedger(layout.num_prefixes)
        self.rows = SlotLedger(layout.num_rows)
        self._kv_bytes = layout.total_bytes

    def use(self) -> MemoryUse:
        """What is used and fits."""
        return MemoryUse(
            prefixes_used=self.prefixes.num_used,
            prefixes_total=self.prefixes.num_slots,
            rows_used=self.rows.num_used,
            rows_total=self.rows.num_slots,
            kv_bytes=self._kv_bytes,
        )

    def check_integrity(self) -> None:
        """Prove both accounts.

        Raises:
            IntegrityError: if one does not add up.
        """
        self.prefixes.check_integrity()
        self.rows.check_integrity()
