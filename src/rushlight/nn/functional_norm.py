"""Normalisations and distances as functions."""

from __future__ import annotations

import math
from typing import Any

import rushlight

from ..tensor import Tensor


def _by_channel(values: Tensor, dimensions: int) -> Tensor:
    """A vector of channels, shaped to broadcast over dimension 1."""
    return values.reshape(1, -1, *([1] * (dimensions - 2)))


def _affine(normed: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    if weight is not None:
        normed = normed * _by_channel(weight, normed.dim())
    if bias is not None:
        normed = normed + _by_channel(bias, normed.dim())
    return normed


def _check_more_than_one(size: Any) -> None:
    values = size[0]
    for length in size[2:]:
        values *= length
    if values == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise every channel over the batch (training) or by the running statistics."""
    if input.dim() < 2 and not input.numel():
        return input.clone()  # PyTorch passes an empty batch without channels on
    if training:
        _check_more_than_one(input.size())
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when training=False")
        mean, variance = running_mean, running_var
    else:
        dims = [0, *range(2, input.dim())]
        mean = input.mean(dims)
        centered = input - _by_channel(mean, input.dim())
        variance = (centered * centered).mean(dims)
        with rushlight.no_grad():
            if running_mean is not None:
                running_mean.mul_(1 - momentum).add_(mean.detach(), alpha=momentum)
            if running_var is not None:
                count = input.numel() / mean.numel()
                running_var.mul_(1 - momentum).add_(variance.detach(), alpha=momentum * count / (count - 1))
        scale = _by_channel((variance + eps).rsqrt(), input.dim())
        return _affine(centered * scale, weight, bias)
    scale = _by_channel((variance + eps).rsqrt(), input.dim())
    return _affine((input - _by_channel(mean, input.dim())) * scale, weight, bias)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise every channel of every sample on its own: a batch norm over samples taken as channels."""
    samples, channels = input.shape[:2]
    if use_input_stats:
        values = input[0, 0].numel()
        if values == 1:
            raise ValueError(
                f"Expected more than 1 spatial element when training, got input size {input.size()}"
            )
    mean = None if running_mean is None else running_mean.repeat(samples)
    variance = None if running_var is None else running_var.repeat(samples)
    joined = input.reshape(1, samples * channels, *input.shape[2:])
    normed = batch_norm(joined, mean, variance, None, None, use_input_stats, momentum, eps)
    with rushlight.no_grad():
        if use_input_stats and running_mean is not None and mean is not None:
            running_mean.copy_(mean.reshape(samples, channels).mean(0))
        if use_input_stats and running_var is not None and variance is not None:
            running_var.copy_(variance.reshape(samples, channels).mean(0))
    return _affine(normed.reshape(input.shape), weight, bias)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalise groups of channels of every sample."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    samples, channels = input.shape[:2]
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    grouped = input.reshape(samples, num_groups, math.prod(input.shape[1:]) // num_groups)
    centered = grouped - grouped.mean(2, keepdim=True)
    variance = (centered * centered).mean(2, keepdim=True)
    return _affine((centered * (variance + eps).rsqrt()).reshape(input.shape), weight, bias)


def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide by the root of the mean square over the last dimensions."""
    shape = tuple(normalized_shape)
    if not shape:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, but got normalized_shape = []")
    if tuple(input.shape[len(input.shape) - len(shape) :]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], "
            f"but got input of size {list(input.shape)}"
        )
    if eps is None:
        eps = rushlight.finfo(input.dtype).eps
    dims = list(range(-len(shape), 0))
    normed = input * (input.pow(2).mean(dims, keepdim=True) + eps).rsqrt()
    return normed if weight is None else normed * weight


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divide by a power of the mean square over ``size`` neighbouring channels."""
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    channels = input.size(1)
    square = input * input
    total = rushlight.zeros_like(square)
    for shift in range(-(size // 2), (size - 1) // 2 + 1):
        width = channels - abs(shift)
        if width <= 0:
            continue
        edge = square.new_zeros((square.size(0), abs(shift), *square.shape[2:]))
        part = square.narrow(1, max(shift, 0), width)
        total = total + rushlight.cat([part, edge] if shift >= 0 else [edge, part], 1)
    return input / (total / size * alpha + k).pow(beta)


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Divide by the norm along ``dim``, or by ``eps`` if that is larger."""
    length = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / length if out is None else rushlight.div(input, length, out=out)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along ``dim``."""
    x1, x2 = rushlight.broadcast_tensors(x1, x2)
    floor1 = x1.norm(2, dim, keepdim=True).clamp_min(eps)
    floor2 = x2.norm(2, dim, keepdim=True).clamp_min(eps)
    return ((x1 / floor1) * (x2 / floor2)).sum(dim)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of ``x1 - x2 + eps`` along the last dimension."""
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)
