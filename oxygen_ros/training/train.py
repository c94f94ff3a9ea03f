"""Trains the demo's tiny pi0.5 from nothing: ``python -m oxygen_ros.training.train --seed 0 --out DIR``.

Makes its own data, can be stopped and started again, and leaves DIR/checkpoint with weights, tokenizer,
statistics and a manifest. One core needs about three quarters of an hour; ``--workers 2`` shares the work.
``--smoke`` takes seconds.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import torch

from oxygen_ros.clock import SteadyClock
from oxygen_ros.training.checkpoint import write_checkpoint
from oxygen_ros.training.recipe import Recipe, smoke_recipe
from oxygen_ros.training.team import Team, run_team
from oxygen_ros.training.trainer import Trainer


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    """Options of the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="folder for data, log, state and checkpoint")
    parser.add_argument("--workers", type=int, default=1, help="processes that average their gradients")
    parser.add_argument("--steps", type=int, help="steps of joint training (default: the recipe's)")
    parser.add_argument(
        "--budget-minutes", type=float, help="shorten the joint training to what fits; not repeatable"
    )
    parser.add_argument("--smoke", action="store_true", help="run every part for a moment; learns nothing")
    return parser.parse_args(arguments)


def train(team: Team, options: argparse.Namespace, recipe: Recipe) -> None:
    """What one member of the team does."""
    torch.set_num_threads(1)
    clock = SteadyClock()
    started_ns = clock.now_ns()
    budget_s = None if options.budget_minutes is None else 60.0 * options.budget_minutes
    trainer = Trainer(team, recipe, options.out, budget_s)
    trainer.run()
    cpu_s = sum(team.gather(resource.getrusage(resource.RUSAGE_SELF).ru_utime))
    if team.is_leader:
        facts = trainer.facts()
        facts["wall_hours_of_this_start"] = round((clock.now_ns() - started_ns) / 3.6e12, 3)
        facts["cpu_hours_of_this_start"] = round(cpu_s / 3600, 3)
        facts["command"] = options.command
        facts["commit"] = options.commit
        write_checkpoint(options.out / "checkpoint", trainer.average, facts)
        print(f"checkpoint: {options.out / 'checkpoint'}")


def commit_of_this_code() -> str:
    """Commit that holds this file, "-dirty" when files were changed since; "unknown" outside of git."""
    command = ("git", "describe", "--always", "--dirty", "--exclude", "*")
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    given = sys.argv[1:] if arguments is None else arguments
    options = parse_arguments(given)
    options.command = " ".join(["python -m oxygen_ros.training.train", *given])
    options.commit = commit_of_this_code()
    recipe = smoke_recipe(options.seed) if options.smoke else replace(Recipe(), seed=options.seed)
    if options.steps is not None:
        recipe = replace(recipe, joint_steps=options.steps)
    recipe = replace(recipe, shards=max(recipe.shards, options.workers))
    options.out.mkdir(parents=True, exist_ok=True)
    run_team(train, options.workers, options.out / "rendezvous", options, recipe)


if __name__ == "__main__":
    main()
