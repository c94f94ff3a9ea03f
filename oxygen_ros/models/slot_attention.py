"""Attention of action tokens behind a prefix, in the prefix's own slot: nothing of the slot is copied.

A compiler that looks inside turns the writes into copies of the whole slot, one per layer. So compiled code
calls an operator that it cannot look into; direct calls use the views without that operator's cost.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from oxygen_ros.kv.memory import PrefixKV
from oxygen_ros.models.attention import attend

SlotAttention = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""Of (layer, q [K, M, D], k [T, K, D], v [T, K, D]): writes k and v, gives what q sees, [K, M, D]."""


def slot_attention(kv: PrefixKV, start: int, end: int) -> SlotAttention:
    """Attention of tokens ``start`` .. ``end - 1`` to all tokens before ``end``, theirs included."""
    if torch.compiler.is_compiling():
        return lambda layer, q, k, v: attend_in_slot(q, k, v, kv.k, kv.v, layer, start)
    views = tuple(zip(*_layer_views(kv, start, end), strict=True))

    def attend_directly(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        new_k, new_v, keys, values = views[layer]
        new_k.copy_(k)
        new_v.copy_(v)
        return attend(q, keys, values)

    return attend_directly


@torch.library.custom_op("oxygen_ros::attend_in_slot", mutates_args=("slot_k", "slot_v"))
def attend_in_slot(
    q: Tensor, k: Tensor, v: Tensor, slot_k: Tensor, slot_v: Tensor, layer: int, start: int
) -> Tensor:
    """One layer of ``slot_attention`` in the slot [layers, K, capacity, D], for compiled code."""
    end = start + k.shape[0]
    slot_k[layer, :, start:end] = k.transpose(0, 1)
    slot_v[layer, :, start:end] = v.transpose(0, 1)
    return attend(q, slot_k[layer, :, :end], slot_v[layer, :, :end]).contiguous()


@attend_in_slot.register_fake
def _attend_in_slot_shape(
    q: Tensor, k: Tensor, v: Tensor, slot_k: Tensor, slot_v: Tensor, layer: int, start: int
) -> Tensor:
    return q.new_empty(q.shape)


def _layer_views(kv: PrefixKV, start: int, end: int) -> tuple[tuple[Tensor, ...], ...]:
    """By layer: where new keys and values go, [T, K, D], and all that are read, [K, end, D]."""
    return (
        kv.k[:, :, start:end].transpose(1, 2).unbind(0),
        kv.v[:, :, start:end].transpose(1, 2).unbind(0),
        kv.k[:, :, :end].unbind(0),
        kv.v[:, :, :end].unbind(0),
    )
