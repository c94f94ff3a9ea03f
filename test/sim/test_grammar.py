"""Sentences that are true, and claims read back from sentences."""

from dataclasses import replace

import numpy as np
import pytest

from oxygen_ros.sim import grammar
from oxygen_ros.sim.scorer import ASK, MEMORY, Birth, TextTally
from oxygen_ros.sim.truth import ALL_TASKS, Task, Truth

TRUTH = Truth(
    hand=np.array([0.4, 0.0, 0.2]),
    command=np.array([0.4, 0.0, 0.2]),
    opening=0.045,
    is_closing=False,
    cubes=np.array([[0.35, -0.10, 0.024], [0.42, 0.01, 0.024], [0.48, 0.10, 0.024]]),
    containers=np.array([[0.42, 0.23], [0.42, -0.23]]),
    held=None,
)
HOLDING_BLUE = replace(TRUTH, held=2)
RED_IN_BOWL = replace(TRUTH, cubes=np.array([[0.43, 0.22, 0.03], *TRUTH.cubes[1:]]))
SITUATIONS = (TRUTH, HOLDING_BLUE, RED_IN_BOWL)


@pytest.mark.parametrize("truth", SITUATIONS)
@pytest.mark.parametrize("task", ALL_TASKS)
def test_every_sentence_of_the_truth_makes_only_true_claims(truth, task):
    texts = [grammar.memory_sentence(truth, task), grammar.next_sentence(truth, task)]
    texts += [grammar.answer(question, truth) for question in grammar.questions()]
    for text in texts:
        assert grammar.read_claims(text).is_true(truth), text


def test_read_claims_of_held_and_placed_finds_both_kinds():
    assert grammar.read_claims(grammar.memory_sentence(HOLDING_BLUE, Task(2, 0))).held == {2}
    assert grammar.read_claims(grammar.memory_sentence(RED_IN_BOWL, Task(0, 0))).placed == {(0, 0)}
    assert grammar.read_claims("Yes, the red cube is in the bowl.").placed == {(0, 0)}


@pytest.mark.parametrize(
    "text",
    [
        "No, the red cube is not in the bowl.",
        "So far I have done nothing. I hold nothing and the red cube is not yet in the bowl.",
        "Next I lower the red cube and let it go in the bowl.",
        "I do not know that.",
        "",
    ],
)
def test_read_claims_of_a_denial_or_a_plan_is_no_claim(text):
    assert not grammar.read_claims(text).is_claim


def test_read_claims_of_a_lie_is_not_true():
    assert not grammar.read_claims("I hold the red cube.").is_true(HOLDING_BLUE)
    assert not grammar.read_claims(grammar.memory_sentence(RED_IN_BOWL, Task(0, 0))).is_true(TRUTH)


def test_answer_where_tells_the_place_on_the_grid():
    assert grammar.answer("Where is the red cube?", TRUTH) == (
        "The red cube is on the table, about 35 cm ahead and 10 cm to the right."
    )
    assert "in the middle" in grammar.answer("Where is the green cube?", TRUTH)
    assert grammar.answer("Where is the blue cube?", HOLDING_BLUE) == "The blue cube is in my hand."
    assert grammar.answer("Where is the red cube?", RED_IN_BOWL) == "The red cube is in the bowl."


def test_answer_to_an_unknown_question_says_so():
    assert grammar.answer("Who won the match?", TRUTH) == grammar.UNKNOWN_ANSWER


def test_tally_of_a_lie_counts_a_false_claim_and_wrong_slots():
    tally = TextTally()
    birth = Birth(MEMORY, grammar.MEMORY_PROMPT, TRUTH, Task(0, 0), tick=3)
    tally.add(grammar.memory_sentence(RED_IN_BOWL, Task(0, 0)), birth, TRUTH, tick_at_end=27)
    scores = tally.summary(tick_s=1 / 30)
    assert (scores["exact_match"], scores["false_claim_rate"], scores["slot_accuracy"]) == (0.0, 1.0, 0.5)
    assert scores["mean_age_s"] == pytest.approx(0.8)


def test_tally_of_a_text_that_was_true_at_birth_is_stale_but_not_false():
    tally = TextTally()
    birth = Birth(MEMORY, grammar.MEMORY_PROMPT, TRUTH, Task(0, 0), tick=0)
    tally.add(grammar.memory_sentence(TRUTH, Task(0, 0)), birth, RED_IN_BOWL, tick_at_end=20)
    scores = tally.summary(tick_s=1 / 30)
    assert (scores["exact_match"], scores["stale_share"]) == (1.0, 1.0)
    assert scores["false_claim_rate"] is None


def test_tally_of_a_place_measures_its_distance():
    tally = TextTally()
    birth = Birth(ASK, "Where is the red cube?", TRUTH, Task(0, 0), tick=0)
    tally.add("The red cube is on the table, about 35 cm ahead and 30 cm to the left.", birth, TRUTH, 1)
    assert tally.place_errors_cm == [pytest.approx(40.0)]
    assert (tally.slots, tally.slots_right) == (3, 2)
