"""A checkpoint as the product runs it: opened, loaded and driven by the product's own code.

Scores come from here, so that a score says something of what people will run. Texts are decoded a fixed
number of steps per cycle in simulated time, so that equal seeds give equal scores on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from oxygen_ros.clock import SimClock
from oxygen_ros.config import load_config
from oxygen_ros.engine.budget import CycleBudget, FixedSteps
from oxygen_ros.engine.engine import Engine
from oxygen_ros.engine.settings import EngineSettings
from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.pi05.checkpoint_open import open_checkpoint
from oxygen_ros.models.pi05.model import Pi05Model
from oxygen_ros.models.pi05.processor import Pi05Processor
from oxygen_ros.models.tensor_source import DictSource, SafetensorsSource, TensorSource
from oxygen_ros.models.tokenizers import open_tokenizer
from oxygen_ros.robots.transform import make_transform
from oxygen_ros.runners.eager import EagerRunner
from oxygen_ros.types import DEFAULT_EXPERT, FloatArray, Observation, TextDelta, TextRequest

PRESET = "libero"
NUM_PREFIXES, NUM_ROWS, ROW_CAPACITY = 8, 8, 64
CYCLE_NS = 1_000_000_000


@dataclass(frozen=True)
class FinishedText:
    """One text as it came out: what was asked, what was written, and the observation it is about."""

    request_id: str
    observation_id: int
    text: str
    reason: str


class ProductPolicy:
    """Drives one robot: an observation in, an action chunk and finished texts out. One thread."""

    def __init__(self, folder: Path, *, decode_steps: int, random_seed: int | None = None) -> None:
        """Load the checkpoint in ``folder``.

        Args:
            folder: a checkpoint directory.
            decode_steps: decode steps per cycle.
            random_seed: None for the checkpoint's weights; else random weights of equal scale (a baseline).
        """
        checkpoint = open_checkpoint(folder)
        tokenizer_path = checkpoint.tokenizer_path
        if tokenizer_path is None:
            raise CheckpointError("tokenizer_missing", f"no tokenizer in {folder}", "train it again")
        tokenizer = open_tokenizer(tokenizer_path)
        robot = load_config(preset=PRESET).config.robot
        numbers = make_transform(robot, adapt_to_pi=False)
        self.processor = Pi05Processor(checkpoint, tokenizer, robot, numbers)
        source: TensorSource = SafetensorsSource(folder / "model.safetensors")
        if random_seed is not None:
            source = shuffled(source, random_seed)
        model = Pi05Model.from_source(checkpoint.config, source, torch.device("cpu"))
        layout = model.kv_layout(NUM_PREFIXES, NUM_ROWS, ROW_CAPACITY)
        self.runner = EagerRunner(model, layout)
        self.tokenizer = tokenizer
        self._clock = SimClock()
        settings = EngineSettings(steps=FixedSteps(decode_steps), steps_per_round=min(4, decode_steps))
        self.engine = Engine(self.runner, tokenizer, self._clock, settings)
        self._written: dict[str, str] = {}
        self._cycle = 0

    def cycle(
        self, observation: Observation, seed: int, requests: list[TextRequest]
    ) -> tuple[FloatArray, list[FinishedText]]:
        """One control cycle: prefill, act, then a fixed number of decode steps.

        Returns:
            Commands float32 [horizon, 7] in the robot's units, and the texts that ended in this cycle.
        """
        self._cycle += 1
        start_ns = self._clock.now_ns()
        self.engine.prefill(self.processor.prepare(observation), observation.stamp_ns)
        actions = self.engine.act(DEFAULT_EXPERT, seed)
        for request in requests:
            self.engine.submit(request)
        self.engine.decode(CycleBudget(self._cycle, start_ns, start_ns + CYCLE_NS, 0))
        self._clock.advance_ns(CYCLE_NS)
        finished = [text for delta in self.engine.take_deltas() if (text := self._take(delta)) is not None]
        return self.processor.finish(DEFAULT_EXPERT, actions, observation), finished

    def forget(self) -> None:
        """End all texts, between two episodes."""
        self.engine.reset("episode over")
        self.engine.take_deltas()
        self._written.clear()

    def _take(self, delta: TextDelta) -> FinishedText | None:
        self._written[delta.request_id] = self._written.get(delta.request_id, "") + delta.text
        if delta.finish_reason is None:
            return None
        text = self._written.pop(delta.request_id)
        return FinishedText(delta.request_id, delta.observation_id, text, delta.finish_reason.name)


def shuffled(source: TensorSource, seed: int) -> DictSource:
    """Random tensors with the mean and deviation of those of ``source``: a model that has learned nothing."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name in sorted(source.shapes()):
        tensor = source.load(name).float()
        noise = torch.randn(tensor.shape, generator=generator)
        tensors[name] = tensor.mean() + noise * (tensor.std(correction=0) if tensor.numel() > 1 else 0.0)
    return DictSource(tensors)
