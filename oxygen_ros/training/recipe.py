"""Every number of the training recipe in one place, with the small one for smoke tests."""

from __future__ import annotations

from dataclasses import dataclass, replace

from oxygen_ros.training.batches import TextMix

TALK_MIX = TextMix(memory=0.08, next=0.08, strange=0.02, places=0.55, asked_cube=0.05)


@dataclass(frozen=True)
class Recipe:
    """How the tiny model is trained: the eyes alone, everything together, then mostly talking.

    Attributes:
        shards, shard_frames: files of expert frames, and rows in each.
        warmup_steps, warmup_batch: the vision tower alone, on places.
        joint_steps, batch, texts, flow_samples: everything together; ``texts`` go round the observations of a
            batch, each observation gets ``flow_samples`` noise samples. Batches are per worker.
        talk_steps, talk_batch, talk_texts, talk_weight, talk_mix, talk_rate: after it, fewer observations and
            more texts, mostly about places, beginning at this share of the rates. Where things are is told in
            three words of twenty, and learned last.
        blind_share: share of observations whose state is padding in the prompt: text must come from looking.
        round_starts: shares of the joint training at which the model drives and the expert labels.
        round_episodes: episodes per worker and round; ``expert_shares`` of their chunks driven by the expert.
        rollout_share: share of a batch drawn from such frames, once there are any.
        decay_start: share of the joint training after which the rate falls, linearly.
    """

    seed: int = 0
    shards: int = 2
    shard_frames: int = 16_000
    warmup_steps: int = 300
    warmup_batch: int = 48
    joint_steps: int = 1_500
    batch: int = 32
    texts: int = 32
    flow_samples: int = 2
    talk_steps: int = 700
    talk_batch: int = 16
    talk_texts: int = 128
    talk_weight: float = 3.0
    talk_rate: float = 0.5
    talk_mix: TextMix = TALK_MIX
    blind_share: float = 0.15
    muon_rate: float = 0.02
    adam_rate: float = 2e-3
    round_starts: tuple[float, ...] = (0.35, 0.50, 0.65)
    round_episodes: int = 32
    round_worlds: int = 16
    expert_shares: tuple[float, ...] = (0.3, 0.15, 0.0)
    rollout_share: float = 0.35
    decay_start: float = 0.65
    average_decay: float = 0.995
    text_weight: float = 1.0
    place_weight: float = 0.5
    plan_weight: float = 0.5
    told_weight: float = 1.0
    save_every: int = 100
    measure_every: int = 300


def smoke_recipe(seed: int) -> Recipe:
    """A recipe of seconds: every part runs, nothing is learned."""
    return replace(
        Recipe(),
        seed=seed,
        shards=1,
        shard_frames=60,
        warmup_steps=3,
        warmup_batch=8,
        joint_steps=4,
        batch=4,
        texts=2,
        talk_steps=2,
        talk_batch=4,
        talk_texts=6,
        flow_samples=1,
        round_starts=(0.5,),
        round_episodes=2,
        round_worlds=2,
        expert_shares=(0.5,),
        save_every=2,
        measure_every=1000,
    )
