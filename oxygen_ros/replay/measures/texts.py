"""Every text with its birth and its end."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass

from oxygen_ros.types import TextDelta

MAX_TEXTS = 5000
COMPLETE = ("stop", "length")


@dataclass
class TextLife:
    """One text.

    Attributes:
        stamp_ns: of the observation it is about; 0 if it never started.
        first_ns, end_ns: bag time of its first and of its last message.
    """

    request_id: str
    task: str
    kind: str
    observation_id: int
    stamp_ns: int
    first_ns: int
    end_ns: int = 0
    first_cycle: int = 0
    end_cycle: int = 0
    text: str = ""
    num_tokens: int = 0
    reason: str = ""
    detail: str = ""


class Texts:
    """All texts in the order of their end; past ``MAX_TEXTS`` they are only counted and fingerprinted."""

    def __init__(self) -> None:
        self.ended: list[TextLife] = []
        self.by_reason: Counter[str] = Counter()
        self.digest = hashlib.blake2b(digest_size=16)
        self._growing: dict[str, TextLife] = {}

    def add(self, time_ns: int, cycle_id: int, delta: TextDelta) -> None:
        """Take in a piece."""
        life = self._growing.get(delta.request_id)
        if life is None:
            life = self._growing[delta.request_id] = TextLife(
                request_id=delta.request_id,
                task=delta.task,
                kind=delta.kind.name.lower(),
                observation_id=delta.observation_id,
                stamp_ns=delta.stamp_ns,
                first_ns=time_ns,
                first_cycle=cycle_id,
            )
        life.text += delta.text
        life.num_tokens = delta.num_tokens
        life.observation_id = life.observation_id or delta.observation_id
        life.stamp_ns = life.stamp_ns or delta.stamp_ns
        if delta.finish_reason is None:
            return
        del self._growing[delta.request_id]
        life.end_ns, life.end_cycle = time_ns, cycle_id
        life.reason, life.detail = delta.finish_reason.name.lower(), delta.detail
        self.by_reason[life.reason] += 1
        words = (life.request_id, life.task, str(life.observation_id), life.reason, life.text)
        self.digest.update("\0".join(words).encode("utf-8", errors="surrogatepass") + b"\1")
        if len(self.ended) < MAX_TEXTS:
            self.ended.append(life)

    @property
    def num_complete(self) -> int:
        """Texts that came to their own end."""
        return sum(self.by_reason[reason] for reason in COMPLETE)
