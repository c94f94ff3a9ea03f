"""Whether a text request can be run at all, and the door it comes in by. Called from any thread."""

from __future__ import annotations

import math
import threading
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from oxygen_ros.engine.settings import TextRules
from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.models.protocol import ModelSpec, Tokenizer
from oxygen_ros.types import MAX_PRIORITY, TextRequest

# No vocabulary we know has more characters to a token: longer prompts are refused without a look inside.
_MAX_CHARS_PER_TOKEN = 64


@dataclass(frozen=True)
class Refusal:
    """Why a request is not run: a stable code, and numbers and words for people."""

    code: str
    detail: str

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"


@dataclass(frozen=True)
class Submission:
    """A request with what was found out in the thread that submitted it."""

    request: TextRequest
    submitted_ns: int
    prompt_ids: tuple[int, ...]
    refusal: Refusal | None


def encode_prompt(
    request: TextRequest, spec: ModelSpec, layout: KVLayout, rules: TextRules, tokenizer: Tokenizer
) -> tuple[tuple[int, ...], Refusal | None]:
    """Ids of the suffix prompt, and why the request can never be run on this model and memory, if so."""
    if refusal := _refuse_model(spec, layout, rules) or _refuse_form(request, layout, rules):
        return (), refusal
    try:
        request.prompt.encode()
    except UnicodeEncodeError as error:
        return (), Refusal("not_unicode", f"the prompt is not valid Unicode at character {error.start}")
    ids = tuple(tokenizer.encode(request.prompt)) if request.prompt else ()
    if bad := [i for i in ids if not 0 <= i < spec.vocab_size]:
        return (), Refusal("not_in_vocabulary", f"prompt token {bad[0]} is outside 0..{spec.vocab_size - 1}")
    if rules.max_prompt_tokens is not None and len(ids) > rules.max_prompt_tokens:
        return (), Refusal("too_long", f"{len(ids)} prompt tokens, the limit is {rules.max_prompt_tokens}")
    needed = len(ids) + request.sampling.max_tokens - 1
    if needed > layout.row_capacity:
        return (), Refusal(
            "too_long",
            f"{len(ids)} prompt tokens and {request.sampling.max_tokens} written ones need {needed} places, "
            f"a row has {layout.row_capacity}",
        )
    return ids, None


def _refuse_model(spec: ModelSpec, layout: KVLayout, rules: TextRules) -> Refusal | None:
    if not rules.is_enabled:
        return Refusal("text_off", "text is switched off by configuration")
    if not spec.supports_text:
        return Refusal("no_language", f"this {spec.family} checkpoint has no language head")
    if layout.num_rows < 1 or layout.num_prefixes < 2:
        return Refusal(
            "no_memory",
            f"the memory has {layout.num_rows} rows and {layout.num_prefixes} prefixes, text needs 1 and 2",
        )
    return None


def _refuse_form(request: TextRequest, layout: KVLayout, rules: TextRules) -> Refusal | None:
    sampling = request.sampling
    most = layout.row_capacity + 1 if rules.max_tokens is None else rules.max_tokens
    if not 1 <= sampling.max_tokens <= most:
        return Refusal("max_tokens", f"max_tokens is {sampling.max_tokens}, allowed are 1 to {most}")
    if not math.isfinite(sampling.temperature) or sampling.temperature < 0 or sampling.top_k < 0:
        return Refusal(
            "sampling", f"temperature {sampling.temperature}, top_k {sampling.top_k}: must be >= 0"
        )
    if abs(request.priority) > MAX_PRIORITY:
        return Refusal("priority", f"priority {request.priority} is outside -{MAX_PRIORITY}..{MAX_PRIORITY}")
    if request.max_age_ns <= 0:
        return Refusal("max_age", f"max_age is {request.max_age_ns} ns; it must be positive")
    if len(request.prompt) > _MAX_CHARS_PER_TOKEN * layout.row_capacity:
        return Refusal(
            "too_long", f"{len(request.prompt)} characters of prompt, a row has {layout.row_capacity} places"
        )
    return None


class Inbox:
    """What other threads want of the engine, until the control thread takes it.

    Holds at most ``max_size`` requests, and of one task at most half as many: a flood leaves room for others.
    It also knows which ids are alive, so that a caller learns at once whether a cancel hit anything.
    ``gate`` is entered around every ``take``.
    """

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._lock = threading.Lock()
        self._submissions: list[Submission] = []
        self._cancelled: list[str] = []
        self._alive: dict[str, str] = {}  # request_id -> task
        self._untold: set[str] = set()  # have ended; their final deltas have not been taken
        self._refusals: Counter[str] = Counter()
        self.gate: AbstractContextManager[object] = nullcontext()

    def put(self, submission: Submission) -> Refusal | None:
        """Take in a submission; a refusal means that nothing was taken and nothing more will come of it."""
        request = submission.request
        with self._lock:
            if refusal := self._refuse(request.request_id, request.task):
                self._refusals[f"text_{refusal.code}"] += 1
                return refusal
            self._alive[request.request_id] = request.task
            self._submissions.append(submission)
            return None

    def _refuse(self, request_id: str, task: str) -> Refusal | None:
        if not request_id:
            return Refusal("no_id", "the request has no id")
        if request_id in self._alive:
            return Refusal("duplicate_id", f"a request '{request_id}' is alive")
        of_task = sum(item.request.task == task for item in self._submissions)
        if of_task >= self._max_size // 2 or len(self._submissions) >= self._max_size:
            return Refusal("flood", f"{of_task} requests of '{task}' came within one cycle, the most allowed")
        return None

    def cancel(self, request_id: str, task: str) -> int:
        """Mark one text (by id), all of ``task``, or all when both are empty. Number of texts marked."""
        with self._lock:
            ids = [
                i
                for i, its_task in self._alive.items()
                if (i == request_id if request_id else task in ("", its_task)) and i not in self._cancelled
            ]
            self._cancelled += ids
            return len(ids)

    def is_alive(self, request_id: str) -> bool:
        """True while a text of this id has not ended, or its end has not been told."""
        with self._lock:
            return request_id in self._alive or request_id in self._untold

    def take(self) -> tuple[list[Submission], list[str]]:
        """New submissions and the ids to be cancelled, both in order. Control thread."""
        with self.gate, self._lock:
            submissions, self._submissions = self._submissions, []
            cancelled, self._cancelled = self._cancelled, []
            return submissions, cancelled

    def forget(self, request_id: str) -> None:
        """The text has ended: its id may be used again. Control thread."""
        with self._lock:
            self._alive.pop(request_id, None)
            self._untold.add(request_id)

    def note_told(self) -> None:
        """The ends of all texts that are not alive are on their way. Control thread."""
        with self._lock:
            self._untold.clear()

    def count_refusal(self, code: str) -> None:
        """Count a request that was taken and is refused now."""
        with self._lock:
            self._refusals[f"text_{code}"] += 1

    def refusals(self) -> dict[str, int]:
        """Requests refused so far, by kind."""
        with self._lock:
            return dict(self._refusals)
