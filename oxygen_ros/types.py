"""The nouns that every part shares: observations, action chunks, text requests, deltas, reports.

Numpy and the standard library only. Nothing here knows torch, ROS, time sources or models.
Stamps (``*_stamp_ns``) are ROS time in integer nanoseconds; every other time is a duration.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]
ImageArray = NDArray[np.uint8]

DEFAULT_EXPERT = "default"


class TextKind(enum.Enum):
    """What a text is for; consumers choose by it. Values equal TextDelta.msg."""

    ASK = 0
    SUBTASK = 1
    MEMORY = 2
    OTHER = 3


class FinishReason(enum.Enum):
    """Why a text ended. Values equal TextDelta.msg (0 is "not finished")."""

    STOP = 1
    """End token or stop string."""
    LENGTH = 2
    """Token limit reached."""
    CANCELLED = 3
    """Somebody cancelled it."""
    SUPERSEDED = 4
    """A newer request of its task took its place."""
    EXPIRED = 5
    """Older than its maximum age."""
    REFUSED = 6
    """No room, or not a valid request."""
    ERROR = 7
    """The model failed, or wrote what is not text."""


class CycleStatus(enum.Enum):
    """What a control cycle came to. Values equal CycleReport.msg."""

    ACTED = 0
    WAITING = 1
    HOLDING = 2
    FAILED = 3


@dataclass(frozen=True)
class Observation:
    """One synchronised set of inputs. Made by the mailbox, read by all, never changed.

    Attributes:
        observation_id: running number, from 1.
        stamp_ns: ROS time the inputs belong to.
        images: RGB uint8 [H, W, 3] by camera role; an absent camera has no entry.
        state: float32 [state_dim], the robot's joints in preset order and in the robot's units.
        instruction: what the robot is to do.
        actions_played: the player's count of played actions at that moment; 0 when not known.
    """

    observation_id: int
    stamp_ns: int
    images: Mapping[str, ImageArray]
    state: FloatArray
    instruction: str
    actions_played: int = 0


@dataclass(frozen=True)
class ActionChunk:
    """Future joint targets of one action expert, in the robot's units.

    A chunk without rows withdraws what its expert sent before (all experts when ``expert`` is empty):
    the player holds.

    Attributes:
        actions: float32 [horizon, action_dim]; owned by the chunk, never a view of a reused buffer.
        dt_ns: time between two rows.
        latency_ns: steady time from taking the observation to handing out this chunk.
        actions_played: as in the observation.
    """

    observation_id: int
    stamp_ns: int
    cycle_id: int
    chunk_id: int
    expert: str
    instruction: str
    joint_names: tuple[str, ...]
    actions: FloatArray
    dt_ns: int
    execute_horizon: int
    latency_ns: int
    actions_played: int = 0


@dataclass(frozen=True)
class SamplingParams:
    """How tokens are chosen and when a text ends.

    ``temperature`` 0 is greedy. Otherwise tokens are drawn from the softmax of logits / temperature
    over the ``top_k`` likeliest (0: all), with a generator of the request's own, so that a draw
    depends on (seed, token index) alone and never on what else is in the batch.
    """

    max_tokens: int = 48
    temperature: float = 0.0
    top_k: int = 0
    seed: int = 0
    stop_strings: tuple[str, ...] = ()


MAX_PRIORITY = 100
"""Bound of a priority either way, for the configuration and for requests."""


@dataclass(frozen=True)
class TextRequest:
    """A wish for one text. It is born on the observation of the cycle that admits it.

    Attributes:
        request_id: unique among running requests.
        task: name of the text task; a newer request of a superseding task replaces an older one.
        prompt: suffix prompt, appended causally to the shared prefix; empty continues the prefix.
        priority: higher goes first; at most ``MAX_PRIORITY``, at least its negative.
        max_age_ns: steady time from submission after which it ends as expired.
        is_superseding: it replaces older waiting requests of its task.
        supersede_running: it also replaces one that is being written.
    """

    request_id: str
    task: str
    kind: TextKind
    prompt: str
    sampling: SamplingParams = field(default_factory=SamplingParams)
    priority: int = 0
    max_age_ns: int = 30_000_000_000
    is_superseding: bool = False
    supersede_running: bool = False


@dataclass(frozen=True)
class TextDelta:
    """New characters of one text. The last delta of a text has a reason, and no delta follows it.

    Attributes:
        observation_id, stamp_ns: observation the text is about; 0 if it never started.
        seq: 0, 1, 2, ... within the request.
        text: whole characters only; may be empty only in the last delta.
        num_tokens: tokens written so far.
    """

    request_id: str
    task: str
    kind: TextKind
    observation_id: int
    stamp_ns: int
    seq: int
    text: str
    num_tokens: int
    finish_reason: FinishReason | None = None
    detail: str = ""

    @property
    def is_final(self) -> bool:
        """True exactly once per request."""
        return self.finish_reason is not None


@dataclass(frozen=True)
class MemoryUse:
    """KV memory: counts of what is used and fits, and the bytes held (fixed at configure)."""

    prefixes_used: int = 0
    prefixes_total: int = 0
    rows_used: int = 0
    rows_total: int = 0
    kv_bytes: int = 0


@dataclass(frozen=True)
class CycleReport:
    """What one control cycle did and where its time went. All ``*_ns`` but the stamp are durations."""

    cycle_id: int
    observation_id: int = 0
    stamp_ns: int = 0
    status: CycleStatus = CycleStatus.WAITING
    reason: str = ""
    period_ns: int = 0
    observe_ns: int = 0
    prefill_ns: int = 0
    act_ns: int = 0
    publish_ns: int = 0
    action_latency_ns: int = 0
    decode_ns: int = 0
    slack_ns: int = 0
    is_late: bool = False
    decode_steps: int = 0
    decode_steps_possible: int = 0
    text_rows: int = 0
    text_tokens: int = 0
    texts_waiting: int = 0
    texts_finished: int = 0
    memory: MemoryUse = field(default_factory=MemoryUse)
    deadline_misses: int = 0
    refusals: Mapping[str, int] = field(default_factory=dict)
