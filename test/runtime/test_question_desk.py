"""Questions that are refused: one final message each, and none for a text that is being written."""

from __future__ import annotations

import pytest
from fakes import EngineBench, budget, inputs, request

from oxygen_ros.clock import SimClock
from oxygen_ros.config import load_config
from oxygen_ros.engine.tasks import TextTask, TextTasks
from oxygen_ros.runtime.question_desk import QuestionDesk
from oxygen_ros.runtime.refusals import Refusals
from oxygen_ros.runtime.text_intake import Question
from oxygen_ros.types import FinishReason, TextKind


class Desk:
    """A desk before a real engine, and what it answers itself."""

    def __init__(self) -> None:
        clock = SimClock()
        self.answers = []
        self.bench = EngineBench({"Q": [100, 101]})
        config = load_config(preset="libero", overrides={"runner.kind": "fake"}).config
        refusals = Refusals(clock, lambda text: None)
        tasks = TextTasks([TextTask("ask", TextKind.ASK)])
        self.desk = QuestionDesk(config, self.bench.engine, tasks, refusals, clock, self.answers.append)

    def ask(self, request_id):
        self.desk.ask(Question(prompt="Q", request_id=request_id), "ask")
        return [(delta.request_id, delta.finish_reason) for delta in self.answers]


def test_question_with_too_long_an_id_is_refused_once_under_what_can_be_shown_of_it():
    assert Desk().ask("x" * 201) == [("x" * 200, FinishReason.REFUSED)]


@pytest.mark.parametrize("asked", ["x" * 200, "x" * 201])
def test_refused_question_never_ends_a_text_that_goes_by_its_id(asked):
    """The id that was shown shortened was another text's: that one had two final messages."""
    made = Desk()
    made.bench.engine.submit(request("x" * 200))
    assert made.ask(asked) == []


def test_refused_question_is_not_told_before_the_end_of_a_text_that_goes_by_its_id():
    """The text has ended, and its last pieces are published at the end of the cycle only."""
    made = Desk()
    engine = made.bench.engine
    engine.submit(request("q"))
    engine.prefill(inputs(1), 1)
    engine.decode(budget())
    refused = Question(request_id="q", task="nonsense")
    made.desk.ask(refused, "ask")
    assert made.answers == []
    assert [delta.request_id for delta in engine.take_deltas() if delta.is_final] == ["q"]
    made.desk.ask(refused, "ask")
    assert [delta.finish_reason for delta in made.answers] == [FinishReason.REFUSED]
