"""Folders that hold one recorded pi0.5 run: config.json, model, inputs and outputs as safetensors.

Everything is computed anew from the recorded inputs and weights. Only valid positions are compared:
absent cameras and padding are never computed here, and what the reference holds there is not used.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from oxygen_ros.errors import CheckpointError, ConfigError, ContractError
from oxygen_ros.models.pi05.config import Pi05Config
from oxygen_ros.models.pi05.config_source import config_from_json
from oxygen_ros.models.pi05.weights import build_weights
from oxygen_ros.models.tensor_source import SafetensorsSource
from oxygen_ros.tools.golden.pi05_actions import compare_actions
from oxygen_ros.tools.golden.pi05_prefix import compare_prefix
from oxygen_ros.tools.golden.pi05_run import Pi05Run, Recorded
from oxygen_ros.tools.golden.pi05_texts import compare_texts
from oxygen_ros.tools.golden.report import Report

FILES = ("config.json", "model.safetensors", "inputs.safetensors", "outputs.safetensors")
LEFT_OUT = re.compile(r"(text|eos|cb)\.upstream_seed\.|seed_(index|logits)_upstream$")
"""Outputs that record a fault of the reference: text seeded from a row that is not the last text row."""


class Pi05Folder:
    """One loaded folder. ``compare`` runs the model on it."""

    def __init__(self, folder: Path) -> None:
        """Load and check the folder.

        Raises:
            OxygenError: if files are broken or do not belong together.
        """
        config = config_from_json(_load_json(folder / "config.json"))
        inputs = _load(folder / "inputs.safetensors")
        _check_inputs(config, inputs)
        self._outputs = _load(folder / "outputs.safetensors")
        source = SafetensorsSource(folder / "model.safetensors")
        weights = build_weights(config, source, torch.device("cpu"))
        self._run = Pi05Run(config, weights, inputs)

    @staticmethod
    def is_kind(folder: Path) -> bool:
        """True if ``folder`` has the files of this kind."""
        return all((folder / name).is_file() for name in FILES)

    def compare(self, report: Report) -> None:
        """Compare everything that is recorded and can be computed; name the rest.

        Raises:
            ContractError: if nothing is.
        """
        recorded = Recorded(self._outputs)
        compare_prefix(self._run, recorded, report)
        compare_actions(self._run, recorded, report)
        compare_texts(self._run, recorded, report)
        left = recorded.unused()
        if left == recorded.names():
            raise ContractError("golden_folder", "outputs.safetensors records nothing that can be compared")
        faulty = [name for name in left if LEFT_OUT.match(name)]
        unknown = [name for name in left if name not in faulty]
        if faulty:
            report.note(f"left out, they record a fault of the reference: {', '.join(faulty)}")
        if unknown:
            report.note(f"not compared, unknown names: {', '.join(unknown)}")


def _load_json(path: Path) -> dict[str, object]:
    try:
        data = json.loads(path.read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as fault:
        raise ConfigError("config_file", f"cannot read {path}: {fault}") from None
    if not isinstance(data, dict):
        raise ConfigError("config_file", f"{path} does not hold an object")
    return data


def _load(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as fault:
        raise CheckpointError("golden_file", f"cannot read {path}: {fault}") from None


def _check_inputs(config: Pi05Config, inputs: dict[str, Tensor]) -> None:
    """Refuse inputs that lack a tensor, or whose shapes or token ids do not fit ``config``."""
    side, first = config.vision.image_size, config.experts[0]
    wanted: dict[str, tuple[int, ...]] = {}
    for camera in config.cameras:
        wanted |= {f"image.{camera}": (3, side, side), f"image_mask.{camera}": ()}
    wanted |= {"tokens": (config.max_token_len,), "token_mask": (config.max_token_len,)}
    wanted["noise"] = (first.horizon, first.action_dim)
    missing = [name for name in wanted if name not in inputs]
    if missing:
        raise ContractError("golden_input", f"inputs.safetensors lacks {', '.join(missing)}")
    count = inputs["tokens"].shape[0]
    for name, shape in wanted.items():
        if tuple(inputs[name].shape) != (count, *shape):
            got = list(inputs[name].shape)
            raise ContractError("golden_input", f"{name} is {got}, wanted {[count, *shape]}")
    mask = inputs["token_mask"].bool()
    if count == 0 or not mask.any(dim=1).all():
        raise ContractError("golden_input", "there must be requests, each with a valid prompt token")
    tokens = inputs["tokens"][mask]
    if tokens.min() < 0 or tokens.max() >= config.vocab_size:
        raise ContractError("golden_input", f"token ids outside 0 .. {config.vocab_size - 1}")
