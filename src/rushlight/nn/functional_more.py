"""Losses and distances that few programs use: CTC, cross entropy of a linear layer, distances within a set."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..ops.losses import check_reduction
from ..ops.table import TENSORS
from ..tensor import Tensor, wrap
from .functional_other import cross_entropy, linear


def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The p-norm distance of every row from every one after it."""
    return TENSORS.pdist(input, p)


# -- connectionist temporal classification ---------------------------------------------------------------------------
def _lengths(name: str, given: Any, batch: int, longest: int | None = None) -> np.ndarray:
    """Lengths given as a tensor, a number or numbers: one for each of the batch."""
    array = given._array if isinstance(given, Tensor) else np.asarray(given, np.int64)
    if array.dtype.kind not in "iu":
        raise RuntimeError(f"{name} must be integral")
    array = array.reshape(-1).astype(np.int64)
    if array.size != batch:
        raise RuntimeError(f"{name} must be of size batch_size")
    if (array < 0).any():
        raise RuntimeError(f"Expected {name} to have value at least 0, but got value {array[array < 0][0]}")
    if longest is not None and (array > longest).any():
        raise RuntimeError(f"Expected {name} to have value at most {longest}, but got value {array[array > longest][0]}")
    return array


def _padded_targets(targets: Tensor, sizes: np.ndarray, blank: int, classes: int) -> np.ndarray:
    """The targets in rows, blank after the end of each; they are given so, or one after another."""
    given = targets._array.astype(np.int64)
    made = np.full((len(sizes), int(sizes.max(initial=0))), blank, np.int64)
    inside = np.arange(made.shape[1]) < sizes[:, None]
    if given.ndim == 1:
        if given.size != sizes.sum():
            raise RuntimeError(f"Expected tensor to have size {sizes.sum()} at dimension 0, but got size {given.size} for "
                               "argument #2 'targets'")
        made[inside] = given
    else:
        if given.ndim != 2 or given.shape[0] != len(sizes):
            raise RuntimeError(f"Expected tensor to have size {len(sizes)} at dimension 0, but got size {given.shape[0]} "
                               "for argument #2 'targets'")
        if given.shape[1] < made.shape[1]:
            raise RuntimeError(f"Expected tensor to have size at least {made.shape[1]} at dimension 1, but got size "
                               f"{given.shape[1]} for argument #2 'targets'")
        made = np.where(inside, given[:, :made.shape[1]], blank)
    if ((made < 0) | (made >= classes)).any():
        raise RuntimeError(f"ctc_loss: targets must be class numbers from 0 to {classes - 1}")
    return made


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Minus the log-probability that predictions (time, batch, classes) spell their targets."""
    check_reduction(reduction)
    alone = log_probs.dim() == 2
    if alone:
        log_probs = log_probs.unsqueeze(1)
    if not log_probs.numel():
        raise RuntimeError("log_probs tensor must not be empty")
    time, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    steps = _lengths("input_lengths", input_lengths, batch, time)
    sizes = _lengths("target_lengths", target_lengths, batch)
    rows = wrap(_padded_targets(targets, sizes, blank, classes))
    loss = TENSORS.ctc_loss_of_each(
        log_probs, rows, tuple(steps.tolist()), tuple(sizes.tolist()), blank, zero_infinity
    )
    if zero_infinity:
        loss = TENSORS.where(loss == np.inf, TENSORS.zeros_like(loss), loss)
    if reduction == "mean":
        return (loss / wrap(np.maximum(sizes, 1))).mean()
    if reduction == "sum":
        return loss.sum()
    return loss.squeeze(0) if alone else loss


# -- cross entropy of a linear layer ---------------------------------------------------------------------------------
def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: Any = None,
) -> Tensor:  # fmt: skip
    """cross_entropy(linear(input)). ``options`` tells PyTorch how to save memory; here it makes no difference."""
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    batch, features = tuple(input.shape[:-1]), input.shape[-1]
    if features != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {features} and {linear_weight.shape[-1]}, respectively"
        )
    classes = tuple(linear_weight.shape[:-1])  # and after their number the further dimensions of the loss
    if linear_bias is not None and tuple(linear_bias.shape) != classes:
        raise RuntimeError(f"expected linear_bias shape {classes}, got {tuple(linear_bias.shape)}")
    if len(classes) > 1 and not batch:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )
    if tuple(target.shape) == batch + classes and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if len(classes) > 1:
        linear_weight = linear_weight.reshape(prod(classes), features)
        linear_bias = None if linear_bias is None else linear_bias.reshape(prod(classes))
    logits = linear(input, linear_weight, linear_bias).reshape(batch + classes)
    return cross_entropy(
        logits, target, weight=weight, reduction=reduction, label_smoothing=label_smoothing,
        ignore_index=-100 if ignore_index is None else ignore_index,
    )  # fmt: skip
