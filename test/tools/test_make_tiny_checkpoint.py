"""The tiny checkpoint loads by the ordinary way, acts and writes."""

import json

import numpy as np
import pytest
import torch

from oxygen_ros.models.pi05.config_source import config_from_json
from oxygen_ros.models.pi05.model import Pi05Model
from oxygen_ros.models.protocol import ModelInputs
from oxygen_ros.models.tensor_source import SafetensorsSource
from oxygen_ros.models.tokenizers import open_tokenizer
from oxygen_ros.runners.eager import EagerRunner
from oxygen_ros.runners.protocol import BatchRow
from oxygen_ros.tools.make_tiny_checkpoint import ROBOTS, main, write_checkpoint
from oxygen_ros.types import SamplingParams


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tiny") / "checkpoint"
    write_checkpoint(path, "libero")
    return path


def runner_of(folder):
    config = config_from_json(json.loads((folder / "config.json").read_text()))
    source = SafetensorsSource(folder / "model.safetensors")
    model = Pi05Model.from_source(config, source, torch.device("cpu"))
    return EagerRunner(model, model.kv_layout(2, 2, 48))


def test_tiny_checkpoint_is_a_few_megabytes(folder):
    sizes = {path.name: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    assert set(sizes) == {"config.json", "model.safetensors", "tokenizer.json", "norm_stats.json"}
    assert sum(sizes.values()) < 8e6


def test_tiny_checkpoint_gives_finite_actions_and_text_of_characters(folder):
    run, tokenizer = runner_of(folder), open_tokenizer(folder)
    prompt = [
        tokenizer.begin_id,
        *tokenizer.encode("Task: put the red cube in the bowl, State: 0 255;\nAction: "),
    ]
    images = np.zeros((2, 3, 112, 112), np.float32)
    num_tokens = run.prefill(ModelInputs(1, images, np.array(prompt)), 0)
    assert num_tokens == 2 * 64 + len(prompt)
    actions = run.sample_actions(0, "default", seed=0)
    assert actions.shape == (10, 32)
    assert np.isfinite(actions).all()
    for written in range(12):
        run.decode_step([BatchRow(0, 0, num_tokens, max(0, written - 1), (), written, SamplingParams())])
    text = tokenizer.decode(run.read_tokens()[0])
    assert len(text.split()) >= 6
    assert text.isascii()
    assert "\N{REPLACEMENT CHARACTER}" not in text
    assert 1 in tokenizer.end_ids


@pytest.mark.parametrize("preset", ROBOTS)
def test_tiny_checkpoint_has_statistics_of_its_robot(tmp_path, preset):
    write_checkpoint(tmp_path / "out", preset)
    stats = json.loads((tmp_path / "out" / "assets" / preset / "norm_stats.json").read_text())["norm_stats"]
    assert {len(values) for values in stats["state"].values()} == {ROBOTS[preset].state_dim}
    assert {len(values) for values in stats["actions"].values()} == {ROBOTS[preset].action_dim}
    assert set(stats["state"]) == {"mean", "std", "q01", "q99"}


def test_same_seed_writes_the_same_bytes(tmp_path, folder):
    write_checkpoint(tmp_path / "same", "libero")
    write_checkpoint(tmp_path / "other", "libero", seed=1)
    weights = "model.safetensors"
    assert (tmp_path / "same" / weights).read_bytes() == (folder / weights).read_bytes()
    assert (tmp_path / "other" / weights).read_bytes() != (folder / weights).read_bytes()


def test_command_writes_once_and_refuses_a_folder_with_content(tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main([out, "--preset", "droid"]) == 0
    assert "preset droid" in capsys.readouterr().out
    assert main([out]) == 2
    assert "not an empty folder" in capsys.readouterr().err
    assert main([str(tmp_path / "x"), "--preset", "humanoid"]) == 2
    assert "aloha" in capsys.readouterr().err
