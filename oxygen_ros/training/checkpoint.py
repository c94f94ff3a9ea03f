"""Writes and reads the tiny model as a checkpoint folder in openpi's layout.

``config.json`` carries the sizes, ``model.safetensors`` openpi's names, ``assets/<id>/norm_stats.json`` the
statistics, ``tokenizer.json`` the vocabulary, ``manifest.json`` how it was made.
"""

from __future__ import annotations

import hashlib
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from oxygen_ros.training.batches import STATE_Q01, STATE_Q99
from oxygen_ros.training.dims import Dims
from oxygen_ros.training.pi05 import TinyPi05
from oxygen_ros.training.vocabulary import pieces, write_tokenizer

ASSET_ID = "tabletop"
MAX_TOKEN_LEN = 40
CAMERA_SLOTS = ("base_0_rgb", "left_wrist_0_rgb", "right_wrist_0_rgb")
EMBEDDING = "paligemma_with_expert.paligemma.model.language_model.embed_tokens.weight"
HEAD = "paligemma_with_expert.paligemma.lm_head.weight"
_ACTION_DIMS = 7


def config_of(dims: Dims) -> dict[str, Any]:
    """The checkpoint's ``config.json``."""
    gemma = {"depth": dims.depth, "num_heads": dims.num_heads, "num_kv_heads": 1, "head_dim": dims.head_dim}
    return {
        "source": "openpi",
        "dtype": "float32",
        "pi05": True,
        "prefix_text_attention": "bidirectional",
        "vocab_size": dims.vocab_size,
        "vlm": {"width": dims.width, "mlp_dim": dims.mlp, **gemma},
        "expert": {"width": dims.expert_width, "mlp_dim": dims.expert_mlp, **gemma},
        "vision": {
            "hidden_size": dims.vision_width,
            "num_hidden_layers": dims.vision_depth,
            "num_attention_heads": dims.vision_heads,
            "intermediate_size": dims.vision_mlp,
            "image_size": dims.image_size,
            "patch_size": dims.patch_size,
            "projection_dim": dims.width,
            "layer_norm_eps": 1e-6,
            "hidden_act": "gelu_pytorch_tanh",
            "num_tokens_per_image": dims.tokens_per_image,
        },
        "action_dim": dims.action_dim,
        "action_horizon": dims.horizon,
        "max_token_len": MAX_TOKEN_LEN,
        "rms_norm_eps": dims.norm_eps,
        "expert_rms_norm_eps": dims.norm_eps,
        "rope_theta": dims.rope_theta,
        "expert_rope_theta": dims.rope_theta,
        "mlp_act": "gelu_pytorch_tanh",
        "mlp_activation": "gelu_pytorch_tanh",
        "expert_mlp_act": "gelu_pytorch_tanh",
        "expert_mlp_activation": "gelu_pytorch_tanh",
        "attention_bias": False,
        "mask_fill": -2.3819763e38,
        "time_min_period": dims.min_period,
        "time_max_period": dims.max_period,
        "num_denoise_steps": 10,
        "cameras": list(CAMERA_SLOTS),
    }


def norm_stats() -> dict[str, Any]:
    """The checkpoint's statistics: fixed physical ranges, in openpi's form."""

    def entry(low: tuple[float, ...], high: tuple[float, ...]) -> dict[str, list[float]]:
        mean = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
        std = [(b - a) / 4 for a, b in zip(low, high, strict=True)]
        return {"mean": mean, "std": std, "q01": list(low), "q99": list(high)}

    actions = entry((-1.0,) * _ACTION_DIMS, (1.0,) * _ACTION_DIMS)
    return {"norm_stats": {"state": entry(STATE_Q01, STATE_Q99), "actions": actions}}


def write_checkpoint(folder: Path, model: TinyPi05, facts: dict[str, Any]) -> None:
    """Write the whole folder; ``facts`` go into the manifest."""
    assets = folder / "assets" / ASSET_ID
    assets.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().contiguous() for name, tensor in model.state_dict().items()}
    tensors[HEAD] = tensors.pop(EMBEDDING)
    save_file(tensors, folder / "model.safetensors")
    _write_json(folder / "config.json", config_of(model.dims))
    _write_json(assets / "norm_stats.json", norm_stats())
    write_tokenizer(folder / "tokenizer.json")
    manifest = {
        "model": "tiny pi0.5 of the tabletop demo; trained on simulated data only",
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "sha256": hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest(),
        "versions": {name: version(name) for name in ("torch", "mujoco", "numpy", "tokenizers")},
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {platform.processor() or 'processor unknown'}",
        **facts,
    }
    _write_json(folder / "manifest.json", manifest)


def read_model(folder: Path) -> TinyPi05:
    """The differentiable model with the weights of ``folder``."""
    model = TinyPi05(Dims(vocab_size=len(pieces())))
    tensors = load_file(folder / "model.safetensors")
    tensors[EMBEDDING] = tensors.pop(HEAD)
    model.load_state_dict({name: tensor.to(torch.float32) for name, tensor in tensors.items()})
    return model


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
