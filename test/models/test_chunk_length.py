"""A preset's chunk length against the checkpoint's: refused with what to set, and loaded when that is set."""

from __future__ import annotations

import numpy as np
import pytest
from fakes import Sinks, Source, observation
from lerobot_cases import Frame, checkpoint_folder, tokenizer_folder

from oxygen_ros.assembly import build_brain
from oxygen_ros.clock import SteadyClock
from oxygen_ros.config import load_config
from oxygen_ros.errors import ConfigError
from oxygen_ros.runtime.control_cycle import Numbering
from oxygen_ros.types import ActionChunk

CASE = "pi05_libero_seed0"


def brain(**overrides):
    given = {
        "model.checkpoint": str(checkpoint_folder(CASE)),
        "model.tokenizer": str(tokenizer_folder(CASE)),
        **overrides,
    }
    return build_brain(load_config(preset="libero", device="cpu", overrides=given).config, SteadyClock())


def test_b35_checkpoint_of_50_actions_is_refused_by_the_libero_preset_with_what_to_set():
    with pytest.raises(ConfigError) as caught:
        brain()
    assert caught.value.code == "horizon"
    assert caught.value.message == "model.horizon is 10, the checkpoint's chunks have 50 actions"
    assert caught.value.suggestion == "set model.horizon to 50"


def test_b35_checkpoint_of_50_actions_acts_when_the_suggestion_is_followed():
    made = brain(**{"model.horizon": 50})
    inputs = Frame(CASE, "frame0").inputs()
    pictures = {"base": "observation.images.image", "left_wrist": "observation.images.image2"}
    seen = observation(
        1,
        images={role: inputs[name] for role, name in pictures.items()},
        state=inputs["observation.state"].astype(np.float32),
    )
    sinks = Sinks()
    cycle = made.cycle(
        source=Source([seen]),
        actions=sinks,
        texts=sinks,
        reports=sinks,
        clock=SteadyClock(),
        numbering=Numbering(),
    )
    cycle.run()
    (chunk,) = (event for event in sinks.events if isinstance(event, ActionChunk))
    assert chunk.actions.shape == (50, 7)
    assert chunk.execute_horizon == 5, "the preset's, of 50"
    assert np.isfinite(chunk.actions).all()
