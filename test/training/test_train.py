"""The training and scoring commands, run for a moment; the committed checkpoint and its scores."""

import json
import re
from dataclasses import replace

import pytest
import torch

from oxygen_ros.sim.rules import FIRST_SEED
from oxygen_ros.training import score, train
from oxygen_ros.training.optimiser import orthogonalise
from oxygen_ros.training.recipe import smoke_recipe
from oxygen_ros.training.team import Team
from oxygen_ros.training.trainer import Trainer


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder = tmp_path_factory.mktemp("smoke")
    train.main(["--smoke", "--out", str(folder), "--seed", "3"])
    return folder


def log_of(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_train_smoke_runs_every_part_and_writes_a_checkpoint(smoke):
    events = {entry["event"] for entry in log_of(smoke) if "event" in entry}
    assert {"warmed up", "round 0"} <= events
    manifest = json.loads((smoke / "checkpoint" / "manifest.json").read_text())
    assert (manifest["seed"], manifest["steps_done"]) == (3, {"stage": "talk", "step": 2})
    assert "--smoke" in manifest["command"]
    assert re.fullmatch(r"[0-9a-f]{7,40}(-dirty)?|unknown", manifest["commit"])
    assert 2e6 < manifest["parameters"] < 5e6


def test_train_again_goes_on_from_the_saved_state(smoke):
    recipe = replace(smoke_recipe(3), talk_steps=4)
    trainer = Trainer(Team(0, 1), recipe, smoke, None)
    trainer.run()
    assert any(entry.get("event") == "resumed" for entry in log_of(smoke))
    assert trainer.facts()["steps_done"] == {"stage": "talk", "step": 4}
    assert re.fullmatch(r"exact \d+/\d+, false claims \d+/\d+", trainer.facts()["held_out"]["answers"])


def test_score_of_an_untrained_checkpoint_reports_its_failure(smoke):
    scores = score.score(smoke / "checkpoint", episodes=1, first_seed=FIRST_SEED)
    assert scores["num_seeds"] == 1
    assert scores["success_rate"] == 0.0
    assert not scores["gates"]["success_rate_at_least_0.80"]
    assert scores["texts"]["texts"] > 20
    assert scores["exact_match"] < 0.5
    assert {"random_weights", "memory_state_only", "memory_nothing_yet"} <= set(scores["baselines"])


def test_wilson_interval_holds_the_rate():
    low, high = score.wilson(45, 50)
    assert low < 0.9 < high
    assert score.wilson(50, 50)[1] == 1.0


def test_orthogonalise_of_a_random_matrix_has_singular_values_near_one():
    values = torch.linalg.svdvals(
        orthogonalise(torch.randn(24, 40, generator=torch.Generator().manual_seed(0)))
    )
    assert float(values.min()) > 0.6
    assert float(values.max()) < 1.3
