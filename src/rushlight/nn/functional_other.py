"""Classification losses, embeddings and rearrangements as functions."""

from __future__ import annotations

from typing import Any

import numpy as np

import rushlight

from ..ops.losses import check_reduction
from ..ops.table import TENSORS, elementwise
from ..tensor import Tensor
from .functional_loss import _reduce, reduction_from_legacy


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return TENSORS.linear(input, weight, bias)


def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    return TENSORS.layer_norm(input, normalized_shape, weight, bias, eps)


def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    if size_average is not None or reduce is not None:
        reduction = reduction_from_legacy(size_average, reduce, reduction)
    check_reduction(reduction)
    return TENSORS.nll_loss(input, target, weight, reduction, ignore_index)


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """From raw scores; the target holds class numbers, or probabilities of the input's shape."""
    if size_average is not None or reduce is not None:
        reduction = reduction_from_legacy(size_average, reduce, reduction)
    class_dim = 0 if len(input._shape) == 1 else 1
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    check_reduction(reduction)
    if input._shape == target._shape:
        return _cross_entropy_of_probabilities(input, target, weight, reduction, label_smoothing, class_dim)
    scores = TENSORS.log_softmax(input, class_dim)
    loss = TENSORS.nll_loss(scores, target, weight, reduction, ignore_index)
    if not label_smoothing:
        return loss
    # The smoothed part: every class counts the same, up to its weight.
    if weight is None:
        spread = -scores.sum(class_dim)
    else:
        spread = -(scores * _along(weight, input.dim(), class_dim)).sum(class_dim)
    counted = target != ignore_index
    spread = spread.masked_fill(~counted, 0.0)
    if reduction == "mean":
        if weight is None:
            spread = spread.sum() / counted.sum()
        else:
            chosen = weight[target.masked_fill(~counted, 0)].masked_fill(~counted, 0.0)
            spread = spread.sum() / chosen.sum()
    elif reduction == "sum":
        spread = spread.sum()
    return (1 - label_smoothing) * loss + (label_smoothing / input.size(class_dim)) * spread


def _along(weight: Tensor, dimensions: int, dim: int) -> Tensor:
    """A vector shaped to broadcast along one dimension."""
    return weight.reshape([-1 if place == dim else 1 for place in range(dimensions)])


def _cross_entropy_of_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, label_smoothing: float, class_dim: int
) -> Tensor:
    if not target.is_floating_point():
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype}"
        )
    classes = input.size(class_dim)
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    products = TENSORS.log_softmax(input, class_dim) * target
    if weight is not None:
        products = products * _along(weight, input.dim(), class_dim)
    if reduction == "mean":
        return -products.sum() / (input.numel() / classes)
    return _reduce(-products.sum(class_dim), reduction)


def _bce_gradient(F: Any, g: Any, input: Any, target: Any) -> Any:
    spread = input * (1 - input)
    return g * (input - target) / F.where(spread < 1e-12, 1e-12, spread)


@elementwise(
    input=_bce_gradient,
    target="g * (log1p(-input) - log(input))",
    node="BinaryCrossEntropyBackward0",
    public=False,
    method=False,
    inplace=False,
)
def binary_cross_entropy_each(input, target):  # type: ignore[no-untyped-def]
    """An operation of its own: a composition's gradient would be nan where a probability is exactly 0 or 1."""
    return (target - 1) * np.maximum(np.log1p(-input), -100) - target * np.maximum(np.log(input), -100)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """From probabilities; logarithms are held above -100."""
    reduction = reduction_from_legacy(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size."
        )
    if input.numel() and not bool(((input >= 0) & (input <= 1)).all()):
        raise RuntimeError("all elements of input should be between 0 and 1")
    loss = TENSORS.binary_cross_entropy_each(input, target)
    if weight is not None:
        loss = loss * weight
    return _reduce(loss, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """From raw scores; ``pos_weight`` scales the positive part."""
    reduction = reduction_from_legacy(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    log_sigmoid = TENSORS.logsigmoid(input)
    if pos_weight is None:
        loss = (1 - target) * input - log_sigmoid
    else:
        loss = (1 - target) * input - ((pos_weight - 1) * target + 1) * log_sigmoid
    if weight is not None:
        loss = loss * weight
    return _reduce(loss, reduction)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``sum_ij x1[i] * weight[k, i, j] * x2[j] + bias[k]``."""
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            f"bilinear(): input batch dimensions do not match: got {list(input1.shape)} and {list(input2.shape)}"
        )
    if input1.size(-1) != weight.size(1) or input2.size(-1) != weight.size(2):
        raise RuntimeError(
            f"bilinear(): input sizes do not match weight: got {input1.size(-1)} and {input2.size(-1)} "
            f"but expected {weight.size(1)} and {weight.size(2)}"
        )
    outer = input1.unsqueeze(-1) * input2.unsqueeze(-2)
    pairs = weight.size(1) * weight.size(2)
    flat = outer.reshape(*outer.shape[:-2], pairs)
    return TENSORS.linear(flat, weight.reshape(weight.size(0), pairs), bias)


# -------------------------------------------------------------------------------------------------- embeddings
def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """The rows of ``weight`` at the given indices; with ``max_norm`` those rows are first scaled down in place."""
    if padding_idx is not None:
        rows = weight.size(0)
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if max_norm is not None:
        _limit_rows(weight, input, max_norm, norm_type)
    return TENSORS.embedding(weight, input, -1 if padding_idx is None else padding_idx, scale_grad_by_freq, sparse)


def _limit_rows(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the named rows whose norm is above ``max_norm`` down to it."""
    with rushlight.no_grad():
        for row in set(indices.reshape(-1).tolist()):
            length = float(weight[row].norm(norm_type))
            if length > max_norm:
                weight[row].mul_(max_norm / (length + 1e-7))


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """Bags of embeddings, summed, averaged or maximised. Bags are rows, or stretches that begin at ``offsets``."""
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None:
        if mode != "sum":
            raise NotImplementedError(
                "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
                f"(got mode='{mode}'). Please open a feature request on GitHub."
            )
        if per_sample_weights.shape != input.shape:
            raise ValueError(
                f"embedding_bag: If per_sample_weights ({list(per_sample_weights.shape)}) is not None, then it must "
                f"have the same shape as the input ({list(input.shape)})"
            )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        bags, length = input.shape
        starts = [bag * length for bag in range(bags)]
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
        starts = offsets.tolist()
        if include_last_offset:
            starts = starts[:-1]
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    flat = input.reshape(-1)
    vectors = embedding(flat, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    if per_sample_weights is not None:
        vectors = vectors * per_sample_weights.reshape(-1, 1)
    counted = None if padding_idx is None else flat != padding_idx % weight.size(0)
    ends = [*starts[1:], flat.numel()]
    results = []
    for start, end in zip(starts, ends, strict=True):
        bag = vectors[start:end]
        if counted is not None:
            bag = bag[counted[start:end]]
        if bag.size(0) == 0:
            results.append(weight.new_zeros(weight.size(1)))
        elif mode == "max":
            results.append(bag.max(0)[0])
        else:
            results.append(bag.sum(0) if mode == "sum" else bag.mean(0))
    return rushlight.stack(results)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Ones at the positions the indices name, along a new last dimension."""
    if tensor.dtype != rushlight.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if tensor.numel():
        if int(tensor.min()) < 0:
            raise RuntimeError("Class values must be non-negative.")
        if num_classes == -1:
            num_classes = int(tensor.max()) + 1
        elif int(tensor.max()) >= num_classes:
            raise RuntimeError("Class values must be smaller than num_classes.")
    elif num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    made = rushlight.zeros((*tensor.shape, num_classes), dtype=rushlight.int64)
    return made.scatter_(-1, tensor.unsqueeze(-1), 1)
