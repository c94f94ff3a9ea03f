import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from pi05_models import EXPERT, VLM, config

from oxygen_ros.errors import CheckpointError, ConfigError
from oxygen_ros.models.pi05.config import AttentionMode, DtypePolicy, GemmaSize
from oxygen_ros.models.pi05.config_source import config_from_json, config_from_shapes
from oxygen_ros.models.pi05.names import tensor_shapes

GOLDEN = Path(__file__).parents[1] / "resources" / "golden" / "pi05"


def recorded(case="oxygen_seed0"):
    return json.loads((GOLDEN / case / "config.json").read_text())


def test_config_of_recorded_folder_has_its_sizes_and_mode():
    settings = config_from_json(recorded())
    assert settings.vlm == GemmaSize(64, 3, 160, 8, 1, 16)
    assert settings.vision.num_tokens == 16
    assert settings.attention is AttentionMode.CAUSAL_TEXT
    assert settings.max_prefix_tokens == 68
    assert settings.expert("default").horizon == 10
    assert config_from_json(recorded("openpi_seed0")).attention is AttentionMode.BIDIRECTIONAL


def test_config_by_openpi_variant_names_is_the_full_size():
    data = {
        "paligemma_variant": "gemma_2b",
        "action_expert_variant": "gemma_300m",
        "action_dim": 32,
        "action_horizon": 10,
    }
    settings = config_from_json(data)
    assert settings.vlm.mlp_dim == 16384
    assert settings.expert("default").size.width == 1024
    assert settings.max_prefix_tokens == 968
    assert settings.attention is AttentionMode.BIDIRECTIONAL
    assert settings.stop_token_ids == {1}


BAD_CONFIGS = {
    "pi05 is false": {"pi05": False},
    "unknown MLP activation": {"mlp_act": "silu"},
    "'prefix_lm' is not a valid AttentionMode": {"prefix_text_attention": "prefix_lm"},
    "invalid literal": {"action_dim": "many"},
    "expert 'default' has": {"expert": recorded()["expert"] | {"depth": 2}},
}


@pytest.mark.parametrize("message", BAD_CONFIGS)
def test_config_that_is_not_pi05_is_refused_by_name(message):
    with pytest.raises(ConfigError, match=message):
        config_from_json(recorded() | BAD_CONFIGS[message])


@pytest.mark.parametrize("key", ["action_dim", "action_horizon"])
def test_config_without_a_needed_key_is_refused_by_name(key):
    data = recorded()
    del data[key]
    with pytest.raises(ConfigError, match=key):
        config_from_json(data)


def test_config_with_unknown_variant_names_the_known_ones():
    with pytest.raises(ConfigError, match=r"gemma_9b.*gemma_2b"):
        config_from_json({"paligemma_variant": "gemma_9b"})


def test_config_lists_extra_experts_with_what_differs():
    head = {"name": "head", "action_horizon": 4, "action_dim": 2, "width": 16, "mlp_dim": 24}
    settings = config_from_json(recorded() | {"extra_experts": [head]})
    assert [expert.name for expert in settings.experts] == ["default", "head"]
    first, extra = (expert.size for expert in settings.experts)
    assert extra == replace(first, width=16, mlp_dim=24)
    assert settings.expert("head").horizon == 4


def test_config_without_expert_is_refused():
    with pytest.raises(ConfigError, match="at least one"):
        config(experts=())


@pytest.mark.parametrize("num_kv_heads", [1, 2])
def test_config_from_shapes_finds_the_sizes_that_made_them(num_kv_heads):
    expert = replace(EXPERT, size=replace(EXPERT.size, num_kv_heads=num_kv_heads))
    settings = config(vlm=replace(VLM, num_kv_heads=num_kv_heads), experts=(expert,))
    found = config_from_shapes(
        tensor_shapes(settings), horizon=5, max_token_len=24, num_kv_heads=num_kv_heads, num_vision_heads=2
    )
    assert replace(found, num_denoise_steps=4) == settings


def test_config_from_shapes_of_another_model_names_what_is_missing():
    with pytest.raises(CheckpointError, match="no tensor"):
        config_from_shapes({"lm_head.weight": (8, 8)}, horizon=5, max_token_len=24)


def test_openpi_policy_keeps_action_projections_in_float32():
    policy = DtypePolicy.openpi(torch.bfloat16)
    assert (policy.model, policy.vision, policy.action) == (torch.bfloat16, torch.bfloat16, torch.float32)
