"""Activations and dropout as functions."""

from __future__ import annotations

import math
import warnings
from typing import Any

import rushlight

from ..ops.table import TENSORS
from ..tensor import Tensor


def _activate(name: str, input: Tensor, inplace: bool, *args: Any) -> Tensor:
    """Call the op, or its in-place form; where it has none, the result is copied over the input."""
    function = getattr(TENSORS, name)
    if not inplace:
        return function(input, *args)
    in_place = getattr(TENSORS, name + "_", None)
    if in_place is not None:
        return in_place(input, *args)
    # From a clone: the op may save its argument, which is about to be overwritten.
    return input.copy_(function(input.clone(), *args))


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    return TENSORS.relu_(input) if inplace else TENSORS.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    return _activate("hardtanh", input, inplace, 0.0, 6.0)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    return _activate("leaky_relu", input, inplace, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return _activate("elu", input, inplace, alpha)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return _activate("celu", input, inplace, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    return _activate("selu", input, inplace)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    return _activate("silu", input, inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    return _activate("mish", input, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _activate("hardtanh", input, inplace, min_val, max_val)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    return _activate("hardswish", input, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    return _activate("hardsigmoid", input, inplace)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    return _activate("threshold", input, inplace, threshold, value)


def relu_(input: Tensor) -> Tensor:
    return relu(input, inplace=True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    return leaky_relu(input, negative_slope, inplace=True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    return elu(input, alpha, inplace=True)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    return celu(input, alpha, inplace=True)


def selu_(input: Tensor) -> Tensor:
    return selu(input, inplace=True)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    return hardtanh(input, min_val, max_val, inplace=True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    return _activate("threshold", input, True, threshold, value)


def tanh(input: Tensor) -> Tensor:
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    return input.sigmoid()


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    return TENSORS.gelu(input, approximate=approximate)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    return TENSORS.softplus(input, beta, threshold)


def tanhshrink(input: Tensor) -> Tensor:
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    return input / (input.abs() + 1)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Leaky relu with a slope drawn for each negative element; in evaluation the middle of the range."""
    return _activate("rrelu", input, inplace, lower, upper, training)


def _softmax_dim(name: str, dimensions: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        stacklevel=4,
    )
    return 0 if dimensions in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    if dim is None:
        dim = _softmax_dim("softmax", input.dim())
    return TENSORS.softmax(input, dim) if dtype is None else TENSORS.softmax(input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    if dim is None:
        dim = _softmax_dim("log_softmax", input.dim())
    return TENSORS.log_softmax(input, dim) if dtype is None else TENSORS.log_softmax(input, dim, dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    if dim is None:
        dim = _softmax_dim("softmin", input.dim())
    return softmax(-input, dim, dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A softmax of the logits plus Gumbel noise; ``hard`` makes it one-hot with the soft one's gradient."""
    noise = -rushlight.empty_like(logits).exponential_().log()
    soft = TENSORS.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    place = soft.max(dim, keepdim=True)[1]
    one_hot = rushlight.zeros_like(logits).scatter_(dim, place, 1.0)
    return one_hot - soft.detach() + soft


def glu(input: Tensor, dim: int = -1) -> Tensor:
    return TENSORS.glu(input, dim)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    return TENSORS.prelu(input, weight)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    return TENSORS.hardshrink(input, lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    return TENSORS.softshrink(input, lambd)


def logsigmoid(input: Tensor) -> Tensor:
    return TENSORS.logsigmoid(input)


# ----------------------------------------------------------------------------------------------------- dropout
def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    _check_probability(p)
    return _activate("dropout", input, inplace, p, training)


def _drop(input: Tensor, p: float, training: bool, inplace: bool, by_feature: bool, alpha: bool) -> Tensor:
    """Dropout of whole features (dimensions 0 and 1) or elements; ``alpha`` keeps mean and variance for SELU."""
    _check_probability(p)
    if p == 0 or not training or input.numel() == 0:
        return input
    if p == 1:
        nothing = input.new_zeros(())
        return input.mul_(nothing) if inplace else input * nothing
    with rushlight.no_grad():
        shape = (*input.shape[:2], *([1] * (input.dim() - 2))) if by_feature else tuple(input.shape)
        noise = input.new_empty(shape).bernoulli_(1 - p)
        shift = None
        if alpha:
            floor = 1.7580993408473766
            scale = 1.0 / math.sqrt((floor * floor * p + 1) * (1 - p))
            shift = noise.add(-1).mul_(floor * scale).add_(floor * scale * p)
            noise.mul_(scale)
        else:
            noise.div_(1 - p)
    result = input.mul_(noise) if inplace else input * noise
    if shift is None:
        return result
    return result.add_(shift) if inplace else result + shift


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. "
            "It drops whole channels of (channel, length) or (batch, channel, length)."
        )
    return _drop_unbatched(input, p, training, inplace, single=2)


def _drop_unbatched(input: Tensor, p: float, training: bool, inplace: bool, single: int) -> Tensor:
    if input.dim() == single:
        return _drop(input.unsqueeze(0), p, training, inplace, True, False).squeeze(0)
    return _drop(input, p, training, inplace, True, False)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    _check_probability(p)
    if input.dim() not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and will result in an "
            "error in a future release.",
            stacklevel=2,
        )
    return _drop(input, p, training, inplace, True, False)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    _check_probability(p)
    if input.dim() not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and will result in an "
            "error in a future release.",
            stacklevel=2,
        )
    return _drop_unbatched(input, p, training, inplace, single=4)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    return _drop(input, p, training, inplace, False, True)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    return _drop(input, p, training, inplace, True, True)
