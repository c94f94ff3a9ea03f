import pytest
import torch

from oxygen_ros.models.attention import (
    attend,
    attend_by_products,
    attend_with_sum,
    fold_heads,
    merge,
    unfold_heads,
)
from oxygen_ros.models.rope import apply_rope, make_rope_table

CPU = torch.device("cpu")


def naive(q, k, v, mask):
    """Attention of q [T, H, D] to k and v [K, N, D], mask [T, N]: heads one by one."""
    repeats = q.shape[1] // k.shape[0]
    heads = []
    for head in range(q.shape[1]):
        keys, values = k[head // repeats].double(), v[head // repeats].double()
        scores = q[:, head].double() @ keys.T / q.shape[-1] ** 0.5
        heads.append(scores.masked_fill(~mask, -torch.inf).softmax(-1) @ values)
    return torch.stack(heads, dim=1).flatten(1)


@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
def test_folded_heads_equal_repeated_keys(num_kv_heads):
    q, k, v = torch.randn(3, 4, 8), *torch.randn(2, num_kv_heads, 5, 8)
    out = unfold_heads(attend(fold_heads(q, num_kv_heads), k, v), 3)
    torch.testing.assert_close(
        out.double(), naive(q, k, v, torch.ones(3, 5, dtype=torch.bool)), atol=1e-6, rtol=0
    )


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("num_kv_heads", [1, 2])
@pytest.mark.parametrize("attend_part", [attend_with_sum, attend_by_products])
def test_two_stretches_merged_equal_one_softmax_over_both(attend_part, dtype, tolerance, num_kv_heads):
    q = torch.randn(3, num_kv_heads, 4, 8).to(dtype)
    k, v = torch.randn(2, 3, num_kv_heads, 9, 8).to(dtype)
    valid = torch.tensor([5, 2, 4])
    bias = (torch.arange(6)[None] >= valid[:, None]).to(dtype) * (torch.finfo(dtype).min / 2)
    first = attend_part(q, k[:, :, :6], v[:, :, :6], bias[:, None, None])
    second = attend_part(q, k[:, :, 6:], v[:, :, 6:], torch.zeros(3, 1, 1, 3, dtype=dtype))
    out = merge(*first, *second)
    for lane in range(3):
        mask = torch.cat([torch.arange(6) < valid[lane], torch.ones(3, dtype=torch.bool)]).expand(4, -1)
        for head in range(num_kv_heads):
            expected = naive(q[lane, head][:, None], k[lane, head][None], v[lane, head][None], mask)
            torch.testing.assert_close(out[lane, head].double(), expected, atol=tolerance, rtol=0)


def test_merge_ignores_a_stretch_that_weighs_nothing():
    kept, lost = torch.randn(2, 4), torch.full((2, 4), 1e30)
    torch.testing.assert_close(merge(kept, torch.zeros(2), lost, torch.full((2,), -1e30)), kept)


def test_rope_turns_half_split_pairs_by_position_times_frequency():
    x = torch.randn(6, 2, 8)
    table = make_rope_table(10, 8, 100.0, torch.float32, CPU)
    turned = apply_rope(x, table.rows(3, 9))
    for t in range(6):
        for pair in range(4):
            angle = torch.tensor((3 + t) * 100.0 ** (-2 * pair / 8))
            a, b = x[t, :, pair], x[t, :, pair + 4]
            torch.testing.assert_close(turned[t, :, pair], a * angle.cos() - b * angle.sin())
            torch.testing.assert_close(turned[t, :, pair + 4], b * angle.cos() + a * angle.sin())


def test_rope_rows_at_positions_equal_rows_of_the_table():
    table = make_rope_table(10, 8, 10000.0, torch.bfloat16, CPU)
    picked = table.at(torch.tensor([4, 5]))
    assert torch.equal(picked.cos, table.rows(4, 6).cos)
    assert torch.equal(picked.sin, table.rows(4, 6).sin)
