"""A question as it was asked, made a text request by the rules of its task. No ROS, no engine."""

from __future__ import annotations

import dataclasses
import difflib
import math
from typing import Any

from oxygen_ros.config import ASK_TASK
from oxygen_ros.engine.tasks import TextTasks
from oxygen_ros.errors import ContractError
from oxygen_ros.types import TextRequest

S = 1_000_000_000
MAX_ID_LENGTH = 200
MAX_AGE_S = 86_400.0


@dataclasses.dataclass(frozen=True)
class Question:
    """What somebody asked. Zero or empty means the default of the task."""

    prompt: str = ""
    request_id: str = ""
    task: str = ""
    max_tokens: int = 0
    priority: int = 0
    temperature: float = 0.0
    top_k: int = 0
    seed: int = 0
    max_age_s: float = 0.0

    @classmethod
    def of(cls, message: Any) -> Question:
        """The question of anything with the fields of TextRequest.msg."""
        return cls(**{field.name: getattr(message, field.name) for field in dataclasses.fields(cls)})


def to_request(question: Question, tasks: TextTasks) -> TextRequest:
    """The request that ``question`` stands for. Whether it fits the model and the memory, the engine says.

    Raises:
        ContractError: with a code, if it cannot be a request.
    """
    name = question.task or ASK_TASK
    if name not in tasks:
        near = difflib.get_close_matches(name, tasks.names(), n=1) or tasks.names()
        raise ContractError("unknown_task", f"no text task '{name}'", ", ".join(near))
    if not (math.isfinite(question.temperature) and math.isfinite(question.max_age_s)):
        raise ContractError(
            "not_a_number", f"temperature {question.temperature}, max_age_s {question.max_age_s}"
        )
    if question.temperature < 0 or question.max_age_s < 0:
        raise ContractError("negative", f"temperature {question.temperature}, max_age_s {question.max_age_s}")
    if len(question.request_id) > MAX_ID_LENGTH:
        length = len(question.request_id)
        raise ContractError("long_id", f"request_id of {length} characters, wanted at most {MAX_ID_LENGTH}")
    request = tasks.ask(name)
    sampling = dataclasses.replace(
        request.sampling,
        max_tokens=question.max_tokens or request.sampling.max_tokens,
        temperature=question.temperature or request.sampling.temperature,
        top_k=question.top_k or request.sampling.top_k,
        seed=question.seed or request.sampling.seed,
    )
    age_ns = round(min(question.max_age_s, MAX_AGE_S) * S) or request.max_age_ns
    return dataclasses.replace(
        request,
        request_id=question.request_id or request.request_id,
        prompt=question.prompt or request.prompt,
        sampling=sampling,
        priority=question.priority or request.priority,
        max_age_ns=age_ns,
    )
