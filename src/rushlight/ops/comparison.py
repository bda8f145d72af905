"""Comparisons, tests of a number's kind, and logic on truth values and bits."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor
from .arithmetic import refuse
from .table import TENSORS, elementwise, method, public
from .unpack import type_name

# Truth values have no history; but written in place over a tensor that has one, they end it.
_FLAT: dict[str, Any] = {"input": "zeros_of(g)", "other": "zeros_of(g)", "promote": "bool", "output_real": False}


# -- comparisons -----------------------------------------------------------------------------------------------------
def _comparison(name: str, function: Any, aliases: str, complex_too: bool = False) -> None:
    def kernel(input, other):
        if not complex_too and input.dtype.kind == "c":
            raise refuse(name, input)
        return function(input, other)

    elementwise(**_FLAT, name=name, aliases=aliases, numbers="other", node=lambda kept: (
        f"{name.capitalize()}Backward{0 if 'other' in kept['numbers'] else 1}"))(kernel)


_comparison("eq", np.equal, "", complex_too=True)
_comparison("ne", np.not_equal, "not_equal", complex_too=True)
_comparison("lt", np.less, "less")
_comparison("le", np.less_equal, "less_equal")
_comparison("gt", np.greater, "greater")
_comparison("ge", np.greater_equal, "greater_equal")


def _equality(name: str) -> Any:
    """Python's own answer is left for what is neither tensor nor number: `tensor == None` is False."""
    def compare(self: Tensor, other: Any) -> Any:
        try:
            return getattr(TENSORS, name)(self, other)
        except TypeError:
            return NotImplemented
    return compare


Tensor.__eq__ = _equality("eq")  # type: ignore[method-assign]
Tensor.__ne__ = _equality("ne")  # type: ignore[method-assign]


# -- kinds of number -------------------------------------------------------------------------------------------------
def _test(name: str, function: Any, of_integers: bool, complex_too: bool = True) -> None:
    def kernel(input):
        if dtypes.category(input.dtype) < dtypes.FLOATING:
            return np.full(input.shape, of_integers)
        if not complex_too and input.dtype.kind == "c":
            raise RuntimeError(f"{name} does not support complex inputs.")
        return function(input)

    elementwise(tensors="input", promote="none", name=name, inplace=False)(kernel)


_test("isnan", np.isnan, False)
_test("isinf", np.isinf, False)
_test("isfinite", np.isfinite, True)
_test("isposinf", lambda input: input == np.inf, False, complex_too=False)
_test("isneginf", lambda input: input == -np.inf, False, complex_too=False)
_test("isreal", lambda input: input.imag == 0 if input.dtype.kind == "c" else np.ones(input.shape, bool), True)


@elementwise(tensors="input other", promote="none", inplace=False, numbers=False)
def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    if input.dtype != other.dtype:
        names = [type_name(dtypes.from_numpy(array.dtype).name) for array in (input, other)]
        raise RuntimeError(f"{names[0]} did not match {names[1]}")
    if rtol < 0 or atol < 0:
        raise RuntimeError(f"{'rtol' if rtol < 0 else 'atol'} must be greater than or equal to zero, but got "
                           f"{rtol if rtol < 0 else atol}")
    close = input == other
    if equal_nan and dtypes.category(input.dtype) >= dtypes.FLOATING:
        close = close | (np.isnan(input) & np.isnan(other))
    if rtol == 0 and atol == 0:
        return close
    if dtypes.category(input.dtype) < dtypes.FLOATING:
        input, other = input.astype(np.float64), other.astype(np.float64)
    error = np.abs(input - other)
    return close | (np.isfinite(error) & (error <= atol + np.abs(rtol * other)))


@public
@method
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close."""
    return bool(TENSORS.isclose(input, other, rtol, atol, equal_nan)._array.all())


@public
@method
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same size and elements."""
    for position, value in enumerate((input, other)):
        if not isinstance(value, Tensor):
            raise TypeError(f"equal(): argument '{('input', 'other')[position]}' (position {position + 1}) must be "
                            f"Tensor, not "
                            f"{type(value).__name__}")
    return input._shape == other._shape and bool(np.all(input._array == other._array))


# -- logic -----------------------------------------------------------------------------------------------------------
def _logic(name: str, function: Any) -> None:
    def kernel(input, other):
        return function(input, other)

    elementwise(**_FLAT, name=name, numbers=False)(kernel)


_logic("logical_and", np.logical_and)
_logic("logical_or", np.logical_or)
_logic("logical_xor", np.logical_xor)


@elementwise(input="zeros_of(g)", promote="none")
def logical_not(input):
    return np.logical_not(input)


def _bits(name: str, function: Any, shift: str = "") -> None:
    def kernel(input, other):
        if dtypes.category(input.dtype) > dtypes.INTEGER or shift and input.dtype.kind == "b":
            raise refuse(shift or name, input)
        return function(input, other)

    elementwise(tensors="input other", name=name)(kernel)


_bits("bitwise_and", np.bitwise_and)
_bits("bitwise_or", np.bitwise_or)
_bits("bitwise_xor", np.bitwise_xor)


def _shift_left(input: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Shifts by a negative number or by the whole width of the number leave nothing."""
    bits = input.dtype.itemsize * 8
    outside = (other < 0) | (other >= bits)
    return np.where(outside, 0, np.left_shift(input, np.where(outside, 0, other))).astype(input.dtype)


def _shift_right(input: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Such shifts leave the sign."""
    last = input.dtype.itemsize * 8 - (1 if input.dtype.kind == "i" else 0)
    outside = (other < 0) | (other >= last)
    return np.right_shift(input,
                          np.where(outside, last, other).astype(input.dtype)) if input.dtype.kind == "i" else np.where(
        outside, 0, np.right_shift(input, np.where(outside, 0, other))).astype(input.dtype)


_bits("bitwise_left_shift", _shift_left, "lshift")
_bits("bitwise_right_shift", _shift_right, "rshift")


def _shifted_by(name: str) -> Any:
    def shift(self: Tensor, other: Any) -> Tensor:
        return getattr(TENSORS, name)(other, self)
    return shift


Tensor.__rlshift__ = _shifted_by("bitwise_left_shift")  # type: ignore[attr-defined]
Tensor.__rrshift__ = _shifted_by("bitwise_right_shift")  # type: ignore[attr-defined]


@elementwise(tensors="input", promote="none")
def bitwise_not(input):
    if dtypes.category(input.dtype) > dtypes.INTEGER:
        raise refuse("bitwise_not", input)
    return np.invert(input)
