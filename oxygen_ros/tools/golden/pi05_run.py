"""One batch of recorded pi0.5 inputs run through our model, observation by observation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from oxygen_ros.kv.memory import KVMemory
from oxygen_ros.models.family import PrefixInputs
from oxygen_ros.models.pi05.config import Pi05Config
from oxygen_ros.models.pi05.model import Pi05Model
from oxygen_ros.models.pi05.weights import Pi05Weights

CPU = torch.device("cpu")


class Recorded:
    """Recorded outputs by name, which remembers what was asked for."""

    def __init__(self, outputs: Mapping[str, Tensor]) -> None:
        self._outputs = outputs
        self._used: set[str] = set()

    def get(self, name: str) -> Tensor | None:
        """Output ``name``, or None if it was not recorded."""
        if name in self._outputs:
            self._used.add(name)
        return self._outputs.get(name)

    def peek(self, name: str) -> Tensor:
        """Output ``name``, which is there, without counting it as asked for."""
        return self._outputs[name]

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._outputs)

    def unused(self) -> list[str]:
        """Names that nobody asked for."""
        return [name for name in self.names() if name not in self._used]


@dataclass(frozen=True)
class Sample:
    """One observation of the recorded batch and its prefill.

    Attributes:
        valid: indices of its valid tokens in the padded prefix, int64 [T].
        embedded, hidden: its prefix tokens before the first layer and after the final norm, [T, W].
    """

    inputs: PrefixInputs
    valid: Tensor
    embedded: Tensor
    hidden: Tensor

    @property
    def num_tokens(self) -> int:
        """Valid tokens."""
        return len(self.valid)


class Pi05Run:
    """The recorded batch in our model: prefix r is the recorded row r.

    Attributes:
        pad_mask: validity of every padded prefix position, bool [B, P].
    """

    def __init__(self, config: Pi05Config, weights: Pi05Weights, inputs: Mapping[str, Tensor]) -> None:
        self.config = config
        self.weights = weights
        self.model = Pi05Model(config, weights, CPU)
        self.inputs = inputs
        self.num_samples = inputs["tokens"].shape[0]
        cameras = [inputs[f"image_mask.{camera}"].bool()[:, None] for camera in config.cameras]
        image_masks = [mask.expand(-1, config.vision.num_tokens) for mask in cameras]
        self.pad_mask = torch.cat([*image_masks, inputs["token_mask"].bool()], dim=1)
        self.memory = self.new_memory(row_capacity=1)
        self.samples = [self._prefill(index) for index in range(self.num_samples)]

    def new_memory(self, row_capacity: int) -> KVMemory:
        """KV memory with a prefix slot and a text row for every recorded row."""
        return KVMemory(self.model.kv_layout(self.num_samples, self.num_samples, row_capacity), CPU)

    def valid(self, recorded: Tensor) -> Tensor:
        """Valid tokens of all rows of a padded record [B, P, ...]; a record of another shape as it is."""
        fits = recorded.shape[:2] == self.pad_mask.shape
        return recorded[self.pad_mask] if fits else recorded

    def valid_cache(self, recorded: Tensor) -> Tensor:
        """The same of recorded keys or values [B, K, P, D], as [tokens, K, D]."""
        return self.valid(recorded.transpose(1, 2) if recorded.dim() == 4 else recorded)

    def valid_rows(self, memory: Tensor) -> Tensor:
        """Valid tokens of one layer of all prefixes [B, K, capacity, D], as [tokens, K, D]."""
        return torch.cat([memory[r, :, : s.num_tokens].transpose(0, 1) for r, s in enumerate(self.samples)])

    def _prefill(self, index: int) -> Sample:
        cameras = [c for c in self.config.cameras if bool(self.inputs[f"image_mask.{c}"][index])]
        side = self.config.vision.image_size
        images = [self.inputs[f"image.{camera}"][index] for camera in cameras]
        inputs = PrefixInputs(
            torch.stack(images) if images else torch.empty(0, 3, side, side),
            self.inputs["tokens"][index][self.inputs["token_mask"][index].bool()],
        )
        embedded = self.model.embed_prefix(inputs)
        hidden = self.model.prefill_rows(inputs, self.memory.prefix(index), is_every_row_wanted=True)
        return Sample(inputs, self.pad_mask[index].nonzero()[:, 0], embedded, hidden)
