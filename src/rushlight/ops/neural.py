"""Embedding, dropout and layer normalization: what networks are made of besides products and activations."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..tensor import Tensor, wrap
from .table import TENSORS, operation, public


@operation(weight="embedding_backward(g, indices, weight_shape, padding_idx, scale_grad_by_freq)", tensors="indices",
           method=False)
def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if indices.dtype.kind not in "iu":
        raise RuntimeError("Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but "
                           f"got {indices.dtype.name} instead (while checking arguments for embedding)")
    if sparse:
        raise NotImplementedError("embedding(sparse=True): sparse gradients are not supported; leave it out for dense ones")
    if weight.ndim != 2:
        raise RuntimeError(f"'weight' must be 2-D, got shape {list(weight.shape)}")
    if indices.size and (indices.min() < 0 or indices.max() >= weight.shape[0]):
        raise IndexError(f"index out of range in self: the embedding has {weight.shape[0]} rows, the indices run from "
                         f"{indices.min()} to {indices.max()}")
    return weight[indices]


@operation(grad="embedding_rows(g, indices, padding_idx, scale_grad_by_freq)", tensors="indices", public=False, method=False)
def embedding_backward(grad, indices, shape, padding_idx, scale_grad_by_freq):
    flat, rows = indices.reshape(-1), grad.reshape(-1, shape[1])
    rows = rows * _row_factors(flat, padding_idx, scale_grad_by_freq, grad.dtype)
    made = np.zeros(shape, grad.dtype)
    np.add.at(made, flat, rows)
    return made


def _row_factors(flat: np.ndarray, padding_idx: int, by_frequency: bool, dtype: Any) -> Any:
    factors = (flat != padding_idx).astype(dtype) if padding_idx >= 0 else np.ones(flat.size, dtype)
    if by_frequency and flat.size:
        factors = factors / np.bincount(flat)[flat].astype(dtype)
    return factors[:, None]


@operation(grad="embedding_backward(g, indices, grad_shape, padding_idx, scale_grad_by_freq)", tensors="indices", public=False,
           method=False)
def embedding_rows(grad, indices, padding_idx, scale_grad_by_freq):
    flat = indices.reshape(-1)
    made = grad[flat] * _row_factors(flat, padding_idx, scale_grad_by_freq, grad.dtype)
    return made.reshape(*indices.shape, grad.shape[1])


@public
def dropout(input: Tensor, p: float = 0.5, train: bool = True) -> Tensor:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not train or p == 0 or not input._array.size:
        return input
    from ..arrays import random  # which not every program needs
    return TENSORS.mul(input, wrap(random.dropout_noise(None, input._shape, input._array.dtype, p)))


@public
def dropout_(input: Tensor, p: float = 0.5, train: bool = True) -> Tensor:
    if not train or p == 0 or not input._array.size:
        return input
    from ..arrays import random
    return TENSORS.mul_(input, wrap(random.dropout_noise(None, input._shape, input._array.dtype, p)))


def _layer_norm_gradients(F, needs, g, input, weight, mean, rstd, normalized_shape, eps):
    axes = tuple(range(-len(normalized_shape), 0))
    if F is TENSORS:  # the second derivative runs through the statistics too
        mean, rstd = _statistics(input, axes, eps)
    normal = (input - mean) * rstd
    grad_input = grad_weight = grad_bias = None
    if needs[0]:
        inner = g if weight is None else g * weight
        grad_input = (inner - F.mean(inner, axes, True) - normal * F.mean(inner * normal, axes, True)) * rstd
    leading = tuple(range(len(g.shape) - len(normalized_shape)))
    if needs[1]:
        grad_weight = F.sum(g * normal, leading, False) if leading else g * normal
    if needs[2]:
        grad_bias = F.sum(g, leading, False) if leading else g
    return grad_input, grad_weight, grad_bias


@operation(differentiable="input weight bias", together=_layer_norm_gradients, extra="mean rstd", node="NativeLayerNormBackward0",
           name="layer_norm_core", public=False, method=False)
def layer_norm_core(input, weight=None, bias=None, normalized_shape=(), eps=1e-5):
    shape = tuple(normalized_shape)
    if input.shape[-len(shape):] != shape:
        raise RuntimeError(f"Given normalized_shape={list(shape)}, expected input with shape [*, {str(list(shape))[1:-1]}], but "
                           f"got input of size {list(input.shape)}")
    axes = tuple(range(-len(shape), 0))
    mean = input.mean(axes, keepdims=True)
    centred = input - mean
    rstd = 1 / np.sqrt((centred * centred).mean(axes, keepdims=True) + input.dtype.type(eps))
    made = centred
    made *= rstd
    if weight is not None:
        made = made * weight
    if bias is not None:
        made = made + bias
    return made.astype(input.dtype, copy=False), mean, rstd.astype(input.dtype, copy=False)


def _statistics(input: Tensor, axes: tuple, eps: float) -> tuple:
    mean = TENSORS.mean(input, axes, True)
    centred = input - mean  # type: ignore[operator]
    return mean, TENSORS.rsqrt(TENSORS.mean(centred * centred, axes, True) + eps)


@public
def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5, cudnn_enable: bool = True) -> Tensor:
    return TENSORS.layer_norm_core(input, weight, bias, tuple(normalized_shape), eps)
