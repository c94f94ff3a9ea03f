"""A real pi0.5 of a few thousand random weights, run eagerly in float32, and observations for it."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from oxygen_ros.models.pi05.config import ExpertConfig, GemmaSize, Pi05Config, VisionSize
from oxygen_ros.models.pi05.model import Pi05Model
from oxygen_ros.models.pi05.random_weights import random_state
from oxygen_ros.models.protocol import ModelInputs
from oxygen_ros.models.tensor_source import DictSource
from oxygen_ros.runners.eager import EagerRunner

GEMMA = GemmaSize(width=32, depth=2, mlp_dim=64, num_heads=2, num_kv_heads=1, head_dim=64)
CONFIG = Pi05Config(
    vlm=GEMMA,
    vision=VisionSize(width=16, depth=1, num_heads=2, mlp_dim=32, image_size=16, patch_size=4),
    experts=(ExpertConfig("arm", GEMMA, horizon=6, action_dim=4), ExpertConfig("base", GEMMA, 4, 2)),
    vocab_size=200,
    max_token_len=24,
    num_denoise_steps=3,
    stop_token_ids=frozenset({2}),
)


class NumberTokenizer:
    """Ids to text as numbers and back, so that tokens can be compared in published text. None is special."""

    vocab_size = CONFIG.vocab_size

    def encode(self, text):
        return [int(word) for word in text.split()]

    def decode(self, token_ids):
        return "".join(f"{token_id} " for token_id in token_ids)

    def is_special(self, token_id):
        return False


@cache
def model() -> Pi05Model:
    """Small embeddings and sharp attention: greedy texts change from token to token."""
    gains = {"lm_head.weight": 0.3, "q_proj.weight": 4.0, "o_proj.weight": 0.5, "down_proj.weight": 0.5}
    weights = {
        name: tensor * next((gain for end, gain in gains.items() if name.endswith(end)), 1.0)
        for name, tensor in random_state(CONFIG, seed=0).items()
    }
    return Pi05Model.from_source(CONFIG, DictSource(weights), torch.device("cpu"))


def runner(num_prefixes: int = 5, num_rows: int = 6, row_capacity: int = 64) -> EagerRunner:
    layout = model().kv_layout(num_prefixes, num_rows, row_capacity)
    return EagerRunner(model(), layout, warm_up_runs=1)


def inputs(number: int) -> ModelInputs:
    """Observation ``number``: its pictures and the length of its prompt differ from the others'."""
    rng = np.random.default_rng(number)
    size = CONFIG.vision.image_size
    return ModelInputs(
        observation_id=number,
        images=rng.uniform(-1, 1, (1 + number % 3, 3, size, size)).astype(np.float32),
        token_ids=rng.integers(2, CONFIG.vocab_size, 5 + number % 11),
    )


def prompt(seed: int, length: int) -> str:
    """A suffix prompt of so many tokens."""
    return " ".join(str(token) for token in np.random.default_rng(seed).integers(2, 200, length))


def num_tokens(number: int) -> int:
    """Prefix tokens of observation ``number``."""
    seen = inputs(number)
    return model().num_prefix_tokens(len(seen.images), len(seen.token_ids))


def layer_bytes(number: int) -> int:
    """Bytes of the keys of one layer of that prefix: what a copy of any part of the prefix would move."""
    return num_tokens(number) * GEMMA.num_kv_heads * GEMMA.head_dim * 4
