"""The checkpoint of the demonstration is what its manifest and scores speak of, and does what they say."""

import hashlib
import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from oxygen_ros.sim.rules import FIRST_SEED
from oxygen_ros.training.episodes import run_episodes
from oxygen_ros.training.product import ProductPolicy
from oxygen_ros.training.score import DECODE_STEPS

CHECKPOINT = Path(__file__).resolve().parents[2] / "checkpoints" / "tabletop"
NUM_REPEATED = 3


def read(name: str) -> dict:
    return json.loads((CHECKPOINT / name).read_text(encoding="utf-8"))


def test_checkpoint_is_small_and_belongs_to_its_manifest_and_scores():
    weights = (CHECKPOINT / "model.safetensors").read_bytes()
    digest = hashlib.sha256(weights).hexdigest()
    assert len(weights) < 20e6
    assert read("manifest.json")["sha256"] == digest
    assert read("scores.json")["checkpoint_sha256"] == digest


def test_scores_are_of_fifty_unseen_seeds_and_their_gates_follow_from_the_rates():
    scores = read("scores.json")
    assert scores["num_seeds"] == len(scores["episodes"]) >= 50
    assert scores["first_seed"] >= FIRST_SEED
    successes = sum(episode["success"] for episode in scores["episodes"])
    assert scores["success_rate"] == pytest.approx(successes / scores["num_seeds"], abs=1e-4)
    assert scores["gates"] == {
        "success_rate_at_least_0.80": scores["success_rate"] >= 0.80,
        "false_claim_rate_at_most_0.05": scores["false_claim_rate"] <= 0.05,
    }


def test_first_episodes_end_as_the_scores_say():
    recorded = read("scores.json")["episodes"][:NUM_REPEATED]
    policy = ProductPolicy(CHECKPOINT, decode_steps=DECODE_STEPS)
    seeds = range(recorded[0]["seed"], recorded[0]["seed"] + NUM_REPEATED)
    again = run_episodes(policy, seeds, lambda result: None)
    assert [(r.seed, r.task, r.is_success) for r in again] == [
        (e["seed"], e["task"], e["success"]) for e in recorded
    ]
