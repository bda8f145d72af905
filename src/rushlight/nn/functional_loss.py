"""Losses as functions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import rushlight

from ..ops.losses import check_reduction
from ..ops.table import TENSORS
from ..tensor import Tensor
from .functional_norm import pairwise_distance


def reduction_from_legacy(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction meant by the old pair of flags, or ``reduction`` where they are not given."""
    if size_average is None and reduce is None:
        return reduction
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    meant = ("mean" if size_average else "sum") if reduce else "none"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{meant}' instead.", stacklevel=3
    )
    return meant


def _reduce(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    check_reduction(reduction)
    return loss


def _check_sizes(input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
            "They are broadcast against each other, which is seldom what is meant: give both one shape.",
            stacklevel=3,
        )


def mse_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    if size_average is not None or reduce is not None:
        reduction = reduction_from_legacy(size_average, reduce, reduction)
    if input._shape != target._shape:
        _check_sizes(input, target)
        input, target = rushlight.broadcast_tensors(input, target)
    if weight is not None:
        return _weighted((input - target) ** 2, weight, reduction)
    check_reduction(reduction)
    return TENSORS.mse_loss(input, target, reduction)


def _weighted(loss: Tensor, weight: Tensor, reduction: str) -> Tensor:
    if weight.shape != loss.shape:
        raise ValueError("Inputs and weights must have the same size.")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else _reduce(loss, reduction)


def l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    _check_sizes(input, target)
    reduction = reduction_from_legacy(size_average, reduce, reduction)
    if weight is not None:
        return _weighted((input - target).abs(), weight, reduction)
    return _reduce((input - target).abs(), reduction)


def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Tensor:  # fmt: skip
    """Squared below ``beta``, absolute above."""
    _check_sizes(input, target)
    reduction = reduction_from_legacy(size_average, reduce, reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    difference = input - target
    size = difference.abs()
    loss = rushlight.where(size < beta, difference * difference * (0.5 / beta), size - 0.5 * beta)
    return _reduce(loss, reduction)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Half the square below ``delta``, linear above."""
    _check_sizes(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    difference = input - target
    size = difference.abs()
    loss = rushlight.where(size < delta, difference * difference * 0.5, (size - 0.5 * delta) * delta)
    return _reduce(loss, reduction) if weight is None else _weighted(loss, weight, reduction)


def kl_div(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Tensor:  # fmt: skip
    """``target * (log(target) - input)``, where the input holds log-probabilities."""
    reduction = reduction_from_legacy(size_average, reduce, reduction)
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. The Kullback-Leibler "
            "divergence itself is reduction='batchmean'.",
            stacklevel=2,
        )
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = rushlight.xlogy(target, target) - target * input
    if reduction == "batchmean":
        return loss.sum() / input.size(0) if input.dim() else loss.sum()
    return _reduce(loss, reduction)


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: bool | None = None,
    eps: float = 1e-8, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    reduction = reduction_from_legacy(size_average, reduce, reduction)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return _reduce(loss, reduction)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * rushlight.ones_like(input)
    elif bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif not (input.size()[:-1] == var.size()[:-1] and var.size(-1) == 1) and not all(
            one in (other, 1) for one, other in zip(reversed(var.shape), reversed(input.shape), strict=False)
        ):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    # Clamped without a gradient of the clamp itself.
    var = var.clone()
    with rushlight.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduce(loss, reduction)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    reduction = reduction_from_legacy(size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _reduce((-target * (input1 - input2) + margin).clamp_min(0), reduction)


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The input where the target is 1, ``max(0, margin - input)`` where it is -1."""
    reduction = reduction_from_legacy(size_average, reduce, reduction)
    nothing = rushlight.zeros_like(input)
    apart = rushlight.where(target == 1, nothing, (margin - input).clamp_min(0))
    near = rushlight.where(target == -1, nothing, input)
    return _reduce(apart + near, reduction)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    reduction = reduction_from_legacy(size_average, reduce, reduction)
    if target.dim() not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    eps = 1e-12
    dim = target.dim()
    squares1, squares2 = (input1 * input1).sum(dim) + eps, (input2 * input2).sum(dim) + eps
    cosine = (input1 * input2).sum(dim) / (squares1 * squares2).sqrt()
    nothing = rushlight.zeros_like(cosine)
    loss = rushlight.where(target == 1, 1 - cosine, nothing)
    loss = loss + rushlight.where(target == -1, (cosine - margin).clamp_min(0), nothing)
    return _reduce(loss, reduction)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
    swap: bool = False, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    reduction = reduction_from_legacy(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")

    def distance(one: Tensor, other: Tensor) -> Tensor:
        return pairwise_distance(one, other, p, eps)

    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=distance, margin=margin, swap=swap, reduction=reduction
    )


def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0, swap: bool = False,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``max(0, d(a, p) - d(a, n) + margin)``; with ``swap`` the negative may be nearer to the positive."""
    check_reduction(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = rushlight.minimum(far, distance(positive, negative))
    return _reduce((margin + near - far).clamp_min(0), reduction)


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    reduction = reduction_from_legacy(size_average, reduce, reduction)
    return _reduce((-target * input).exp().log1p(), reduction)


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Hinge loss of every wrong class against the right one."""
    reduction = reduction_from_legacy(size_average, reduce, reduction)
    check_reduction(reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    if input.dim() > 2 or (input.dim() and not input.size(-1)):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}")
    single = target.dim() == 0
    scores, wanted = (input.reshape(1, -1), target.reshape(1)) if input.dim() < 2 else (input, target)
    right = scores.gather(1, wanted.unsqueeze(1))
    hinge = (margin - right + scores).clamp_min(0)
    if p == 2:
        hinge = hinge * hinge
    if weight is not None:
        hinge = hinge * weight[wanted].unsqueeze(1)
    wrong = rushlight.ones_like(scores).scatter_(1, wanted.unsqueeze(1), 0.0)
    loss = (hinge * wrong).sum(1) / scores.size(1)
    return _reduce(loss.squeeze(0) if single else loss, reduction)


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Hinge loss of every class that is not a target against every one that is; targets end at the first -1."""
    reduction = reduction_from_legacy(size_average, reduce, reduction)
    check_reduction(reduction)
    single = input.dim() <= 1
    if target.shape != input.shape and not (single and target.numel() == input.numel()):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    scores, wanted = (input.reshape(1, -1), target.reshape(1, -1)) if single else (input, target)
    listed = (wanted < 0).cumsum(1) == 0
    places = wanted.clamp_min(0)
    is_target = rushlight.zeros_like(scores).scatter_add_(1, places, listed.to(scores.dtype)) > 0
    right = scores.gather(1, places)
    hinge = (1 - right.unsqueeze(2) + scores.unsqueeze(1)).clamp_min(0)
    counted = (listed.unsqueeze(2) & ~is_target.unsqueeze(1)).to(scores.dtype)
    loss = (hinge * counted).sum([1, 2]) / scores.size(1)
    return _reduce(loss.squeeze(0) if single else loss, reduction)


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    reduction = reduction_from_legacy(size_average, reduce, reduction)
    log_sigmoid = TENSORS.logsigmoid
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _reduce(loss.sum(input.dim() - 1) / input.size(input.dim() - 1), reduction)


