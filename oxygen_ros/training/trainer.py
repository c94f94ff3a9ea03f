"""Trains the tiny pi0.5: vision warm-up, joint training with rounds of labelled roll-outs, talking.

Can be stopped and started again at any step. Every member of the team runs this same code.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from oxygen_ros.clock import SteadyClock
from oxygen_ros.training.auxiliary import AuxiliaryHeads
from oxygen_ros.training.batches import IGNORE, JOINT_MIX, Batch, BatchMaker, TextMix
from oxygen_ros.training.dims import Dims
from oxygen_ros.training.frames import FrameRecorder, Frames, join_frames, load_frames
from oxygen_ros.training.generate import generate
from oxygen_ros.training.held_out import answers_on, place_errors_on
from oxygen_ros.training.optimiser import Optimiser
from oxygen_ros.training.pi05 import TinyPi05
from oxygen_ros.training.recipe import Recipe
from oxygen_ros.training.rollouts import Rollouts
from oxygen_ros.training.team import Team
from oxygen_ros.training.vocabulary import pieces

_ACTION_WEIGHTS = (1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 1.0, 0.1)
"""By action column; the three rotations and the padding are always zero and soon learned."""
_HELD_OUT = 400


class Trainer:
    """Model, heads, optimiser and data of one member."""

    def __init__(self, team: Team, recipe: Recipe, folder: Path, budget_s: float | None) -> None:
        self.team, self.recipe, self.folder = team, recipe, folder
        torch.manual_seed(recipe.seed)
        self.dims = Dims(vocab_size=len(pieces()))
        self.model = TinyPi05(self.dims)
        self.heads = AuxiliaryHeads(self.dims)
        self.average = TinyPi05(self.dims)
        self.average.load_state_dict(self.model.state_dict())
        self._maker = BatchMaker(self.dims.action_dim, recipe.blind_share)
        self._rng = np.random.default_rng([recipe.seed, team.rank])
        self._noise = torch.Generator().manual_seed(recipe.seed * 1000 + team.rank)
        self._budget_s = budget_s
        self._spent_s = 0.0
        self._stage, self._step, self._rounds = "warmup", 0, 0
        self._last_losses: dict[str, float] = {}
        self._optimiser = self._new_optimiser()
        self.frames = self._load_shards()
        self.rollouts: list[Frames] = []
        self._clock = SteadyClock()
        self._started_ns = self._clock.now_ns()
        self._resume()

    # --- data

    def _load_shards(self) -> Frames:
        parts = []
        for index in range(self.team.rank, self.recipe.shards, self.team.size):
            path = self.folder / "data" / f"shard{index}.npz"
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                generate(self.recipe.seed * 1000 + 1 + index, self.recipe.shard_frames).save(path)
            parts.append(load_frames(path))
        return join_frames(parts)

    def _batch(self, size: int, texts: int, mix: TextMix = JOINT_MIX) -> Batch:
        """A batch of expert frames, mixed with rolled-out ones once there are any."""
        if not self.rollouts or self._rng.random() >= self.recipe.rollout_share:
            frames = self.frames
            last = max(1, len(frames) - _HELD_OUT)
        else:
            frames = self.rollouts[int(self._rng.integers(len(self.rollouts)))]
            last = len(frames)
        rows = self._rng.integers(0, last, size)
        return self._maker.make(frames, rows, texts, self._rng, mix)

    # --- stages

    def run(self) -> None:
        """All stages to their ends."""
        if self._stage == "warmup":
            self._warm_up()
            self._begin("joint")
            self.average.load_state_dict(self.model.state_dict())
        if self._stage == "joint":
            self._joint()
            self._begin("talk")
        self._talk()
        self._save()

    def _begin(self, stage: str) -> None:
        self._stage, self._step = stage, 0
        self._optimiser = self._new_optimiser()
        self._save()

    def _warm_up(self) -> None:
        """The vision tower learns places."""
        total = self.recipe.warmup_steps
        while self._step < total:
            batch = self._batch(self.recipe.warmup_batch, 0)
            loss = self.heads.seen(self.model.encode_images(batch.images), batch)
            self._descend(loss, {"seen": loss}, self._step / total, decay_start=0.6)
            if self._step % self.recipe.save_every == 0:
                self._save()
        self._log({"event": "warmed up", **self._held_out_measures()})

    def _joint(self) -> None:
        """Everything together, with rounds of labelled roll-outs."""
        recipe = self.recipe
        while (progress := self._progress()) < 1.0:
            if self._rounds < len(recipe.round_starts) and progress >= recipe.round_starts[self._rounds]:
                self._roll_out()
            losses = self._losses(self._batch(recipe.batch, recipe.texts))
            self._descend(self._total(losses, recipe.text_weight), losses, progress, recipe.decay_start)
            self._keep_pace()

    def _talk(self) -> None:
        """Everything together still, with many more texts."""
        recipe = self.recipe
        while self._step < recipe.talk_steps:
            losses = self._losses(self._batch(recipe.talk_batch, recipe.talk_texts, recipe.talk_mix))
            total, progress = self._total(losses, recipe.talk_weight), self._step / recipe.talk_steps
            self._descend(total, losses, progress, recipe.decay_start, recipe.talk_rate)
            self._keep_pace()

    def _total(self, losses: dict[str, Tensor], text_weight: float) -> Tensor:
        recipe = self.recipe
        places = recipe.place_weight * (losses["seen"] + losses["kept"]) + recipe.told_weight * losses["told"]
        return losses["flow"] + text_weight * losses["text"] + recipe.plan_weight * losses["plan"] + places

    def _keep_pace(self) -> None:
        """After each step: the average follows; now and then the state is saved and the model measured."""
        self._follow()
        if self._step % self.recipe.save_every == 0:
            self._save()
        if self._step % self.recipe.measure_every == 0:
            self.measure()

    def _progress(self) -> float:
        by_step = self._step / self.recipe.joint_steps
        by_time = self._elapsed() / self._budget_s if self._budget_s else 0.0
        return self.team.agree(max(by_step, by_time))

    def _elapsed(self) -> float:
        return self._spent_s + (self._clock.now_ns() - self._started_ns) / 1e9

    def _losses(self, batch: Batch) -> dict[str, Tensor]:
        prefix = self.model.prefill(batch.images, batch.prefix_ids)
        size, samples = len(batch.actions), self.recipe.flow_samples
        shape = (size, samples, *batch.actions.shape[1:])
        noise = torch.randn(shape, generator=self._noise)
        # Beta(1.5, 1) by its inverse distribution function.
        time_ = torch.rand(size, samples, generator=self._noise) ** (1 / 1.5) * 0.999 + 0.001
        mix, actions = time_[..., None, None], batch.actions[:, None]
        velocity = self.model.velocity(prefix, mix * noise + (1 - mix) * actions, time_)
        weights = torch.tensor(_ACTION_WEIGHTS)
        flow = ((velocity - (noise - actions)).square() * weights).mean() / weights.mean()
        hidden = self.model.text_hidden(prefix, batch.text_rows, batch.text_ids)
        logits = self.model.logits(hidden).flatten(0, 1)
        text = functional.cross_entropy(logits, batch.text_targets.flatten(), ignore_index=IGNORE)
        return {"flow": flow, "text": text, **self.heads(prefix, hidden, batch)}

    def _descend(
        self, total: Tensor, losses: dict[str, Tensor], progress: float, decay_start: float, rate: float = 1.0
    ) -> None:
        torch.autograd.backward(total)
        self.team.average_gradients(self._optimiser.parameters)
        falling = min(1.0, (1.0 - progress) / (1.0 - decay_start))
        norm = self._optimiser.step(rate * min((self._step + 1) / 40, 1.0) * max(falling, 0.01))
        self._step += 1
        if self._step % 20 == 0:
            self._last_losses = {name: round(loss.item(), 4) for name, loss in losses.items()}
            self._log({"progress": round(progress, 4), "norm": round(norm, 2), **self._last_losses})

    @torch.no_grad()
    def _follow(self) -> None:
        """The average of the weights trails the weights."""
        keep = min(self.recipe.average_decay, (1 + self._step) / (10 + self._step))
        for slow, fast in zip(self.average.parameters(), self.model.parameters(), strict=True):
            slow.lerp_(fast, 1 - keep)

    def _roll_out(self) -> None:
        """The averaged model drives; every visited state gets the expert's label."""
        recipe, index = self.recipe, self._rounds
        path = self._round_path(index)
        if not path.exists():
            recorder = FrameRecorder()
            for part in range(recipe.round_episodes // recipe.round_worlds):
                seed = recipe.seed * 1000 + 500 + 100 * self.team.rank + 20 * index + part
                rollouts = Rollouts(self.average, recipe.round_worlds, seed)
                outcome = rollouts.run(
                    expert_share=recipe.expert_shares[index],
                    scenario_share=0.3,
                    recorder=recorder,
                    max_ticks=260,
                )
                self._log({"event": f"round {index}", "outcome": outcome.line(), "frames": len(recorder)})
            recorder.frames().save(path)
        self.rollouts.append(load_frames(path))
        self._rounds += 1

    def _round_path(self, index: int) -> Path:
        return self.folder / "data" / f"round{index}_worker{self.team.rank}.npz"

    # --- measures

    def measure(self, episodes: int = 12) -> None:
        """Closed loop with the averaged model on seeds of no other use; keeps the weights."""
        self._save()
        rollouts = Rollouts(self.average, episodes, 900_000 + 1000 * self.team.rank + self._step)
        outcomes = self.team.gather(rollouts.run(with_memory=True, execute=8).line())
        self._log({"event": "closed loop", "outcomes": outcomes, **self._held_out_measures()})
        if self.team.is_leader:
            snapshot = self.folder / "snapshots" / f"{self._stage}{self._step:06d}.pt"
            snapshot.parent.mkdir(exist_ok=True)
            torch.save(self.average.state_dict(), snapshot)

    def _held_out_measures(self) -> dict[str, Any]:
        rows = np.arange(max(0, len(self.frames) - _HELD_OUT), len(self.frames))
        places = place_errors_on(self.frames, rows, self.model, self.heads, self._maker)
        return {**places, "answers": answers_on(self.frames, rows, self.average, self._maker)}

    def facts(self) -> dict[str, Any]:
        """What the manifest says of this training."""
        return {
            "seed": self.recipe.seed,
            "recipe": asdict(self.recipe),
            "steps_done": {"stage": self._stage, "step": self._step},
            "workers": self.team.size,
            "expert_frames_per_worker": len(self.frames),
            "rollout_frames_per_worker": [len(frames) for frames in self.rollouts],
            "training_hours": round(self._elapsed() / 3600, 3),
            "last_losses": self._last_losses,
            "held_out": self._held_out_measures(),
        }

    # --- files

    def _new_optimiser(self) -> Optimiser:
        rates = {"muon_rate": self.recipe.muon_rate, "adam_rate": self.recipe.adam_rate}
        return Optimiser(self.team, self.model, self.heads, **rates)

    def _log(self, entry: dict[str, Any]) -> None:
        if not self.team.is_leader:
            return
        line = {"stage": self._stage, "step": self._step, "seconds": round(self._elapsed()), **entry}
        with (self.folder / "log.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)

    def _state_path(self) -> Path:
        return self.folder / "state.pt"

    def _save(self) -> None:
        if not self.team.is_leader:
            return
        state = {
            "stage": self._stage,
            "step": self._step,
            "rounds": self._rounds,
            "spent_s": self._elapsed(),
            "model": self.model.state_dict(),
            "heads": self.heads.state_dict(),
            "average": self.average.state_dict(),
            "optimiser": self._optimiser.state_dict(),
        }
        partial = self._state_path().with_suffix(".partial")
        torch.save(state, partial)
        partial.rename(self._state_path())

    def _resume(self) -> None:
        if not self._state_path().exists():
            return
        state = torch.load(self._state_path(), weights_only=True)
        self._stage, self._step, self._spent_s = state["stage"], state["step"], state["spent_s"]
        self.model.load_state_dict(state["model"])
        self.heads.load_state_dict(state["heads"])
        self.average.load_state_dict(state["average"])
        self._optimiser.load_state_dict(state["optimiser"])
        self._rng = np.random.default_rng([self.recipe.seed, self.team.rank, self._step])
        self._noise.manual_seed(self.recipe.seed * 1000 + self.team.rank + 100_000 * self._step)
        for index in range(state["rounds"]):
            self.rollouts.append(load_frames(self._round_path(index)))
        self._rounds = state["rounds"]
        self._log({"event": "resumed"})
