"""Joint positions merged by name from one or more topics.

Knows names and numbers, no ROS message. Velocities and efforts never come here: they are not used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from oxygen_ros.runtime.streams import Sample
from oxygen_ros.types import FloatArray

MAX_NAME_SETS = 16
MAX_NAMES = 200
FLOAT32_MAX = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class JointReading:
    """Payload of a joint sample: the wanted joints of one message, and where it came from."""

    source: str
    positions: Mapping[str, float]


class JointMerge:
    """Newest position of each wanted joint. Written by one thread at a time, read by the control thread.

    Invariant: the table is replaced as a whole, so a reader sees no half-written message. Names are read
    anew from every message: their order may change at any time.
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        """Wait for ``joint_names``, in this order."""
        self._names = tuple(joint_names)
        self._wanted = frozenset(joint_names)
        self._newest: Mapping[str, Sample] = {}
        self._name_sets: dict[str, list[frozenset[str]]] = {}
        self._seen: frozenset[str] = frozenset()

    def check(self, source: str, names: Sequence[str], positions: Sequence[float]) -> tuple[str, str] | None:
        """Why a message must not be used, as (kind, detail), or None. Changes nothing.

        A message may carry a part of the joints, as long as its source never carried more in one message:
        two drivers may share a topic, but a message must not lose a joint that it used to have.
        """
        if len(positions) != len(names):
            return "bad_joints", f"{len(names)} names but {len(positions)} positions"
        if len(set(names)) != len(names):
            twice = [name for name, count in Counter(names).items() if count > 1]
            return "bad_joints", f"named twice: {', '.join(twice)}"
        wanted = self._wanted
        bad = [n for n, p in zip(names, positions, strict=True) if n in wanted and not abs(p) <= FLOAT32_MAX]
        if bad:
            return "nan_state", f"position is not a number: {', '.join(bad)}"
        used = wanted.intersection(names)
        for earlier in self._name_sets.get(source, ()):
            if used < earlier:
                return (
                    "lost_joints",
                    f"missing {', '.join(sorted(earlier - used))}; available {', '.join(names)}",
                )
        return None

    def put(self, source: str, names: Sequence[str], positions: Sequence[float], sample: Sample) -> None:
        """Take over the wanted joints of a message that ``check`` has passed; ``sample`` gives its times."""
        used = {n: float(p) for n, p in zip(names, positions, strict=True) if n in self._wanted}
        stored = replace(sample, payload=JointReading(source, used))
        keys = frozenset(used)
        others = [earlier for earlier in self._name_sets.get(source, []) if not earlier <= keys]
        self._name_sets[source] = [*others, keys][-MAX_NAME_SETS:]
        if len(self._seen) < MAX_NAMES:
            self._seen = self._seen.union(names)
        self._newest = {**self._newest, **dict.fromkeys(used, stored)}

    def snapshot(self) -> Mapping[str, Sample]:
        """Newest sample by joint; joints that never came have no entry."""
        return MappingProxyType(dict(self._newest))

    def missing(self, snapshot: Mapping[str, Sample]) -> tuple[str, ...]:
        """Wanted joints that ``snapshot`` lacks, in the wanted order."""
        return tuple(name for name in self._names if name not in snapshot)

    def state(self, snapshot: Mapping[str, Sample]) -> FloatArray:
        """Positions float32 [num_joints] in the wanted order; every joint must be there."""
        return np.array([snapshot[name].payload.positions[name] for name in self._names], dtype=np.float32)

    @property
    def seen_names(self) -> tuple[str, ...]:
        """Names that any topic has carried: what to compare with when a joint is missing."""
        return tuple(sorted(self._seen))

    def reset(self) -> None:
        """Forget all positions; names stay known."""
        self._newest = {}
