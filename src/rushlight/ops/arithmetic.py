"""Arithmetic: the four operations, powers, remainders, and their fused forms."""
from __future__ import annotations

import numpy as np

from .table import elementwise


@elementwise(input="g", other="g if alpha == 1 else g * alpha", inline="input + other if alpha == 1 else input + other * alpha")
def add(input, other, *, alpha=1):
    if input.dtype.kind == "b" and other.dtype.kind == "b":
        return np.logical_or(input, other if alpha else False)
    return np.add(input, other) if alpha == 1 else np.add(input, np.multiply(other, alpha, dtype=other.dtype))


@elementwise(input="g", other="-g if alpha == 1 else g * -alpha", aliases="subtract",
             inline="input - other if alpha == 1 else input - other * alpha")
def sub(input, other, *, alpha=1):
    if input.dtype.kind == "b" or other.dtype.kind == "b":
        raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a "
                           "mask, use the `~` or `logical_not()` operator instead.")
    return np.subtract(input, other) if alpha == 1 else np.subtract(input, np.multiply(other, alpha, dtype=other.dtype))


@elementwise(input="g * conj(other)", other="g * conj(input)", aliases="multiply", inline="input * other")
def mul(input, other):
    return np.multiply(input, other)


@elementwise(input="-g", aliases="negative", inline="-input")
def neg(input):
    if input.dtype.kind == "b":
        raise RuntimeError("Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, "
                           "use the `~` or `logical_not()` operator instead.")
    return np.negative(input)
