"""What the diagnostics say of the model: precision and compilations as fields, and a WARN if wrong."""

from dataclasses import replace

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from diagnostic_msgs.msg import DiagnosticStatus
from mailbox_factory import Bench

from oxygen_ros.assembly import build_brain
from oxygen_ros.clock import SimClock
from oxygen_ros.config import load_config
from oxygen_ros.ros.brain_health import BrainHealth

S = 1_000_000_000


class NoWatch:
    problems = {}  # noqa: RUF012


def model_line(dtype="float32", num_compilations=0):
    def changed(model):
        warm_up = model.runner.warm_up
        model.runner.warm_up = lambda: replace(warm_up(), dtype=dtype)
        model.runner.num_compilations = num_compilations
        return model

    config = load_config(preset="libero", overrides={"runner.kind": "fake", "runner.dtype": "float32"}).config
    brain = build_brain(config, SimClock(), adapt=changed)
    line = BrainHealth("brain", brain, Bench().box, NoWatch(), SimClock()).lines()[-1]
    return line, {pair.key: pair.value for pair in line.values}


def test_model_as_asked_is_ok():
    line, values = model_line()
    assert line.level == DiagnosticStatus.OK
    assert (values["dtype"], values["dtype_asked"], values["compilations"]) == ("float32", "float32", "0")


@pytest.mark.parametrize(
    ("changes", "words", "field"),
    [
        ({"dtype": "bfloat16"}, "precision not as asked", ("dtype", "bfloat16")),
        ({"num_compilations": 4}, "4 compilations after warm-up", ("compilations", "4")),
    ],
    ids=["b47", "b43"],
)
def test_b43_b47_model_that_is_not_as_asked_is_a_warning_with_its_figure(changes, words, field):
    line, values = model_line(**changes)
    assert line.level == DiagnosticStatus.WARN
    assert words in line.message
    assert values[field[0]] == field[1]


def test_b25_cycles_that_stop_coming_are_an_error_and_idle_nodes_are_none():
    """A model that hangs left the last line standing: OK, acting."""
    config = load_config(preset="libero", overrides={"runner.kind": "fake"}).config
    clock = SimClock()
    health = BrainHealth("brain", build_brain(config, clock), Bench().box, NoWatch(), clock)
    clock.advance_ns(60 * S)
    assert health.lines(is_active=False)[0].message == "no cycle yet"
    for _ in range(5):
        clock.advance_ns(S)
        assert health.lines()[0].level == DiagnosticStatus.WARN
    clock.advance_ns(S)
    line = health.lines()[0]
    assert (line.level, line.message) == (DiagnosticStatus.ERROR, "no cycle for 6.0 s")
