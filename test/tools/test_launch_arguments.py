"""Launch arguments become parameters of the right name and type, and only when they are given."""

import pytest

from oxygen_ros.config.schema import oxygen_schema
from oxygen_ros.tools.launch_arguments import ARGUMENTS, parameters_from

DEFAULTS = {argument.name: argument.default for argument in ARGUMENTS}


def test_arguments_are_those_of_the_design():
    assert list(DEFAULTS) == [
        "preset",
        "device",
        "checkpoint",
        "params_file",
        "namespace",
        "use_sim_time",
        "autostart",
        "enable_control",
    ]


def test_arguments_every_parameter_exists():
    known = {spec.name for spec in oxygen_schema().parameters} | {"use_sim_time", ""}
    assert [argument.name for argument in ARGUMENTS if argument.parameter not in known] == []


def test_parameters_nothing_given_only_what_has_a_default():
    assert parameters_from(DEFAULTS) == {"use_sim_time": False, "autostart": True}


def test_parameters_all_given_typed():
    given = {
        "preset": "libero",
        "device": "cpu",
        "checkpoint": "/models/x",
        "params_file": "/robot.yaml",
        "namespace": "left",
        "use_sim_time": "true",
        "autostart": "false",
        "enable_control": "true",
    }
    assert parameters_from(given) == {
        "preset": "libero",
        "device": "cpu",
        "model.checkpoint": "/models/x",
        "params_file": "/robot.yaml",
        "use_sim_time": True,
        "autostart": False,
        "enable_control": True,
    }


def test_parameters_no_boolean_refused():
    with pytest.raises(KeyError, match="perhaps"):
        parameters_from({**DEFAULTS, "autostart": "perhaps"})


def test_choices_of_booleans_allow_the_default():
    for argument in ARGUMENTS:
        assert argument.choices is None or argument.default in argument.choices
