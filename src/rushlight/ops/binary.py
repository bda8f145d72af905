"""Functions of two numbers beyond arithmetic: extremes, angles, logarithms of sums, integers' divisors."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor
from .arithmetic import NO_DERIVATIVE, install, no_derivative, refuse
from .masking import choose
from .reductions import named
from .table import TENSORS, elementwise, operation


def _refuse_complex(name: str, input: np.ndarray) -> None:
    if input.dtype.kind == "c":
        raise RuntimeError(f"{name} not implemented for complex tensors.")


# -- extremes --------------------------------------------------------------------------------------------------------
# At a tie maximum and minimum give half of the gradient to each side; fmax and fmin give all of it to the first.
@elementwise(input="where(input == other, g / 2, where(input < other, 0, g))", numbers=False, inplace=False,
             other="where(input == other, g / 2, where(other < input, 0, g))")
def maximum(input, other):
    _refuse_complex("maximum", input)
    return np.maximum(input, other)


@elementwise(input="where(input == other, g / 2, where(input > other, 0, g))", numbers=False, inplace=False,
             other="where(input == other, g / 2, where(other > input, 0, g))")
def minimum(input, other):
    _refuse_complex("minimum", input)
    return np.minimum(input, other)


@elementwise(input="where(logical_or(input >= other, isnan(other)), g, 0)", numbers=False, inplace=False,
             other="where(logical_or(input >= other, isnan(other)), 0, g)")
def fmax(input, other):
    _refuse_complex("fmax", input)
    return np.fmax(input, other)


@elementwise(input="where(logical_or(input <= other, isnan(other)), g, 0)", numbers=False, inplace=False,
             other="where(logical_or(input <= other, isnan(other)), 0, g)")
def fmin(input, other):
    _refuse_complex("fmin", input)
    return np.fmin(input, other)


# -- lengths, angles, signs ------------------------------------------------------------------------------------------
@elementwise(input="g * (input / result)", other="g * (other / result)", numbers=False)
def hypot(input, other):
    if dtypes.category(input.dtype) != dtypes.FLOATING:
        raise refuse("hypot", input)
    return np.hypot(input, other)


def _inverse_square(F: Any, input: Any, other: Any) -> Any:
    """1 / (input**2 + other**2), and 0 at the origin, where the angle has no slope."""
    squared = input * input + other * other
    zero = squared == 0
    return F.where(zero, 0, 1 / F.where(zero, 1, squared))


def _atan2_gradient(F: Any, g: Any, input: Any, other: Any) -> Any:
    return g * (other * _inverse_square(F, input, other))


def _atan2_gradient_of_other(F: Any, g: Any, input: Any, other: Any) -> Any:
    return g * (-input * _inverse_square(F, input, other))


@elementwise(input=_atan2_gradient, other=_atan2_gradient_of_other, promote="float", aliases="arctan2", numbers=False)
def atan2(input, other):
    return np.arctan2(input, other)


def _copysign_gradient(F: Any, g: Any, input: Any, result: Any) -> Any:
    zero = input == 0
    return F.where(zero, 0, g * (result / F.where(zero, 1, input)))


def _copysign_gradient_of_other(F: Any, g: Any) -> Any:
    return F.zeros_of(g)


@elementwise(input=_copysign_gradient, other=_copysign_gradient_of_other, promote="float", numbers="other",
             node=lambda kept: "CopysignBackward1" if "other" in kept["numbers"] else "CopysignBackward0")
def copysign(input, other):
    return np.copysign(input, other)


@elementwise(input="where(input == other, 0, g)", other=lambda F, g, input, other: F.zeros_of(g), numbers=False)
def nextafter(input, other):
    if dtypes.category(input.dtype) != dtypes.FLOATING:
        raise refuse("nextafter", input)
    return np.nextafter(input, other)


@elementwise(input=no_derivative("heaviside"), values=no_derivative("heaviside"), node=NO_DERIVATIVE, numbers=False,
             promote="none")
def heaviside(input, values):
    if input.dtype.kind == "c" or values.dtype.kind == "c":
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return choose(input == 0, values, (input > 0).astype(input.dtype))


# -- powers of two, logarithms of sums -------------------------------------------------------------------------------
def _ldexp_gradient(F: Any, g: Any, other: Any, result: Any) -> Any:
    return g * F.conj(F.exp2(other))


@elementwise(input=_ldexp_gradient, other="g * conj(result) * 0.6931471805599453", promote="float", numbers=False)
def ldexp(input, other):
    return np.multiply(input, np.exp2(other))


def _log_add(exponential: Any, logarithm: Any, input: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The logarithm of a sum of exponentials of complex numbers, reckoned from the one with the larger real part."""
    larger = choose(input.real >= other.real, input, other)
    smaller = choose(input.real >= other.real, other, input)
    return larger + logarithm(1 + exponential(smaller - larger))


@elementwise(input="g / (1 + exp(conj(other - input)))", other="g / (1 + exp(conj(input - other)))", numbers=False,
             inplace=False)
def logaddexp(input, other):
    if dtypes.category(input.dtype) < dtypes.FLOATING:
        raise refuse("logaddexp", input)
    return _log_add(np.exp, np.log, input, other) if input.dtype.kind == "c" else np.logaddexp(input, other)


@elementwise(input="g / (1 + exp2(conj(other - input)))", other="g / (1 + exp2(conj(input - other)))", numbers=False,
             inplace=False)
def logaddexp2(input, other):
    if dtypes.category(input.dtype) < dtypes.FLOATING:
        raise refuse("logaddexp2", input)
    return _log_add(np.exp2, np.log2, input, other) if input.dtype.kind == "c" else np.logaddexp2(input, other)


def which_number(name: str) -> Any:
    """The node's name where each place of a number has its own."""
    return lambda kept: f"{name}Backward{1 if 'input' in kept['numbers'] else 2 if 'other' in kept['numbers'] else 0}"


@elementwise(input="where((input == 0) & (other <= 0), 0, xlogy(g, other))", other="g * input / other",
             promote="float",
             node=which_number("Xlogy"))
def xlogy(input, other):
    if input.dtype.kind == "c":
        raise refuse("xlogy", input)
    return choose(np.isnan(other), other, choose(input == 0, np.zeros_like(input), input * np.log(other)))


# -- integers --------------------------------------------------------------------------------------------------------
def _divisors(name: str, function: Any) -> None:
    def kernel(input, other):
        if dtypes.category(input.dtype) != dtypes.INTEGER:
            raise refuse(name, input)
        return function(input, other)

    elementwise(tensors="input other", name=name, numbers=False)(kernel)


_divisors("gcd", np.gcd)
_divisors("lcm", np.lcm)


# -- mantissa and exponent -------------------------------------------------------------------------------------------
@operation(input=lambda F, g0, result1: F._scaled_down(g0, result1), outputs="mantissa exponent", public=False, method=False,
           node="FrexpBackward0")
def _frexp(input):
    if dtypes.category(input.dtype) != dtypes.FLOATING:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return _split_number(input)


def _split_number(input: np.ndarray) -> tuple:
    """NumPy's frexp, in single precision for halves."""
    mantissa, exponent = np.frexp(input.astype(np.float32) if input.dtype.itemsize == 2 else input)
    return mantissa.astype(input.dtype), exponent


@operation(grad="_scaled_down(g, exponent)", tensors="exponent", public=False, method=False)
def _scaled_down(grad, exponent):
    """A gradient divided by the power of two that was taken out."""
    return np.ldexp(grad, -exponent)


_FREXP = named("frexp", "mantissa exponent")


def frexp(input: Tensor, *, out: Any = None) -> Any:
    """A number as mantissa (between a half and 1) and power of two."""
    return _FREXP(TENSORS._frexp(input, out=out))


install("frexp", frexp)
