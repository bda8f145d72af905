"""Brings a gradient to the shape and dtype of the argument it belongs to."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..arrays.dtypes import COMPLEX, category
from ..tensor import Tensor
from .table import TENSORS

_add_reduce = np.add.reduce


def summed_dimensions(shape: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """How a broadcast from `target` to `shape` is undone: leading dimensions to drop, and dimensions to sum to 1."""
    leading = len(shape) - len(target)
    return leading, tuple(i + leading for i, size in enumerate(target) if size == 1 and shape[i + leading] != 1)


def sum_to(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum an array down to a shape that broadcasts to its own."""
    if array.shape == shape:
        return array
    leading, ones = summed_dimensions(array.shape, shape)
    if array.dtype.itemsize == 2 and array.dtype.kind in "fV":  # half precision would round at each step
        return sum_to(array.astype(np.float32), shape).astype(array.dtype)
    if ones:
        array = array.sum(ones, keepdims=True)
    if leading:
        array = array.sum(tuple(range(leading)))
    return array if array.shape == shape else array.reshape(shape)


def fit(gradient: Any, meta: tuple) -> Any:
    """A raw gradient, fitted to (shape, dtype)."""
    if gradient is None:
        return None
    shape, dtype = meta
    has = gradient.shape
    if has != shape:
        if has[1:] == shape:  # the most common of all: a bias
            gradient = _add_reduce(gradient, 0)
        else:
            # Some formulas give a gradient that has yet to be broadcast (a scalar for a whole array).
            if len(has) < len(shape) or gradient.size < prod(shape):
                gradient = np.broadcast_to(gradient, np.broadcast_shapes(has, shape))
            gradient = sum_to(gradient, shape)
    if gradient.dtype is not dtype and gradient.dtype != dtype:
        if gradient.dtype.kind == "c" and category(dtype) != COMPLEX:
            gradient = gradient.real
        gradient = gradient.astype(dtype)
    return gradient


def fit_list(gradients: list, metas: tuple) -> list:
    return [fit(g, meta) for g, meta in zip(gradients, metas, strict=True)]


def fit_tensor(gradient: Tensor | None, meta: tuple) -> Tensor | None:
    """The same on tensors, differentiably."""
    if gradient is None:
        return None
    shape, dtype = meta
    if gradient._shape != shape:
        if len(gradient._shape) < len(shape) or gradient._array.size < prod(shape):
            gradient = TENSORS.expand(gradient, np.broadcast_shapes(gradient._shape, shape))
        gradient = TENSORS.sum_to_size(gradient, shape)
    if gradient._array.dtype != dtype:  # type: ignore[union-attr]
        if gradient._array.dtype.kind == "c" and category(dtype) != COMPLEX:  # type: ignore[union-attr]
            gradient = TENSORS.real(gradient)
        gradient = TENSORS.cast(gradient, dtype)
    return gradient


def fit_tensor_list(gradients: list, metas: tuple) -> list:
    return [fit_tensor(g, meta) for g, meta in zip(gradients, metas, strict=True)]
