"""Activation functions: relu and its relatives, sigmoid-like gates, shrinkage."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor, wrap
from .arithmetic import install, refuse
from .masking import choose, keep
from .pointwise import into, logistic, scipy_special, widely
from .table import RAW, TENSORS, elementwise, operation
from .unpack import type_name

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


# -- piecewise linear ------------------------------------------------------------------------------------------------
@elementwise(input="relu_gradient(g, result)")
def relu(input):
    if input.dtype.kind in "bc":
        raise refuse("clamp_min", input) if input.dtype.kind == "c" else RuntimeError(
            "Boolean inputs not supported for relu")
    # With an array NumPy has a vector loop, with a number it has none (54 us against 99 on 512 x 512).
    wide = input.size > 2048 and input.shape[-1] >= 64
    return np.maximum(input, np.zeros(input.shape[-1], input.dtype) if wide else 0)


@elementwise(grad="relu_gradient(g, output)", output="zeros_of(g)", public=False, method=False, inplace=False,
             node="ThresholdBackwardBackward0")
def relu_gradient(grad, output):
    """The gradient where relu's output is not 0. It passes where that is nan."""
    return keep(grad, output != 0)


@elementwise(grad="g", input="zeros_of(g)", public=False, method=False, inplace=False)
def flat_in(grad, input):
    """The gradient as it is, which depends on the input, but with slope 0: PyTorch's answer to a second derivative."""
    return grad


@elementwise(input="flat_in(where(input <= threshold, 0, g), input)", method=False)
def threshold(input, threshold, value):
    return choose(input <= threshold, np.asarray(value).astype(input.dtype), input)


@elementwise(input="flat_in(where(input > 0, g, g * negative_slope), input)", public=False, method=False)
def leaky_relu(input, negative_slope=0.01):
    scaled = input * np.asarray(negative_slope, input.dtype)
    return np.maximum(input, scaled) if 0 <= negative_slope <= 1 else choose(input > 0, input, scaled)


@elementwise(input="flat_in(where(logical_and(input > min_val, input < max_val), g, 0), input)", public=False,
             method=False)
def hardtanh(input, min_val=-1.0, max_val=1.0):
    if input.dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    return np.minimum(np.maximum(input, np.asarray(min_val, input.dtype)), np.asarray(max_val, input.dtype))


@elementwise(input="where(logical_and(input > -3, input < 3), g / 6, 0)", public=False, method=False)
def hardsigmoid(input):
    return widely(lambda x: np.minimum(np.maximum(x + 3, 0), 6) / 6, input)


@elementwise(input="where(input <= -3, 0, where(input < 3, g * (input / 3 + 0.5), g))", public=False, method=False)
def hardswish(input):
    return widely(lambda x: x * np.minimum(np.maximum(x + 3, 0), 6) / 6, input)


def _outside(F: Any, g: Any, input: Any, lambd: Any) -> Any:
    return F.flat_in(F.where(F.logical_or(input < -lambd, input > lambd), g, 0), input)


@elementwise(input=_outside, inplace=False)
def hardshrink(input, lambd=0.5):
    return choose((input >= -lambd) & (input <= lambd), 0, input)


@elementwise(input=_outside, public=False, method=False, inplace=False)
def softshrink(input, lambd=0.5):
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd:g}.")
    shift = np.asarray(lambd, input.dtype)
    return choose(input > lambd, input - shift, choose(input < -lambd, input + shift, input * 0))


@elementwise(input="where(input > 0, g, conj(weight) * g)", weight="where(input > 0, 0, conj(input) * g)",
             public=False, method=False,
             inplace=False, numbers=False, node="PreluKernelBackward0")
def _prelu_kernel(input, weight):
    return choose(input > 0, input, weight * input)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """relu with a learned slope below zero: one for all, or one for each channel (dimension 1)."""
    if not isinstance(weight, Tensor):
        raise TypeError(f"prelu(): argument 'weight' (position 2) must be Tensor, not {type(weight).__name__}")
    if input._array.dtype != weight._array.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {input.dtype.name} and {weight.dtype.name}")
    ndim = len(input._shape)
    if weight._array.size != 1:
        if ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input._shape[1] if ndim > 1 else 1
        if channels != weight._array.size:
            raise RuntimeError("Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                               f"{weight._array.size} and channel size = {channels}.")
    if len(weight._shape) > 1:
        raise RuntimeError("prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
                           f"{len(weight._shape)}")
    if ndim == 0:
        weight = TENSORS.reshape(weight, ()) if weight._shape else weight
    else:
        shape = tuple(weight._array.size if i == (1 if ndim > 1 else 0) else 1 for i in range(ndim))
        weight = TENSORS.reshape(weight, shape) if weight._shape != shape else weight
    return TENSORS._prelu_kernel(input, weight)


install("prelu", prelu)


# -- exponential -----------------------------------------------------------------------------------------------------
def _elu_gradient(F: Any, g: Any, input: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    below = g * (F.exp(input * input_scale) * (input_scale * alpha * scale))
    return F.where(input <= 0, below, g * scale)


def _elu(input: np.ndarray, alpha: float, scale: float, input_scale: float) -> np.ndarray:
    below = np.expm1(input if input_scale == 1 else input * input_scale)
    below *= alpha * scale
    return choose(input <= 0, below, input if scale == 1 else input * scale)


@elementwise(input=_elu_gradient, public=False, method=False)
def elu(input, alpha=1.0, scale=1, input_scale=1):
    if dtypes.category(input.dtype) != dtypes.FLOATING:
        raise refuse("elu", input)
    return widely(_elu, input, alpha, scale, input_scale)


def selu(input: Tensor) -> Tensor:
    """elu with the two constants that keep mean 0 and variance 1."""
    return TENSORS.elu(input, _SELU_ALPHA, _SELU_SCALE)


def selu_(input: Tensor) -> Tensor:
    return TENSORS.elu_(input, _SELU_ALPHA, _SELU_SCALE)


install("selu", selu, "function")
install("selu_", selu_, "function")


@elementwise(input=lambda F, g, input, alpha: _elu_gradient(F, g, input, alpha, 1, 1 / alpha), method=False)
def celu(input, alpha=1.0):
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return widely(_elu, input, alpha, 1, 1 / alpha)


@elementwise(input="where(input * beta > threshold, g, g * sigmoid(input * beta))", public=False, method=False,
             inplace=False)
def softplus(input, beta=1, threshold=20):
    if dtypes.category(input.dtype) != dtypes.FLOATING:
        raise refuse("softplus", input)
    return widely(_softplus, input, beta, threshold)


def _softplus(input: np.ndarray, beta: float, threshold: float) -> np.ndarray:
    scaled = input if beta == 1 else input * beta
    bent = np.exp(scaled)
    bent = np.log1p(bent, out=into(bent))
    bent /= beta
    return choose(scaled > threshold, input, bent)


def _logsigmoid_gradient(F: Any, g: Any, input: Any, buffer: Any) -> Any:
    # The buffer, exp(-|input|), is named because PyTorch saves it; the slope is written so that it has a slope itself.
    return g * F.sigmoid(-input)


@elementwise(input=_logsigmoid_gradient, extra="buffer", public=False, method=False, inplace=False,
             node="LogSigmoidBackward0")
def logsigmoid(input):
    if dtypes.category(input.dtype) != dtypes.FLOATING:
        raise refuse("log_sigmoid_forward", input)
    buffer = np.exp(-np.abs(input))
    return np.minimum(input, 0) - np.log1p(buffer), buffer


# -- gates -----------------------------------------------------------------------------------------------------------
def _silu_gradient(F: Any, g: Any, input: Any) -> Any:
    gate = F.sigmoid(input)
    return g * F.conj(gate * (1 + input * (1 - gate)))


@elementwise(input=_silu_gradient, promote="same", public=False, method=False)
def silu(input):
    if dtypes.category(input.dtype) < dtypes.FLOATING:
        raise refuse("silu", input)
    return widely(_silu, input)


def _silu(input: np.ndarray) -> np.ndarray:
    gate = logistic(input)
    gate *= input
    return gate


def _mish_gradient(F: Any, g: Any, input: Any) -> Any:
    gate = F.sigmoid(input)
    bend = F.tanh(F.softplus(input))
    return g * (bend + input * gate * (1 - bend * bend))


@elementwise(input=_mish_gradient, public=False, method=False)
def mish(input):
    if dtypes.category(input.dtype) != dtypes.FLOATING:
        raise refuse("mish", input)
    return widely(lambda x: x * np.tanh(_softplus(x, 1, 20)), input)


def _gelu_gradient(F: Any, g: Any, input: Any, approximate: str) -> Any:
    if approximate == "none":
        below = 0.5 * (1 + F.erf(input * 0.7071067811865476))
        return g * (below + input * (F.exp(input * input * -0.5) * 0.3989422804014327))
    bend = F.tanh(0.7978845608028654 * (input + 0.044715 * (input * input * input)))
    slope = (1 - bend * bend) * (0.7978845608028654 * (1 + 0.134145 * (input * input)))
    return g * (0.5 * (1 + bend) + 0.5 * input * slope)


def _gelu(input: np.ndarray, approximate: str) -> np.ndarray:
    if approximate == "none":
        bent = scipy_special("erf")(input * 0.7071067811865476)
    else:
        inner = input * input
        inner *= 0.044715
        inner += 1
        inner *= input
        inner *= 0.7978845608028654
        bent = np.tanh(inner, out=into(inner))
    bent += 1
    bent *= input
    bent *= 0.5
    return bent


@elementwise(input=_gelu_gradient, public=False, method=False)
def gelu(input, *, approximate="none"):
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    if dtypes.category(input.dtype) != dtypes.FLOATING:
        raise NotImplementedError("\"GeluKernelImpl\" not implemented for "
                                  f"'{type_name(dtypes.from_numpy(input.dtype).name)}'")
    return widely(_gelu, input, approximate)


def _halves(F: Any, input: Any, dim: int) -> tuple:
    """The two halves of an array along a dimension."""
    dim %= input.ndim
    half = input.shape[dim] // 2
    before = (slice(None),) * dim
    return input[(*before, slice(0, half))], input[(*before, slice(half, None))]


def _glu_gradient(F: Any, g: Any, input: Any, dim: int) -> Any:
    first, second = _halves(F, input, dim)
    gate = F.sigmoid(second)
    return F.cat([g * gate, g * first * gate * (1 - gate)], dim)


@operation(input=_glu_gradient, public=False, method=False)
def glu(input, dim=-1):
    if input.ndim == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    if not -input.ndim <= dim < input.ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-input.ndim}, {input.ndim - 1}], but "
                         f"got {dim})")
    if input.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {input.shape[dim]}")
    if dtypes.category(input.dtype) != dtypes.FLOATING:
        raise refuse("glu", input)
    first, second = _halves(RAW, input, dim)
    return first * widely(logistic, second)


# -- rrelu -----------------------------------------------------------------------------------------------------------
@elementwise(input="g * noise", public=False, method=False, tensors="noise", numbers=False,
             node="RreluWithNoiseBackward0")
def _rrelu_with_noise(input, noise):
    return input * noise


def _rrelu_noise(input: Tensor, lower: float, upper: float) -> Tensor:
    """The slope of each element: 1 where it is positive, drawn between the bounds elsewhere, in PyTorch's order."""
    negative = input._array <= 0
    drawn = TENSORS.empty(int(negative.sum()), dtype=dtypes.float64).uniform_(lower, upper)
    noise = np.ones_like(input._array)
    noise[negative] = drawn._array
    return wrap(noise)


def _rrelu(name: str) -> Any:
    def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False,
              generator: Any = None) -> Tensor:
        """Leaky relu whose slope is drawn at random in training, and is the middle of the range otherwise."""
        if generator is not None:
            raise NotImplementedError("rrelu: generator= is not supported; seed the global generator with manual_seed")
        if lower > upper:
            raise RuntimeError("Lower bound should be less than or equal to the upper bound")
        if not training:
            return getattr(TENSORS, "leaky_relu" + name)(input, (lower + upper) / 2)
        return getattr(TENSORS, "_rrelu_with_noise" + name)(input, _rrelu_noise(input, lower, upper))
    return rrelu


install("rrelu", _rrelu(""), "function")
install("rrelu_", _rrelu("_"), "function")
