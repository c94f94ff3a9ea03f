import pytest

from oxygen_ros.engine.tasks import TextTask, TextTasks
from oxygen_ros.errors import ConfigError
from oxygen_ros.types import SamplingParams, TextKind, TextRequest

MEMORY = TextTask(
    "memory", TextKind.MEMORY, "Memory: ", every_cycles=3, sampling=SamplingParams(max_tokens=20), priority=2,
    max_age_ns=5, is_superseding=True, supersede_running=True,
)  # fmt: skip


def test_task_becomes_a_request_with_all_its_limits():
    assert MEMORY.request(12) == TextRequest(
        "memory-12", "memory", TextKind.MEMORY, "Memory: ", SamplingParams(max_tokens=20), 2, 5, True, True
    )


def test_numbers_run_on_and_never_repeat():
    tasks = TextTasks([MEMORY, TextTask("ask", TextKind.ASK)])
    due = [request.request_id for n in range(1, 8) for request in tasks.due(n)]
    assert due == ["memory-1", "memory-2", "memory-3"]  # cycles 1, 4 and 7
    assert [tasks.ask("memory").request_id, tasks.ask("ask").request_id] == ["memory-4", "ask-1"]
    assert tasks.names() == ("memory", "ask")
    assert tasks["ask"].every_cycles is None
    assert "no" not in tasks


@pytest.mark.parametrize(
    "tasks",
    [[MEMORY, MEMORY], [TextTask("", TextKind.ASK)], [TextTask("x", TextKind.ASK, every_cycles=0)]],
    ids=["two of one name", "no name", "every 0 cycles"],
)
def test_tasks_that_cannot_be_told_apart_or_triggered_are_refused(tasks):
    with pytest.raises(ConfigError, match="text task"):
        TextTasks(tasks)
