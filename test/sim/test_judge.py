"""Texts are judged by the instant they were born at, whatever has happened since."""

import dataclasses

import numpy as np
import pytest

from oxygen_ros.sim import grammar
from oxygen_ros.sim.judge import REMEMBERED_TICKS, Judge, knows
from oxygen_ros.sim.scorer import ASK, MEMORY, NEXT
from oxygen_ros.sim.truth import Task
from oxygen_ros.sim.truth_message import TruthMessage
from oxygen_ros.sim.world import Tabletop, random_layout

RED, BOWL = 0, 0
TASK = Task(RED, BOWL)
TOLD = TASK.instruction


@pytest.fixture(scope="module")
def empty():
    world = Tabletop()
    world.reset(random_layout(np.random.default_rng(5)))
    return world.truth()


@pytest.fixture
def judge(empty):
    """Nothing is held at 1 s, the red cube is at 2 s."""
    made = Judge()
    held = dataclasses.replace(empty, held=RED)
    for stamp_s, truth in ((1, empty), (2, held)):
        made.see(TruthMessage(stamp_s * 10**9, 1, 5, TASK, TOLD, 30 * stamp_s, truth))
    return made


def test_memory_is_judged_by_its_birth_not_by_what_is_so_now(judge):
    nothing = grammar.nothing_done("the red cube", "in the bowl")
    old = judge.judge(MEMORY, "", nothing, 10**9, TOLD)
    new = judge.judge(MEMORY, "", nothing, 2 * 10**9, TOLD)
    assert (old.is_right, old.is_false_claim) == (True, False)
    assert (new.is_right, new.is_false_claim) == (False, False), "wrong, but it claims nothing"
    assert "I hold it now" in new.true_text
    assert (judge.tally.texts, judge.tally.exact, judge.tally.stale) == (2, 1, 1)
    assert judge.tally.ages == [30, 0]


def test_false_claim_is_counted_as_one(judge):
    text = "So far I have picked up the red cube. I hold it now and it is not yet in the bowl."
    assert judge.judge(MEMORY, "", text, 10**9, TOLD).is_false_claim
    assert judge.judge(MEMORY, "", text, 2 * 10**9, TOLD).is_right
    assert judge.tally.summary(1 / 30)["false_claim_rate"] == 0.5


def test_answer_is_judged_by_its_question_and_a_place_by_its_distance(judge, empty):
    right = grammar.answer("Where is the bowl?", empty)
    assert judge.judge(ASK, "Where is  the bowl?", right, 10**9, TOLD).is_right
    assert not judge.judge(ASK, "Where is the plate?", right, 10**9, TOLD).is_right


def test_task_is_the_one_the_robot_had_been_told(judge, empty):
    other = Task(1, 1)
    text = grammar.next_sentence(empty, other)
    assert judge.judge(NEXT, "", text, 10**9, other.instruction).is_right
    assert not judge.judge(NEXT, "", text, 10**9, "").is_right


@pytest.mark.parametrize(
    ("kind", "prompt", "stamp_ns"),
    [(ASK, "Who are you?", 10**9), ("subtask", "", 10**9), (MEMORY, "", 3 * 10**9)],
)
def test_what_nobody_can_judge_is_not_counted(judge, kind, prompt, stamp_ns):
    assert judge.judge(kind, prompt, "I hold the red cube.", stamp_ns, TOLD) is None
    assert judge.tally.texts == 0


def test_judge_forgets_what_is_long_past(judge, empty):
    for number in range(REMEMBERED_TICKS):
        judge.see(TruthMessage(10**10 + number, 1, 5, TASK, TOLD, 0, empty))
    assert judge.judge(NEXT, "", "Next", 10**9, TOLD) is None
    assert judge.judge(NEXT, "", "Next", 10**10, TOLD) is not None


def test_known_questions_are_those_of_the_grammar():
    assert all(map(knows, grammar.questions()))
    assert not knows("Where is the pink cube?")
