"""The losses that have a gradient formula of their own; the others are compositions in nn.functional."""
from __future__ import annotations

from typing import Any

import numpy as np

from .table import helper, operation


@helper
def mse_gradient(F, g, input, target, reduction):
    difference = input - target
    return difference * (g * (2.0 / max(_count(difference), 1)) if reduction == "mean" else g * 2.0)


def _count(value: Any) -> int:
    count = 1
    for size in value.shape:
        count *= size
    return count


def check_reduction(reduction: str) -> None:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


@operation(input="mse_gradient(g, input, target, reduction)", target="-mse_gradient(g, input, target, reduction)", method=False)
def mse_loss(input, target, reduction="mean"):
    if input.shape != target.shape:
        raise ValueError("input and target must have one shape")
    difference = input - target
    if reduction == "mean":
        flat = difference.reshape(-1)
        return flat.dot(flat) / flat.size if difference.size else difference.sum() / np.float32(0)
    difference *= difference
    if reduction == "sum":
        return difference.sum()
    check_reduction(reduction)
    return difference


def _class_last(array: np.ndarray) -> np.ndarray:
    """(N, C, d1, ...) as (N * d1 * ..., C); (C,) as (1, C)."""
    if array.ndim == 1:
        return array[None]
    return array if array.ndim == 2 else np.moveaxis(array, 1, -1).reshape(-1, array.shape[1])


def _nll_weights(classes: int, target: np.ndarray, weight: Any, ignore_index: int, dtype: Any) -> tuple:
    """Per sample: its class (0 where ignored) and its weight (0 where ignored)."""
    flat = target.reshape(-1)
    counted = flat != ignore_index
    if not ((flat >= 0) & (flat < classes) | ~counted).all():
        bad = flat[~((flat >= 0) & (flat < classes) | ~counted)][0]
        raise IndexError(f"Target {bad} is out of bounds: there are {classes} classes, 0 to {classes - 1}.")
    if counted.all():
        return flat, np.ones(flat.size, dtype) if weight is None else weight[flat]
    chosen = np.where(counted, flat, 0)
    return chosen, (np.ones(flat.size, dtype) if weight is None else weight[chosen]) * counted


def _check_nll(input: np.ndarray, target: np.ndarray) -> None:
    if input.ndim == 0 or (input.ndim == 1 and target.ndim != 0) or (input.ndim > 1 and (
            target.ndim != input.ndim - 1 or target.shape[:1] != input.shape[:1])):
        if input.ndim >= 2 and target.ndim and target.shape[0] != input.shape[0]:
            raise ValueError(f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({target.shape[0]}).")
        raise RuntimeError(f"nll_loss: input of shape {list(input.shape)} needs a target of shape "
                           f"{list(input.shape[:1] + input.shape[2:])}, got {list(target.shape)}")
    if target.shape[1:] != input.shape[2:]:
        raise RuntimeError(f"size mismatch (got input: {list(input.shape)}, target: {list(target.shape)})")
    if target.dtype.kind not in "iu":
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.name}: the target holds class numbers")


def _reduced(picked: np.ndarray, weights: np.ndarray, target: np.ndarray, reduction: str) -> tuple:
    values = -picked * weights
    if reduction == "none":
        return values.reshape(target.shape), np.asarray(0, values.dtype)
    total = weights.sum()
    return (values.sum() / total if reduction == "mean" else values.sum()), np.asarray(total)


@operation(input="nll_loss_backward(g, target, weight, input_shape, reduction, ignore_index, total_weight)",
           tensors="target weight", extra="total_weight", method=False, node=lambda kept: (
               "NllLossBackward0" if len(kept["input_shape"]) < 3 else "NllLoss2DBackward0"))
def nll_loss(input, target, weight=None, reduction="mean", ignore_index=-100):
    check_reduction(reduction)
    _check_nll(input, target)
    rows = _class_last(input)
    if weight is not None and weight.shape != (rows.shape[1],):
        raise RuntimeError("weight tensor should be defined either for all or no classes: there are "
                           f"{rows.shape[1]} classes, the weight has shape {list(weight.shape)}")
    chosen, weights = _nll_weights(rows.shape[1], target, weight, ignore_index, input.dtype)
    return _reduced(rows[np.arange(rows.shape[0]), chosen], weights, target, reduction)


@operation(grad="nll_loss_apply(g, target, weight, reduction, ignore_index, total_weight)", public=False, method=False,
           tensors="target weight total_weight")
def nll_loss_backward(grad, target, weight=None, shape=(), reduction="mean", ignore_index=-100, total_weight=None):
    """The gradient of nll_loss with respect to its input, which it is linear in."""
    classes = shape[0] if len(shape) == 1 else shape[1]
    chosen, weights = _nll_weights(classes, target, weight, ignore_index, grad.dtype)
    values = -weights * grad.reshape(-1)
    if reduction == "mean":
        values = values / total_weight
    made = np.zeros((chosen.size, classes), grad.dtype)
    made[np.arange(chosen.size), chosen] = values
    if len(shape) > 2:
        made = np.moveaxis(made.reshape(shape[0], *shape[2:], classes), -1, 1)
    return made.reshape(shape)


@operation(grad="nll_loss_backward(g, target, weight, grad_shape, reduction, ignore_index, total_weight)", public=False,
           method=False, tensors="target weight total_weight")
def nll_loss_apply(grad, target, weight=None, reduction="mean", ignore_index=-100, total_weight=None):
    """nll_loss again, with the total weight given: the gradient of its gradient."""
    rows = _class_last(grad)
    chosen, weights = _nll_weights(rows.shape[1], target, weight, ignore_index, grad.dtype)
    made, _ = _reduced(rows[np.arange(rows.shape[0]), chosen], weights, target, "none")
    if reduction == "none":
        return made
    return made.sum() / total_weight if reduction == "mean" else made.sum()
