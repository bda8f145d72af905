"""Attention as functions."""

from __future__ import annotations

import math
from typing import Any

import rushlight

from ..ops.table import TENSORS
from ..tensor import Tensor
from .functional_activation import dropout


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """``softmax(q @ k.T * scale + mask) @ v``; a boolean mask says which positions take part."""
    return attend(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)[0]


def attend(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The attended values and the weights they were taken with."""
    factor = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    if enable_gqa:
        repeats = query.size(-3) // key.size(-3)
        key, value = key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)
    scores = (query * factor) @ key.transpose(-2, -1)
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
            )
        allowed = rushlight.ones(query.size(-2), key.size(-2), dtype=rushlight.bool).tril()
        scores = scores.masked_fill(~allowed, -math.inf)
    elif attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype == rushlight.bool else scores + attn_mask
    weights = TENSORS.softmax(scores, -1)
    if attn_mask is not None and attn_mask.dtype == rushlight.bool:
        # A query that may attend to nothing gets zeros instead of the softmax of nothing.
        weights = weights.masked_fill(~attn_mask.any(-1, keepdim=True), 0.0)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    return weights @ value, weights


def _additive(mask: Tensor | None, like: Tensor, name: str) -> Tensor | None:
    """A mask to add to the scores: a boolean one forbids where it is True."""
    if mask is None or mask.dtype != rushlight.bool:
        if mask is not None and not mask.is_floating_point():
            raise AssertionError(f"only bool and floating types of {name} are supported")
        return mask
    return rushlight.zeros(mask.shape, dtype=like.dtype).masked_fill_(mask, float("-inf"))


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None,
    add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor, out_proj_bias: Tensor | None,
    training: bool = True, key_padding_mask: Tensor | None = None, need_weights: bool = True,
    attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None, static_k: Tensor | None = None,
    static_v: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Project, attend with every head, project back. Inputs are (length, batch, embedding) or (length, embedding)."""
    if static_k is not None or static_v is not None:
        raise NotImplementedError("multi_head_attention_forward: static_k and static_v are not supported.")
    single = query.dim() == 2
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if single:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    target, batch, embedding = query.shape
    if embedding != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {embedding}"
        )
    head = embedding // num_heads
    if use_separate_proj_weight:
        weights: Any = (q_proj_weight, k_proj_weight, v_proj_weight)
    else:
        assert in_proj_weight is not None
        weights = in_proj_weight.chunk(3)
    biases: Any = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
    sources = (query, key, value)
    q, k, v = (TENSORS.linear(*parts) for parts in zip(sources, weights, biases, strict=True))
    mask = _additive(attn_mask, q, "attn_mask")
    padding = _additive(key_padding_mask, q, "key_padding_mask")
    if mask is not None and mask.dim() == 3:
        mask = mask.reshape(batch, num_heads, mask.size(1), mask.size(2))
    extra = 0
    if bias_k is not None and bias_v is not None:
        k = rushlight.cat([k, bias_k.repeat(1, batch, 1)])
        v = rushlight.cat([v, bias_v.repeat(1, batch, 1)])
        extra += 1
    # (length, batch, embedding) -> (batch, heads, length, head)
    q, k, v = (each.reshape(each.size(0), batch, num_heads, head).permute(1, 2, 0, 3) for each in (q, k, v))
    if add_zero_attn:
        zeros = k.new_zeros((batch, num_heads, 1, head))
        k, v = rushlight.cat([k, zeros], 2), rushlight.cat([v, zeros], 2)
        extra += 1
    if extra:  # what was appended is never masked
        mask = None if mask is None else _widened(mask, extra)
        padding = None if padding is None else _widened(padding, extra)
    if padding is not None:
        shaped = padding.reshape(batch, 1, 1, padding.size(-1))
        mask = shaped if mask is None else mask + shaped
    output, attention = attend(q, k, v, mask, dropout_p if training else 0.0)
    joined = output.permute(2, 0, 1, 3).reshape(target, batch, embedding)
    result = TENSORS.linear(joined, out_proj_weight, out_proj_bias)
    shown: Tensor | None = None
    if need_weights:
        shown = attention.mean(1) if average_attn_weights else attention
    if single:
        result = result.squeeze(1)
        shown = None if shown is None else shown.squeeze(0)
    return result, shown


def _widened(mask: Tensor, columns: int) -> Tensor:
    return rushlight.cat([mask, mask.new_zeros((*mask.shape[:-1], columns))], -1)
