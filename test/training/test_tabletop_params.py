"""config/tabletop.yaml drives a checkpoint as the scores do: what is shown is what was scored."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from oxygen_ros.assembly.pi05 import open_pi05
from oxygen_ros.config import load_config
from oxygen_ros.config.root import OxygenConfig
from oxygen_ros.sim import grammar
from oxygen_ros.sim.scene import CONTROL_HZ
from oxygen_ros.training.checkpoint import write_checkpoint
from oxygen_ros.training.dims import Dims
from oxygen_ros.training.episodes import EXECUTE, MAX_TEXT_TOKENS
from oxygen_ros.training.frames import HORIZON
from oxygen_ros.training.pi05 import TinyPi05
from oxygen_ros.training.product import ProductPolicy
from oxygen_ros.training.score import DECODE_STEPS
from oxygen_ros.training.vocabulary import pieces
from oxygen_ros.types import Observation

PARAMS = Path(__file__).resolve().parents[2] / "config" / "tabletop.yaml"


def configured(checkpoint: Path) -> OxygenConfig:
    overrides = {"model.checkpoint": str(checkpoint)}
    return load_config(params_file=PARAMS, overrides=overrides).config


def test_params_file_has_the_rates_and_prompts_of_the_training():
    config = configured(Path("somewhere"))
    assert (config.preset, config.model.horizon) == ("libero", HORIZON)
    assert (config.cycle.action_rate_hz, config.robot.trained_rate_hz) == (CONTROL_HZ, CONTROL_HZ)
    assert (config.cycle.execute_horizon, config.cycle.fixed_decode_steps) == (EXECUTE, DECODE_STEPS)
    tasks = config.text.tasks
    assert {name: task.prompt for name, task in tasks.items()} == {
        "memory": grammar.MEMORY_PROMPT,
        "next": grammar.NEXT_PROMPT,
        "ask": "",
    }
    assert all(task.max_tokens == MAX_TEXT_TOKENS and task.temperature == 0 for task in tasks.values())
    assert [tasks[name].every_cycles > 0 for name in ("memory", "next", "ask")] == [True, True, False]


def test_observation_becomes_the_same_model_input_as_in_the_scores(tmp_path):
    write_checkpoint(tmp_path, TinyPi05(Dims(vocab_size=len(pieces()))), {})
    rng = np.random.default_rng(0)
    images = {role: rng.integers(0, 256, (64, 64, 3), np.uint8) for role in ("base", "left_wrist")}
    state = np.array([0.4, 0.1, 0.15, 0.0, 1.57, 0.0, 0.045, -0.045], np.float32)
    seen = Observation(1, 0, images, state, "put the red cube in the bowl")
    shown = open_pi05(configured(tmp_path)).processor.prepare(seen)
    scored = ProductPolicy(tmp_path, decode_steps=DECODE_STEPS).processor.prepare(seen)
    assert vars(shown).keys() == vars(scored).keys()
    for name, value in vars(scored).items():
        assert np.array_equal(getattr(shown, name), value), name
