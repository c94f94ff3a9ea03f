"""Weights are taken strictly by name and shape, in the dtypes of the policy, and nothing dead is held."""

import gc
import weakref
from dataclasses import fields, is_dataclass, replace

import pytest
import torch
from pi05_models import CPU, EXPERT, config

from oxygen_ros.errors import CheckpointError
from oxygen_ros.kv.memory import KVMemory
from oxygen_ros.models.family import PrefixInputs
from oxygen_ros.models.pi05.config import (
    GEMMA_SIZES,
    SIGLIP_SO400M,
    DtypePolicy,
    ExpertConfig,
    Pi05Config,
)
from oxygen_ros.models.pi05.model import Pi05Model
from oxygen_ros.models.pi05.names import EMBEDDING, LM_HEAD, UNUSED, tensor_shapes
from oxygen_ros.models.pi05.random_weights import random_state
from oxygen_ros.models.pi05.weights import build_weights, linears
from oxygen_ros.models.tensor_source import DictSource


def build(state, settings=None):
    return build_weights(settings or config(), DictSource(state), CPU)


def tensors(tree):
    """All loose tensors in a tree of weights."""
    if isinstance(tree, torch.Tensor):
        yield tree
    elif is_dataclass(tree):
        for entry in fields(tree):
            yield from tensors(getattr(tree, entry.name))
    elif isinstance(tree, dict | tuple):
        for item in tree.values() if isinstance(tree, dict) else tree:
            yield from tensors(item)


def count(tree):
    return sum(t.numel() for t in tensors(tree)) + sum(layer.num_parameters for layer in linears(tree))


def test_missing_unexpected_and_misshapen_tensors_are_all_named():
    state = random_state(config())
    del state["action_in_proj.weight"]
    state["something.else"] = torch.zeros(1)
    state["time_mlp_in.bias"] = torch.zeros(3)
    with pytest.raises(CheckpointError) as caught:
        build(state)
    message = str(caught.value)
    assert "1 tensors missing: action_in_proj.weight" in message
    assert "1 tensors unexpected: something.else" in message
    assert "time_mlp_in.bias is [3], wanted [16]" in message


def test_long_lists_of_names_stop_after_ten():
    state = {f"extra.{number:02d}": torch.zeros(1) for number in range(30)} | random_state(config())
    with pytest.raises(CheckpointError) as caught:
        build(state)
    message = str(caught.value)
    assert "30 tensors unexpected" in message
    assert "extra.09 ..." in message
    assert "extra.10" not in message


def test_neither_head_nor_embedding_is_missing_both():
    state = random_state(config())
    del state[LM_HEAD]
    with pytest.raises(CheckpointError, match=r"2 tensors missing: .*lm_head.weight.*embed_tokens"):
        build(state)


@pytest.mark.parametrize("name", [EMBEDDING, LM_HEAD])
def test_one_of_a_tied_pair_is_enough(name):
    state = random_state(config())
    head = state.pop(LM_HEAD)
    weights = build(state | {name: head})
    assert torch.equal(weights.backbone.embedding, head)
    assert torch.equal(weights.backbone.lm_head(torch.eye(32)), head.T)


def test_separate_head_and_embedding_are_both_used():
    state = random_state(config())
    embedding = torch.randn(64, 32)
    weights = build(state | {EMBEDDING: embedding})
    assert torch.equal(weights.backbone.embedding, embedding)
    assert torch.equal(weights.backbone.lm_head(torch.eye(32)), state[LM_HEAD].T)


def test_names_with_the_prefix_of_lerobot_are_the_same_model():
    state = random_state(config())
    prefixed = {f"model.{name}": tensor for name, tensor in state.items()}
    plain, other = build(state), build(prefixed)
    assert all(torch.equal(a, b) for a, b in zip(tensors(plain), tensors(other), strict=True))


def test_unused_expert_head_is_accepted_and_never_read():
    class Watching(DictSource):
        def load(self, name):
            assert name not in UNUSED
            return super().load(name)

    state = random_state(config()) | dict.fromkeys(UNUSED, torch.zeros(64, 16))
    weights = build_weights(config(), Watching(state), CPU)
    wanted = (
        sum(t.numel() for t in random_state(config()).values()) + 64 * 32
    )  # the tied pair counts twice here
    assert count(weights) == wanted


def test_every_tensor_is_read_once():
    reads = []

    class Counting(DictSource):
        def load(self, name):
            reads.append(name)
            return super().load(name)

    state = random_state(config())
    build_weights(config(), Counting(state), CPU)
    assert sorted(reads) == sorted(state)


def test_dtypes_follow_the_policy_of_openpi():
    settings = config().with_dtypes(DtypePolicy.openpi(torch.bfloat16))
    weights = build(random_state(settings), settings)
    bfloat16, float32 = torch.bfloat16, torch.float32
    assert weights.vision.positions.dtype == float32
    assert weights.vision.patch.weight.dtype == float32
    assert weights.vision.norm[0].dtype == bfloat16
    assert weights.vision.layers[0].norm1[0].dtype == bfloat16
    assert weights.backbone.embedding.dtype == bfloat16
    assert weights.backbone.norm.dtype == float32
    assert {norm.dtype for norm in weights.backbone.layers[0].norms} == {float32}
    assert weights.backbone.layers[0].o.weight.dtype == bfloat16
    assert weights.experts["default"].action_in.weight.dtype == float32
    assert weights.experts["default"].layers[0].o.weight.dtype == bfloat16
    assert {dense.weight.dtype for dense in weights.conditioning["default"].dense} == {float32}


def test_norm_weights_of_a_bfloat16_model_keep_float32_precision():
    settings = config().with_dtypes(DtypePolicy.openpi(torch.bfloat16))
    state = random_state(settings)
    weights = build(state, settings)
    stored = state["paligemma_with_expert.paligemma.model.language_model.norm.weight"]
    assert torch.equal(weights.backbone.norm, 1.0 + stored)


def full_size():
    expert = ExpertConfig("default", GEMMA_SIZES["gemma_300m"], horizon=10, action_dim=32)
    return Pi05Config(
        GEMMA_SIZES["gemma_2b"],
        SIGLIP_SO400M,
        (expert,),
        vocab_size=257152,
        max_token_len=200,
        dtypes=DtypePolicy.openpi(torch.bfloat16),
    )


@pytest.fixture(scope="module")
def full_model_state():
    settings = full_size()
    return {
        name: torch.empty(shape, device="meta")
        for name, shape in tensor_shapes(settings).items()
        if name != EMBEDDING
    }


def test_full_size_has_the_published_parameter_counts(full_model_state):
    settings = full_size()
    weights = build_weights(settings, DictSource(full_model_state), torch.device("meta"))
    backbone, expert = weights.backbone, weights.experts["default"]
    billions = {
        "layers": count(backbone.layers) + count(backbone.norm),
        "embedding": count(backbone.embedding),
        "vision": count(weights.vision) - weights.vision.projector.num_parameters,
        "expert": count(expert.layers) + count(weights.conditioning["default"].dense),
    }
    wanted = {"layers": 1.982, "embedding": 0.527, "vision": 0.412, "expert": 0.428}
    assert {name: round(number / 1e9, 3) for name, number in billions.items()} == wanted
    assert round(weights.vision.projector.num_parameters / 1e6, 1) == 2.4
    conditioning = weights.conditioning["default"]
    heads = [expert.action_in, expert.action_out, conditioning.time_in, conditioning.time_out]
    assert round(sum(layer.num_parameters for layer in heads) / 1e6, 1) == 2.2
    stored = sum(tensor.numel() for tensor in full_model_state.values())
    assert round((stored + 257152 * 1024) / 1e9, 3) == 3.617
    assert count(weights) == stored + 257152 * 2048  # the tied pair counts twice here


def test_full_size_runs_on_the_meta_device_with_the_right_shapes(full_model_state):
    settings = full_size()
    meta = torch.device("meta")
    model = Pi05Model.from_source(settings, DictSource(full_model_state), meta)
    layout = model.kv_layout(num_prefixes=2, num_rows=2, row_capacity=64)
    assert layout.prefix_capacity == 978
    assert layout.bytes_per_token == 18 * 2 * 256 * 2
    memory = KVMemory(layout, meta)
    images = torch.empty(2, 3, 224, 224, device=meta)
    prompt = torch.empty(20, dtype=torch.int64, device=meta)
    state = model.prefill(PrefixInputs(images, prompt), memory.prefix(0))
    assert state.num_tokens == 532
    assert state.last_hidden.shape == (2048,)
    noise = torch.empty(10, 32, device=meta)
    assert model.sample_actions("default", state, memory.prefix(0), noise).shape == (10, 32)


def test_model_lets_go_of_what_its_time_grid_was_made_from():
    weights = build(random_state(config()))
    references = [weakref.ref(layer) for layer in linears(weights.conditioning)]
    model = Pi05Model(config(), weights, CPU)
    del weights
    gc.collect()
    assert len(references) == 7
    assert [reference() for reference in references] == [None] * 7
    assert model.spec.family == "pi05"


def test_extra_experts_are_stored_under_their_name():
    head = replace(EXPERT, name="head", horizon=3, action_dim=2)
    shapes = tensor_shapes(config(experts=(EXPERT, head)))
    assert shapes["experts.head.action_in_proj.weight"] == (16, 2)
    assert "experts.head.gemma_expert.model.layers.1.self_attn.q_proj.weight" in shapes
    assert shapes["experts.head.gemma_expert.model.norm.dense.weight"] == (48, 16)
    assert shapes["action_in_proj.weight"] == (16, 6)
