"""Limiting gradients, by their common norm or element by element."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...graph.versions import bump
from ...tensor import Tensor, wrap


def _gradients(parameters: Any) -> list[Tensor]:
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    else:
        parameters = list(parameters)
        if not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    return [parameter._grad for parameter in parameters if parameter._grad is not None]


def _norm(array: np.ndarray, norm_type: float) -> Any:
    if norm_type == 2.0 and array.dtype.kind == "f":
        flat = array.reshape(-1)
        return np.sqrt(flat.dot(flat))
    size = np.abs(array).reshape(-1)
    if norm_type == math.inf:
        return size.max() if size.size else size.dtype.type(0)
    if norm_type == 0:
        return np.count_nonzero(size)
    return (size**norm_type).sum() ** (1.0 / norm_type)


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors taken as one vector."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return wrap(np.zeros((), np.float32))
    with np.errstate(all="ignore"):
        norms = np.array([_norm(tensor._array, norm_type) for tensor in tensors], tensors[0]._array.real.dtype)
        total = np.asarray(_norm(norms, norm_type), norms.dtype)
    if error_if_nonfinite and not np.isfinite(total):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. With error_if_nonfinite=False the gradients become nan instead."
        )
    return wrap(total)


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale the gradients so that a total norm of ``total_norm`` becomes at most ``max_norm``."""
    with np.errstate(all="ignore"):
        factor = np.minimum(float(max_norm) / (total_norm._array + total_norm._array.dtype.type(1e-6)), 1.0)
    for gradient in _gradients(parameters):
        array = gradient._array
        np.multiply(array, np.asarray(factor, array.real.dtype), array)
        bump(gradient)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients together to a norm of at most ``max_norm``; the norm before is returned."""
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """The old name of ``clip_grad_norm_``."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **kwargs)


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clamp every element of the gradients to ``[-clip_value, clip_value]``."""
    limit = float(clip_value)
    for gradient in _gradients(parameters):
        np.clip(gradient._array, -limit, limit, out=gradient._array)
        bump(gradient)
