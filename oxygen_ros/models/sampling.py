"""Choice of the next token, on the device.

A draw takes a uniform number that depends on (request seed, token index) alone and inverts the
distribution in vocabulary order, so neither the batch nor ties in sorting can change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from oxygen_ros.types import SamplingParams

_MASK = (1 << 64) - 1


def uniform(seed: int, token_index: int) -> float:
    """Number in [0, 1) for one draw: the splitmix64 generator, by Steele, Lea and Flood (2014)."""
    value = ((seed & _MASK) * 0x9E3779B97F4A7C15 + (token_index + 1) * 0xD1B54A32D192ED03) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((value ^ (value >> 31)) >> 11) / float(1 << 53)


@dataclass(frozen=True)
class Draws:
    """The rows of a batch that are drawn rather than greedy, and with what.

    Attributes:
        rows: int64 [D].
        inverse_temperature: float32 [D].
        top_k: int64 [D], at least 1; ``max_top_k`` is their maximum, 0 if none restricts.
        uniform: float64 [D].
    """

    rows: Tensor
    inverse_temperature: Tensor
    top_k: Tensor
    max_top_k: int
    uniform: Tensor


def plan_draws(
    params: Sequence[SamplingParams], token_indices: Sequence[int], vocab_size: int, device: torch.device
) -> Draws | None:
    """What to draw for a batch of rows, planned on the host; None if all rows are greedy."""
    drawn = [row for row, p in enumerate(params) if p.temperature > 0.0]
    if not drawn:
        return None
    top_k = [min(params[row].top_k or vocab_size, vocab_size) for row in drawn]
    restricting = [k for k in top_k if k < vocab_size]
    return Draws(
        rows=torch.tensor(drawn).to(device, non_blocking=True),
        inverse_temperature=torch.tensor([1.0 / params[row].temperature for row in drawn]).to(device),
        top_k=torch.tensor(top_k).to(device, non_blocking=True),
        max_top_k=max(restricting, default=0),
        uniform=torch.tensor(
            [uniform(params[row].seed, token_indices[row]) for row in drawn], dtype=torch.float64
        ).to(device),
    )


def choose_tokens(logits: Tensor, draws: Draws | None) -> tuple[Tensor, Tensor]:
    """Next token of every row, int64 [R], and whether its logits were finite, bool [R].

    Greedy rows cost one pass over ``logits`` [R, vocab]; a NaN or an infinity shows in the maximum.
    A token of a row that is not finite means nothing but is a valid id.
    """
    top, tokens = logits.max(dim=-1)
    is_finite = torch.isfinite(top)
    if draws is not None:
        tokens = tokens.index_copy(0, draws.rows, _draw(logits[draws.rows].float(), draws))
    return tokens, is_finite


def _draw(logits: Tensor, draws: Draws) -> Tensor:
    """Tokens [D] drawn from softmax of ``logits`` [D, vocab] / temperature over the top k."""
    vocab_size = logits.shape[-1]
    if draws.max_top_k:
        best = torch.topk(logits, draws.max_top_k, dim=-1).values
        kth = best.gather(1, (draws.top_k.clamp(max=draws.max_top_k) - 1)[:, None])
        is_out = (logits < kth) & (draws.top_k < vocab_size)[:, None]
        logits = logits.masked_fill(is_out, -torch.inf)
    probabilities = torch.softmax(logits * draws.inverse_temperature[:, None], dim=-1)
    cumulative = probabilities.cumsum(dim=-1, dtype=torch.float64)
    target = draws.uniform[:, None] * cumulative[:, -1:]
    return torch.searchsorted(cumulative, target, right=True)[:, 0].clamp(max=vocab_size - 1)
