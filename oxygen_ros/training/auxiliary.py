"""Heads that exist only in training: they keep the eyes sharp and are thrown away afterwards.

Dense position labels stand in for SigLIP's pre-training. Nothing of this is in the checkpoint.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from oxygen_ros.training.batches import PHASES, Batch
from oxygen_ros.training.dims import Dims
from oxygen_ros.training.pi05 import Prefix
from oxygen_ros.training.vocabulary import PAD_ID

NUM_OBJECTS = 6
PLAN_COLUMNS = (0, 1, 2, 6)
NAME_INDEX = 3
"""Of the token that names the thing, in a question that begins with "Where is the"."""


class PlaceHead(nn.Module):
    """From image tokens: which patch holds each object, and where the object is.

    Base camera: places on the table. Wrist camera: places seen from the hand, of objects in the picture.
    """

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self._tokens = dims.tokens_per_image
        self.base = nn.Linear(dims.width, NUM_OBJECTS * 4)
        self.wrist = nn.Linear(dims.width, NUM_OBJECTS * 4)

    def forward(self, tokens: Tensor, batch: Batch) -> Tensor:
        """Loss for image ``tokens`` [B, 2 T, W]."""
        tokens = functional.rms_norm(tokens, tokens.shape[-1:])
        base = self._camera_loss(self.base(tokens[:, : self._tokens]), batch.cells[:, 0], batch.positions)
        wrist = self._camera_loss(self.wrist(tokens[:, self._tokens :]), batch.cells[:, 1], batch.relative)
        return base + wrist

    def places(self, tokens: Tensor) -> Tensor:
        """Base camera's places [B, objects, 3], scaled as in ``Batch.positions``."""
        tokens = functional.rms_norm(tokens, tokens.shape[-1:])
        return _places(self.base(tokens[:, : self._tokens]))[1]

    def _camera_loss(self, out: Tensor, cells: Tensor, wanted: Tensor) -> Tensor:
        logits, places = _places(out)
        is_seen = cells >= 0
        which = functional.cross_entropy(logits[is_seen], cells[is_seen])
        where = functional.smooth_l1_loss(places[is_seen], wanted[is_seen], beta=0.1)
        return 0.1 * which + where


def _places(out: Tensor) -> tuple[Tensor, Tensor]:
    """Patch logits [B, objects, T] and weighted places [B, objects, 3] of head output [B, T, objects * 4]."""
    out = out.view(*out.shape[:2], NUM_OBJECTS, 4).transpose(1, 2)
    logits = out[..., 0]
    return logits, (logits.softmax(-1)[..., None] * out[..., 1:]).sum(2)


class PlanHead(nn.Module):
    """From the last prompt token: the errand, the phase, what is held, and the expert's plan."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.errand = nn.Linear(dims.width, 6)
        self.phase = nn.Linear(dims.width, len(PHASES))
        self.held = nn.Linear(dims.width, 4)
        self.plan = nn.Linear(dims.width, dims.horizon * len(PLAN_COLUMNS))

    def forward(self, hidden: Tensor, batch: Batch) -> Tensor:
        """Loss for the token's ``hidden`` [B, W]."""
        hidden = functional.rms_norm(hidden, hidden.shape[-1:])
        plan = self.plan(hidden).unflatten(-1, (-1, len(PLAN_COLUMNS)))
        return (
            functional.smooth_l1_loss(self.errand(hidden), batch.errand, beta=0.1)
            + 0.2 * functional.cross_entropy(self.phase(hidden), batch.phase)
            + 0.2 * functional.cross_entropy(self.held(hidden), batch.held)
            + functional.mse_loss(plan, batch.actions[..., PLAN_COLUMNS])
        )


class ToldHead(nn.Module):
    """From every token of "where is ..." from the thing's name on: its place, and whether it is in the hand.

    Words alone teach this too slowly: three of twenty tell a place, and near misses count as far ones.
    """

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.place = nn.Linear(dims.width, 2)
        self.in_hand = nn.Linear(dims.width, 1)

    def forward(self, hidden: Tensor, batch: Batch) -> Tensor:
        """Loss for ``hidden`` [R, L, W] of the batch's texts."""
        asks = batch.text_objects >= 0
        rows, things = batch.text_rows[asks], batch.text_objects[asks]
        hidden = functional.rms_norm(hidden[asks], hidden.shape[-1:])
        is_held = batch.held[rows] == things
        ids = batch.text_ids[asks]
        knows = ((torch.arange(ids.shape[1]) >= NAME_INDEX) & (ids != PAD_ID)).float()
        errors = functional.smooth_l1_loss(
            self.place(hidden),
            batch.positions[rows, things, None, :2].expand(*hidden.shape[:2], 2),
            beta=0.1,
            reduction="none",
        ).mean(-1)
        doubts = functional.binary_cross_entropy_with_logits(
            self.in_hand(hidden)[..., 0], is_held[:, None].expand(hidden.shape[:2]).float(), reduction="none"
        )
        return ((errors + 0.2 * doubts) * knows).sum() / knows.sum().clamp_min(1.0)


class AuxiliaryHeads(nn.Module):
    """All of them: on vision tokens, on the backbone's image outputs, on the last prompt token, on texts."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self._image_tokens = dims.image_tokens
        self.seen = PlaceHead(dims)
        self.kept = PlaceHead(dims)
        self.plan = PlanHead(dims)
        self.told = ToldHead(dims)

    def forward(self, prefix: Prefix, texts: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Losses by name, of a batch's ``prefix`` and the hidden states of its ``texts`` [R, L, W]."""
        return {
            "seen": self.seen(prefix.image_tokens, batch),
            "kept": self.kept(prefix.late[:, : self._image_tokens], batch),
            "plan": self.plan(prefix.late[:, -1], batch),
            "told": self.told(texts, batch),
        }


def no_gradient_places(head: PlaceHead, tokens: Tensor) -> Tensor:
    """Places for measuring, without a graph."""
    with torch.no_grad():
        return head.places(tokens)
