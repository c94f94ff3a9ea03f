"""Limits from a configuration, rate limit, pacing, delay, throttled refusals, questions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oxygen_ros.clock import SimClock
from oxygen_ros.config import load_config
from oxygen_ros.engine.tasks import TextTask, TextTasks
from oxygen_ros.errors import ContractError
from oxygen_ros.runtime.delay import DelayEstimate
from oxygen_ros.runtime.limits import JointLimits
from oxygen_ros.runtime.pacing import Pacer
from oxygen_ros.runtime.rate_limit import RateLimit
from oxygen_ros.runtime.refusals import Refusals
from oxygen_ros.runtime.text_intake import Question, to_request
from oxygen_ros.types import SamplingParams, TextKind

MS = 1_000_000
S = 1_000 * MS


def _limits(**joint) -> JointLimits:
    given = {
        "robot.camera_roles": ["front"],
        "robot.cameras.front.topic": "front",
        "robot.joint_names": ["j"],
        "cycle.action_rate_hz": 10.0,
    }
    given |= {f"robot.joints.j.{key}": value for key, value in joint.items()}
    return JointLimits.of(load_config(overrides=given).config)


@pytest.mark.parametrize(
    ("joint", "previous", "target", "wanted"),
    [
        ({"max_velocity": 2.0}, 1.0, 5.0, 1.2),
        ({"max_velocity": 2.0, "max_step": 0.1}, 1.0, 5.0, 1.1),
        ({"position_max": 1.5}, 1.0, 5.0, 1.5),
        ({"command_kind": "velocity", "max_velocity": 2.0}, 0.0, 5.0, 2.0),
        ({"command_kind": "velocity", "max_velocity": 2.0, "max_step": 0.5}, 0.0, -5.0, -0.5),
        ({"command_kind": "delta", "max_velocity": 2.0}, 0.0, 5.0, 0.2),
        ({"command_kind": "delta", "max_step": 0.05}, 9.0, -5.0, -0.05),
        ({}, 1.0, 5.0, 5.0),
        ({"max_step": 0.1}, math.nan, 5.0, 5.0),
    ],
)
def test_limits_mean_what_the_kind_of_command_needs(joint, previous, target, wanted):
    cut, num_cut = _limits(**joint).cut(np.array([target]), np.array([previous]))
    assert cut[0] == pytest.approx(wanted)
    assert num_cut == (wanted != target)


def test_rate_limit_lets_through_a_burst_and_then_the_rate():
    clock = SimClock()
    limit = RateLimit(10.0, clock)
    assert sum(limit.allows() for _ in range(100)) == 10
    passed = 0
    for _ in range(200):
        clock.advance_ns(10 * MS)
        passed += limit.allows()
    assert passed in (19, 20)


def test_pacer_counts_what_was_missed_and_drops_what_would_be_a_burst():
    pacer = Pacer(20 * MS)
    ticks_ms = [0, 20, 41, 59, 189, 198, 218, 240]
    assert [pacer.tick(ms * MS) for ms in ticks_ms] == [0, 0, 0, 0, 5, None, 0, 0]


def test_delay_is_the_largest_of_the_newest():
    delay = DelayEstimate(3)
    assert delay.num_actions is None
    for seen in (21, 9, 10, 9):
        delay.observe(seen)
    assert delay.num_actions == 10


def test_refusals_are_counted_all_and_said_at_once_then_every_ten_seconds():
    clock, said = SimClock(), []
    refusals = Refusals(clock, said.append)
    for _ in range(250):
        refusals.add("nan_state", "joint_states", "j1")
        clock.advance_ns(100 * MS)
    refusals.add("decode_errors", "front/image", "16UC1")
    assert refusals.counts() == {"nan_state": 250, "decode_errors": 1}
    assert len(said) == 4
    assert said[0] == "refused (nan_state) from joint_states: j1"
    assert "99 more" in said[1]


TASKS = TextTasks(
    [
        TextTask("ask", TextKind.ASK, priority=20, sampling=SamplingParams(max_tokens=48, seed=3)),
        TextTask("memory", TextKind.MEMORY, prompt="Memory: ", max_age_ns=5 * S),
    ]
)


def test_empty_question_takes_everything_from_its_task():
    request = to_request(Question(), TASKS)
    assert (request.task, request.kind, request.priority) == ("ask", TextKind.ASK, 20)
    assert request.sampling == SamplingParams(max_tokens=48, seed=3)
    assert request.request_id.startswith("ask-")
    memory = to_request(Question(task="memory"), TASKS)
    assert (memory.prompt, memory.max_age_ns) == ("Memory: ", 5 * S)


def test_what_a_question_says_wins():
    said = Question("Why?", "mine", "memory", 7, 3, 0.5, 4, 99, 1.5)
    request = to_request(said, TASKS)
    assert (request.request_id, request.prompt, request.priority) == ("mine", "Why?", 3)
    assert request.max_age_ns == round(1.5 * S)
    assert request.sampling == SamplingParams(max_tokens=7, temperature=0.5, top_k=4, seed=99)


@pytest.mark.parametrize(
    ("question", "code"),
    [
        (Question(task="memry"), "unknown_task.*memory"),
        (Question(temperature=math.nan), "not_a_number"),
        (Question(max_age_s=math.inf), "not_a_number"),
        (Question(temperature=-1.0), "negative"),
        (Question(request_id="x" * 201), "long_id"),
    ],
)
def test_question_that_makes_no_sense_is_refused_by_code(question, code):
    with pytest.raises(ContractError, match=code):
        to_request(question, TASKS)
