"""Softmax and its logarithm."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes
from .table import TENSORS, helper, method, operation, public


@helper
def softmax_gradient(F, g, result, dim):
    weighted = g * result
    return weighted - result * F.sum(weighted, dim, True)


@operation(input="softmax_gradient(g, conj(result), dim)", name="softmax_core", node="SoftmaxBackward0", public=False,
           method=False)
def softmax_core(input, dim):
    _check(input, dim, "softmax")
    if not input.size:
        return input.copy()
    made = np.exp(input - np.maximum.reduce(input, dim, keepdims=True)) if input.ndim else np.ones_like(input)
    if input.ndim:
        made /= np.add.reduce(made, dim, keepdims=True)
    return made


@operation(input="g - exp(result) * sum(g, dim, True)", name="log_softmax_core", node="LogSoftmaxBackward0", public=False,
           method=False)
def log_softmax_core(input, dim):
    _check(input, dim, "log_softmax")
    if not input.size:
        return input.copy()
    if not input.ndim:
        return np.zeros_like(input)
    shifted = input - np.maximum.reduce(input, dim, keepdims=True)
    shifted -= np.log(np.add.reduce(np.exp(shifted), dim, keepdims=True))
    return shifted


def _check(array: np.ndarray, dim: int, name: str) -> None:
    rank = max(array.ndim, 1)
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    if dtypes.category(array.dtype) != dtypes.FLOATING:
        raise NotImplementedError(f'"{name}_lastdim_kernel_impl" not implemented for \'{dtypes.from_numpy(array.dtype).name}\': '
                                  "convert the tensor to a floating dtype first")


def _define(name: str) -> None:
    core = name + "_core"

    def function(input: Any, dim: int, dtype: Any = None, *, out: Any = None) -> Any:
        if dtype is not None:
            input = input.to(dtype)
        made = TENSORS.__dict__[core](input, dim)
        return made if out is None else out.copy_(made)

    function.__name__ = function.__qualname__ = name
    public(function)
    method(function)


_define("softmax")
_define("log_softmax")
