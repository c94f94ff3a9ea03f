"""Greedy texts straight from a model's functions, with the log-probabilities that chose each token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from oxygen_ros.kv.memory import KVMemory
from oxygen_ros.models.family import VLAModel
from oxygen_ros.models.text_batch import TextPlanner, TextSegment


@dataclass
class GreedyText:
    """One running text: its prefix and what it has written."""

    row: int
    num_prefix_tokens: int
    last_hidden: Tensor
    tokens: list[int] = field(default_factory=list)
    log_probs: list[Tensor] = field(default_factory=list)


class GreedyTexts:
    """Decodes texts of one KV memory in batches of any composition. Text r is on prefix slot r."""

    def __init__(self, model: VLAModel, memory: KVMemory) -> None:
        self._model = model
        self._memory = memory
        self._planner = TextPlanner(model.heads_per_kv, model.dtype, model.device)

    def step(self, texts: Sequence[GreedyText]) -> None:
        """Give every text one token, all in one batch."""
        for text, log_probs in zip(texts, self.next_log_probs(texts), strict=True):
            text.log_probs.append(log_probs)
            text.tokens.append(int(log_probs.argmax()))

    def next_log_probs(self, texts: Sequence[GreedyText]) -> Tensor:
        """Feed the newest token of every text; log-probabilities [len(texts), vocab] of the next."""
        hidden = {text.row: text.last_hidden for text in texts}
        running = [text for text in texts if text.tokens]
        if running:
            batch = self._planner.plan([self._segment(text) for text in running])
            newest = torch.tensor([text.tokens[-1] for text in running])
            fed = self._model.text_step(newest, batch, self._memory)
            hidden.update({text.row: row for text, row in zip(running, fed, strict=True)})
        logits = self._model.logits(torch.stack([hidden[text.row] for text in texts]))
        return torch.log_softmax(logits.float(), dim=-1)

    def _segment(self, text: GreedyText) -> TextSegment:
        written = len(text.tokens) - 1
        position = text.num_prefix_tokens + written
        return TextSegment(text.row, text.row, text.num_prefix_tokens, position, written, 1)
