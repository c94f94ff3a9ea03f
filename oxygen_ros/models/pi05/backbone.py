"""The language backbone: prefill of one prefix, one step of text rows, scores of the next token.

Pure functions. Keys and values go straight into the KV memory; nothing of its size is made on the way.
Shapes: T prefix tokens, N new text tokens, W width, H query heads, K KV heads, D head size.
"""

from __future__ import annotations

import torch
from torch import Tensor

from oxygen_ros.kv.memory import KVMemory, PrefixKV
from oxygen_ros.models.attention import attend, fold_heads, unfold_heads
from oxygen_ros.models.norm import rms_norm
from oxygen_ros.models.pi05.config import AttentionMode, Pi05Config
from oxygen_ros.models.pi05.gemma import gated_mlp, project_last_kv, project_last_query, project_qkv
from oxygen_ros.models.pi05.weights import BackboneWeights, GemmaLayer
from oxygen_ros.models.rope import RopeTable
from oxygen_ros.models.text_attention import attend_text, memory_views
from oxygen_ros.models.text_batch import TextBatch


def embed_tokens(weights: BackboneWeights, token_ids: Tensor) -> Tensor:
    """Embedding rows [T, W] of ``token_ids`` int64 [T], scaled by sqrt(W). Image tokens are not scaled."""
    rows = weights.embedding[token_ids]
    return rows * rows.shape[-1] ** 0.5


def prefill(
    weights: BackboneWeights,
    config: Pi05Config,
    x: Tensor,
    num_image_tokens: int,
    rope: RopeTable,
    kv: PrefixKV,
    is_every_row_wanted: bool = False,
) -> Tensor:
    """Write keys and values of ``x`` [T, W], the valid prefix tokens, into ``kv`` from token 0 on.

    The last layer is computed for the last row only, unless every row is wanted.

    Args:
        num_image_tokens: leading rows of ``x`` that are image tokens; the rest is text.
        rope: rows 0 .. T - 1.

    Returns:
        The hidden rows after the final norm: [1, W], or [T, W] if every row is wanted.
    """
    num_tokens = x.shape[0]
    size, eps = config.vlm, config.rms_norm_eps
    text_bias = _text_bias(config, x, num_image_tokens)
    slots = zip(kv.k[:, :, :num_tokens].unbind(0), kv.v[:, :, :num_tokens].unbind(0), strict=True)
    *inner, last = zip(weights.layers, slots, strict=True)
    for layer, slot in inner if not is_every_row_wanted else [*inner, last]:
        q, k, v = project_qkv(layer, size, rms_norm(x, layer.norms[0], eps), rope)
        keys, values = _store(slot, k, v)
        attended = _attend_prefix(q, keys, values, num_image_tokens, text_bias)
        x = _finish_layer(layer, x, attended, eps)
    if not is_every_row_wanted:
        layer, slot = last
        normed = rms_norm(x, layer.norms[0], eps)
        keys, values = _store(slot, *project_last_kv(layer, size, normed, rope))
        end = rope.rows(num_tokens - 1, num_tokens)
        q = project_last_query(layer, size, normed[-1:], end)
        attended = unfold_heads(attend(fold_heads(q, size.num_kv_heads), keys, values), 1)
        x = _finish_layer(layer, x[-1:], attended, eps)
    return rms_norm(x, weights.norm, eps)


def _store(slot: tuple[Tensor, Tensor], k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Write k, v [T, K, D] into the views [K, T, D] of one layer, and give these."""
    keys, values = slot
    keys.copy_(k.transpose(0, 1))
    values.copy_(v.transpose(0, 1))
    return keys, values


def _text_bias(config: Pi05Config, x: Tensor, num_image_tokens: int) -> Tensor | None:
    """Score bias of text queries, [text * heads per KV head, T]; None where text sees everything."""
    if config.attention is AttentionMode.BIDIRECTIONAL:
        return None
    keys = torch.arange(x.shape[0], device=x.device)
    queries = keys[num_image_tokens:].repeat_interleave(config.vlm.num_heads // config.vlm.num_kv_heads)
    return (keys > queries[:, None]).to(x.dtype) * (torch.finfo(x.dtype).min / 2)


def _attend_prefix(
    q: Tensor, keys: Tensor, values: Tensor, num_image_tokens: int, text_bias: Tensor | None
) -> Tensor:
    """Attention of q [T, H, D] inside the prefix, [T, H * D]; images see images only if text is causal."""
    num_kv_heads, num_tokens, _ = keys.shape
    if text_bias is None:
        return unfold_heads(attend(fold_heads(q, num_kv_heads), keys, values), num_tokens)
    text = attend(fold_heads(q[num_image_tokens:], num_kv_heads), keys, values, text_bias)
    text = unfold_heads(text, num_tokens - num_image_tokens)
    if num_image_tokens == 0:
        return text
    image_q = fold_heads(q[:num_image_tokens], num_kv_heads)
    images = attend(image_q, keys[:, :num_image_tokens], values[:, :num_image_tokens])
    return torch.cat([unfold_heads(images, num_image_tokens), text])


def _finish_layer(layer: GemmaLayer, x: Tensor, attended: Tensor, eps: float) -> Tensor:
    """Residual after attention and after the MLP."""
    x = x + layer.o(attended)
    return x + gated_mlp(layer, rms_norm(x, layer.norms[1], eps))


def text_step(
    weights: BackboneWeights,
    config: Pi05Config,
    token_ids: Tensor,
    batch: TextBatch,
    rope: RopeTable,
    memory: KVMemory,
) -> Tensor:
    """Append ``token_ids`` [N] to their rows: one function for suffix prompts and for single tokens.

    Args:
        rope: rows at ``batch.positions``.

    Returns:
        The hidden rows after the final norm of each segment's last token, [num_segments, W].
    """
    size, eps = config.vlm, config.rms_norm_eps
    x = embed_tokens(weights, token_ids)
    views = memory_views(batch, memory)
    row_k, row_v = memory.row_k.unbind(0), memory.row_v.unbind(0)
    for index, layer in enumerate(weights.layers):
        q, k, v = project_qkv(layer, size, rms_norm(x, layer.norms[0], eps), rope)
        row_k[index][batch.rows, :, batch.suffix_index] = k
        row_v[index][batch.rows, :, batch.suffix_index] = v
        attended = attend_text(q, index, batch, views)
        x = _finish_layer(layer, x, attended, eps)
    return rms_norm(x[batch.last], weights.norm, eps)
