"""Counts what a decode step allocates and copies, by watching every operator call."""

import pytest
import torch
from pi05_models import GemmaSize, VisionSize, config, inputs, model
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from oxygen_ros.models.pi05.config import DtypePolicy, ExpertConfig
from oxygen_ros.runners.eager import EagerRunner
from oxygen_ros.runners.protocol import BatchRow
from oxygen_ros.types import SamplingParams

NUM_SLOTS = 4
LONG_PROMPT = 1500
COPIES = ("clone", "copy", "cat", "index", "gather", "contiguous", "repeat", "stack", "expand_copy")


class Watch(TorchDispatchMode):
    """Notes new storages as large as one layer of one prefix, and copies out of KV storage."""

    def __init__(self, memory, num_kv_bytes):
        super().__init__()
        self.kv_storages = {t.untyped_storage().data_ptr() for t in memory._tensors()}
        self.num_kv_bytes = num_kv_bytes
        self.num_calls = 0
        self.allocations = []
        self.copies = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        with self:  # operators made of others are looked into: a copy may hide in a matrix product
            parts = function.decompose(*args, **(kwargs or {}))
        if parts is not NotImplemented:
            return parts
        result = function(*args, **(kwargs or {}))
        self.num_calls += 1
        sources = {t.untyped_storage().data_ptr() for t in tree_leaves((args, kwargs)) if torch.is_tensor(t)}
        for tensor in tree_leaves(result):
            if not torch.is_tensor(tensor) or tensor.untyped_storage().data_ptr() in sources:
                continue
            if tensor.untyped_storage().nbytes() >= self.num_kv_bytes:
                self.allocations.append((str(function), tuple(tensor.shape)))
            if sources & self.kv_storages and any(word in str(function) for word in COPIES):
                self.copies.append((str(function), tuple(tensor.shape)))
        return result


def settings(dtype, num_kv_heads):
    """Long prefixes and a narrow model: KV of one layer is larger than any activation."""
    size = GemmaSize(width=16, depth=2, mlp_dim=16, num_heads=2, num_kv_heads=num_kv_heads, head_dim=64)
    expert = ExpertConfig("default", GemmaSize(8, 2, 8, 2, num_kv_heads, 64), horizon=4, action_dim=4)
    return config(
        vlm=size,
        experts=(expert,),
        vision=VisionSize(8, 1, 1, 8, 28, 14),
        max_token_len=LONG_PROMPT,
        dtypes=DtypePolicy.openpi(dtype),
    )


def long_runner(dtype=torch.float32, num_kv_heads=1):
    loaded = model(settings(dtype, num_kv_heads))
    run = EagerRunner(loaded, loaded.kv_layout(NUM_SLOTS, 8, 16))
    sizes = [run.prefill(inputs(slot, LONG_PROMPT - slot), slot) for slot in range(NUM_SLOTS)]
    return run, sizes


def rows(sizes, written, prompt=()):
    """Eight texts, two on each prefix."""
    return [
        BatchRow(i, i % NUM_SLOTS, sizes[i % NUM_SLOTS], written, prompt, written, SamplingParams())
        for i in range(8)
    ]


def watch(run, sizes, batch):
    one_layer_of_one_prefix = sizes[-1] * 64 * run.memory.prefix_k.element_size()
    with Watch(run.memory, one_layer_of_one_prefix) as seen:
        run.decode_step(batch)
    assert seen.num_calls > 50
    return seen


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("num_kv_heads", [1, 2])
def test_decode_step_allocates_nothing_of_kv_size_and_copies_no_prefix(dtype, num_kv_heads):
    run, sizes = long_runner(dtype, num_kv_heads)
    run.decode_step(rows(sizes, 1))
    seen = watch(run, sizes, rows(sizes, 2))
    assert len(seen.allocations) == 0, seen.allocations
    assert len(seen.copies) == 0, seen.copies


def test_first_step_with_a_suffix_prompt_allocates_nothing_of_kv_size_and_copies_no_prefix():
    run, sizes = long_runner()
    seen = watch(run, sizes, rows(sizes, 0, prompt=(5, 6, 7)))
    assert len(seen.allocations) == 0, seen.allocations
    assert len(seen.copies) == 0, seen.copies


def test_sampling_actions_allocates_nothing_of_kv_size_and_copies_no_prefix():
    run, sizes = long_runner()
    with Watch(run.memory, sizes[-1] * 64 * 4) as seen:
        run.sample_actions(0, "default", seed=0)
    assert len(seen.allocations) == 0, seen.allocations
    assert len(seen.copies) == 0, seen.copies


def test_watch_sees_a_copy_and_an_allocation_of_kv_size():
    run, sizes = long_runner()
    with Watch(run.memory, sizes[-1] * 64 * 4) as seen:
        run.memory.prefix_k[0].clone()
    assert len(seen.allocations) == 1
    assert len(seen.copies) == 1


def test_watch_sees_a_copy_inside_an_operator_made_of_others():
    run, _ = long_runner()
    keys = run.memory.prefix_k[0, :, 0].transpose(0, 1)  # [tokens, slots, D] has no flat view
    with torch.inference_mode(), Watch(run.memory, 1) as seen:
        keys.flatten(0, 1)
    assert [name for name, _ in seen.copies] == ["aten.clone.default"]
