"""What a model in training sees and says on frames that it is not trained on."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from oxygen_ros.sim import grammar
from oxygen_ros.training.auxiliary import AuxiliaryHeads, no_gradient_places
from oxygen_ros.training.batches import BatchMaker
from oxygen_ros.training.frames import Frames, unpack_truth
from oxygen_ros.training.pi05 import TinyPi05
from oxygen_ros.training.vocabulary import EOS_ID

MAX_TOKENS = 28


@torch.no_grad()
def place_errors_on(
    frames: Frames, rows: NDArray[np.int64], model: TinyPi05, heads: AuxiliaryHeads, maker: BatchMaker
) -> dict[str, list[float]]:
    """Median error in cm of cubes, containers and hand: as the eyes see, and as the prefix keeps them."""
    batch = maker.make(frames, rows, 0, np.random.default_rng(0))
    prefix = model.prefill(batch.images, batch.prefix_ids)
    kept = prefix.late[:, : model.dims.image_tokens]
    errors = {}
    for name, head, tokens in (("seen_cm", heads.seen, prefix.image_tokens), ("kept_cm", heads.kept, kept)):
        error = (no_gradient_places(head, tokens) - batch.positions)[..., :2] * torch.tensor([10.0, 15.0])
        errors[name] = [round(v, 2) for v in error.norm(dim=-1).median(0).values.tolist()]
    return errors


@torch.no_grad()
def answers_on(frames: Frames, rows: NDArray[np.int64], model: TinyPi05, maker: BatchMaker) -> str:
    """Greedy answers to one question on each of ``rows``, all questions in turn, judged by the truth."""
    prompter, known = maker.prompter, grammar.questions()
    batch = maker.make(frames, rows, 0, np.random.default_rng(1))
    prefix = model.prefill(batch.images, batch.prefix_ids)
    exact = claims = false_claims = 0
    for number, question in enumerate(known):
        asked = torch.arange(number, len(rows), len(known))
        prompt = torch.tensor([prompter.encode(question)] * len(asked))
        written = model.greedy_text(prefix, asked, prompt, MAX_TOKENS, EOS_ID).tolist()
        for index, ids in zip(asked.tolist(), written, strict=True):
            text, truth = prompter.decode(ids), unpack_truth(frames.truth[rows[index]])
            said = grammar.read_claims(text)
            exact += text == grammar.answer(question, truth)
            claims += said.is_claim
            false_claims += not said.is_true(truth)
    return f"exact {exact}/{len(rows)}, false claims {false_claims}/{claims}"
