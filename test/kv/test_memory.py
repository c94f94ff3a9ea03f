import pytest
import torch

from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.kv.memory import KVMemory

CPU = torch.device("cpu")


def memory(dtype="float32"):
    return KVMemory(KVLayout(3, 2, 8, dtype, 4, 10, 5, 6), CPU)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_memory_holds_the_bytes_that_the_layout_states(dtype):
    pool = memory(dtype)
    assert pool.num_bytes == pool.layout.total_bytes
    assert pool.prefix_k.shape == (3, 4, 2, 10, 8)
    assert pool.row_v.shape == (3, 5, 2, 6, 8)
    assert pool.row_k.dtype == getattr(torch, dtype)


def test_prefix_is_a_view_and_starts_as_zero():
    pool = memory()
    assert not pool.prefix_k.any()
    assert not pool.row_v.any()
    pool.prefix(2).k[1, 0, 3] = 7.0
    assert pool.prefix_k[1, 2, 0, 3].tolist() == [7.0] * 8
    assert not pool.prefix_k[:, :2].any()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_checksums_tell_which_layer_changed_and_look_at_valid_tokens_only(dtype):
    pool = memory(dtype)
    pool.prefix_k.normal_()
    before = pool.prefix_checksums(1, 5)
    assert len(set(before)) == 3
    pool.prefix(1).k[:, :, 5] += 1
    pool.prefix(0).v[:] += 1
    assert pool.prefix_checksums(1, 5) == before
    pool.prefix(1).v[2, 1, 4, 0] += 1
    after = pool.prefix_checksums(1, 5)
    assert [a == b for a, b in zip(after, before, strict=True)] == [True, True, False]


def test_clearing_one_prefix_or_row_leaves_the_others():
    pool = memory()
    for tensor in (pool.prefix_k, pool.prefix_v, pool.row_k, pool.row_v):
        tensor.fill_(torch.nan)
    pool.clear_prefix(1)
    pool.clear_row(4)
    assert not pool.prefix_k[:, 1].any()
    assert not pool.prefix_v[:, 1].any()
    assert not pool.row_k[:, 4].any()
    assert not pool.row_v[:, 4].any()
    assert pool.prefix_v[:, [0, 2, 3]].isnan().all()
    assert pool.row_k[:, :4].isnan().all()
