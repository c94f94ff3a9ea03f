"""The ledger as anybody would write it first: one list of what is held, searched each time. The oracle."""

from oxygen_ros.kv.ledger import Lease


class NaiveLedger:
    def __init__(self, num_slots):
        self.num_slots = num_slots
        self.held = []  # one (lease_id, slot) per lease
        self.granted = 0

    def _grant(self, slot):
        self.granted += 1
        self.held.append((self.granted, slot))
        return Lease(slot, self.granted)

    def acquire(self):
        for slot in range(self.num_slots):
            if all(slot != other for _, other in self.held):
                return self._grant(slot)
        return None

    def retain(self, lease):
        return self._grant(lease.slot)

    def release(self, lease):
        self.held.remove((lease.lease_id, lease.slot))
        return all(lease.slot != other for _, other in self.held)

    def num_holds(self, slot):
        return sum(slot == other for _, other in self.held)

    @property
    def num_used(self):
        return len({slot for _, slot in self.held})
