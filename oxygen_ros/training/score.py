"""Scores a checkpoint in closed loop: ``python -m oxygen_ros.training.score --checkpoint DIR``.

The product's inference drives the simulated robot over unseen seeds; every text is judged by what was so when
it was born. Writes DIR/scores.json. Equal seeds give equal scores.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from oxygen_ros.sim.rules import FIRST_SEED
from oxygen_ros.sim.scene import CONTROL_HZ
from oxygen_ros.sim.scorer import TextTally
from oxygen_ros.training.baselines import StateOnly, judge_baselines
from oxygen_ros.training.episodes import EXECUTE, EpisodeResult, run_episodes
from oxygen_ros.training.product import ProductPolicy

SUCCESS_GATE, FALSE_CLAIM_GATE = 0.80, 0.05
DECODE_STEPS = 8
NUM_RANDOM_EPISODES = 10
NUM_WATCHED_EPISODES = 120
MAX_EXAMPLES = 40


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoint", type=Path, default=Path("checkpoints/tabletop"))
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--out", type=Path, help="default: scores.json beside the checkpoint")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    scores = score(options.checkpoint, options.episodes, options.first_seed)
    out = options.out or options.checkpoint / "scores.json"
    out.write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")
    print(
        json.dumps({key: scores[key] for key in ("success_rate", "false_claim_rate", "num_seeds", "gates")})
    )
    print(f"scores: {out}")


def score(checkpoint: Path, episodes: int, first_seed: int) -> dict[str, Any]:
    """All scores of ``checkpoint``; the content of ``scores.json``."""
    seeds = range(first_seed, first_seed + episodes)
    results = run_episodes(ProductPolicy(checkpoint, decode_steps=DECODE_STEPS), seeds, _report)
    births = [born for result in results for born in result.births]
    written = judge_baselines(births, StateOnly(NUM_WATCHED_EPISODES, seed=first_seed - 1))
    random_policy = ProductPolicy(checkpoint, decode_steps=DECODE_STEPS, random_seed=0)
    random_results = run_episodes(random_policy, seeds[:NUM_RANDOM_EPISODES], _report)
    manifest = json.loads((checkpoint / "manifest.json").read_text(encoding="utf-8"))
    tick_s = 1.0 / CONTROL_HZ
    scores = {
        **summary(results),
        "first_seed": first_seed,
        "last_seed": seeds[-1],
        "checkpoint_sha256": manifest["sha256"],
        "driver": "the product's pi0.5 inference, float32 on the CPU; no part of it is scripted",
        "control_hz": CONTROL_HZ,
        "execute_horizon": EXECUTE,
        "decode_steps_per_cycle": DECODE_STEPS,
        "baselines": {
            "random_weights": summary(random_results),
            **{f"memory_{name}": tally.summary(tick_s) for name, tally in written.items()},
        },
        "episodes": [
            {"seed": r.seed, "task": r.task, "success": r.is_success, "ticks": r.ticks} for r in results
        ],
        "wrong_texts": [wrong for result in results for wrong in result.wrong_texts][:MAX_EXAMPLES],
        "versions": {name: version(name) for name in ("torch", "mujoco", "numpy")},
        "python": platform.python_version(),
    }
    return scores


def summary(results: Sequence[EpisodeResult]) -> dict[str, Any]:
    """Success and text scores of one driver."""
    tick_s, successes = 1.0 / CONTROL_HZ, sum(result.is_success for result in results)
    whole = TextTally()
    by_kind: dict[str, TextTally] = {}
    for result in results:
        for kind, tally in result.tallies.items():
            by_kind.setdefault(kind, TextTally()).merge(tally)
            whole.merge(tally)
    texts = whole.summary(tick_s)
    success_rate, false_claim_rate = successes / len(results), texts["false_claim_rate"]
    firsts = [result.first_held_is_right for result in results if result.first_held_is_right is not None]
    ticks = [result.ticks for result in results if result.is_success]
    return {
        "success_rate": round(success_rate, 4),
        "success_interval_95": wilson(successes, len(results)),
        "false_claim_rate": false_claim_rate,
        "num_seeds": len(results),
        "gates": {
            "success_rate_at_least_0.80": success_rate >= SUCCESS_GATE,
            "false_claim_rate_at_most_0.05": false_claim_rate is not None
            and false_claim_rate <= FALSE_CLAIM_GATE,
        },
        "grasped": len(firsts),
        "first_grasp_right": sum(firsts),
        "mean_seconds_of_successes": round(sum(ticks) / len(ticks) * tick_s, 2) if ticks else None,
        "exact_match": texts["exact_match"],
        "slot_accuracy": texts["slot_accuracy"],
        "staleness": {"stale_share": texts["stale_share"], "mean_age_s": texts["mean_age_s"]},
        "texts": texts,
        "by_task": {kind: tally.summary(tick_s) for kind, tally in by_kind.items()},
    }


def wilson(successes: int, trials: int) -> list[float]:
    """95 % interval of a rate."""
    z, rate = 1.96, successes / trials
    middle = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials)) / (1 + z * z / trials)
    return [round(max(0.0, middle - half), 3), round(min(1.0, middle + half), 3)]


def _report(result: EpisodeResult) -> None:
    outcome = "success" if result.is_success else "failure"
    print(f"seed {result.seed}: {result.task}: {outcome} after {result.ticks / CONTROL_HZ:.1f} s", flush=True)


if __name__ == "__main__":
    main()
