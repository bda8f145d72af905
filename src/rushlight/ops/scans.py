"""Scans: running sums, products and extremes, and the differences and integrals made of them."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.dtypes import BOOLEAN, FLOATING, category, from_numpy, int64
from ..tensor import Tensor
from .dimensions import wrap_dim, wrap_dims
from .reductions import converted, cut, finished, named
from .table import TENSORS, helper, method, operation, public
from .unpack import type_name

_INT64 = int64.numpy


def _scan(function: Any, input: np.ndarray, dim: Any, dtype: Any) -> np.ndarray:
    """A running sum or product. Its rounding errors pile up on the way, so float32 runs in float64, as in PyTorch."""
    axis = wrap_dim(dim, input.ndim)
    input, result = converted(input, dtype)
    if not input.ndim:
        return finished(input.copy(), result)
    wide = {"f": np.float64, "c": np.complex128}.get(input.dtype.kind)
    return finished(function(input, axis, wide), result)


@operation(input="reverse_cumsum(g, dim)", jvp="linear", inplace=True)
def cumsum(input, dim, *, dtype=None):
    return _scan(np.add.accumulate, input, dim, dtype)


@operation(input="cumsum(g, dim)", jvp="linear", public=False, method=False)
def reverse_cumsum(input, dim):
    """The sum of each element and all that follow it."""
    if not input.ndim:
        return input[...].copy()
    return np.flip(_scan(np.add.accumulate, np.flip(input, dim), dim, None), dim)


# -- running products ------------------------------------------------------------------------------------------------
def _cumprod_gradient(F: Any, g: Any, input: Any, result: Any, dim: Any) -> Any:
    if not input.ndim or input.shape[dim] <= 1:
        return g  # the product is the element itself
    if not F.any(input == 0):
        return F.reverse_cumsum(g * F.conj(result), dim) / F.conj(input)
    # The product before an element times what follows from it: r[k] = g[k] + x[k+1] * r[k+1]. Nothing is divided.
    axis = wrap_dim(dim, input.ndim)
    ones = F.ones_of(cut(input, axis, 0, 1))
    before = F.cat([ones, cut(result, axis, 0, -1)], axis)
    follows = F.cat([cut(input, axis, 1, None), ones], axis)
    return F.conj(before) * F.recurrence(g, F.conj(follows), axis, True)


@operation(input=_cumprod_gradient, inplace=True)
def cumprod(input, dim, *, dtype=None):
    return _scan(np.multiply.accumulate, input, dim, dtype)


def _factor_gradient(F: Any, g: Any, factor: Any, result: Any, dim: int, reverse: bool) -> Any:
    back = F.recurrence(g, F.conj(F.shifted(factor, dim, reverse)), dim, not reverse)
    zeros = F.zeros_of(cut(factor, dim, 0, 1))
    previous = (F.cat([cut(result, dim, 1, None), zeros], dim) if reverse
                else F.cat([zeros, cut(result, dim, 0, -1)], dim))
    return back * F.conj(previous)


@operation(input="recurrence(g, conj(shifted(factor, dim, reverse)), dim, not reverse)", factor=_factor_gradient,
           public=False, method=False)
def recurrence(input, factor, dim, reverse):
    """r[k] = input[k] + factor[k] * r[k - 1], or with `reverse` r[k + 1]: step by step, whole slices at a time."""
    values, factors = np.moveaxis(input, dim, 0), np.moveaxis(factor, dim, 0)
    made = np.array(values)
    order = range(len(made) - 2, -1, -1) if reverse else range(1, len(made))
    step = 1 if reverse else -1
    for k in order:
        made[k] += factors[k] * made[k + step]
    return np.moveaxis(made, 0, dim)


@helper
def shifted(F: Any, factor: Any, dim: int, reverse: bool) -> Any:
    """The factors of the same recurrence run the other way: each one moved to the place it leads to."""
    ones = F.ones_of(cut(factor, dim, 0, 1))
    if reverse:
        return F.cat([ones, cut(factor, dim, 0, -1)], dim)
    return F.cat([cut(factor, dim, 1, None), ones], dim)


# -- running extremes ------------------------------------------------------------------------------------------------
def _running(function: Any, name: str, input: np.ndarray, dim: Any) -> tuple[np.ndarray, np.ndarray]:
    axis = wrap_dim(dim, input.ndim)
    if input.dtype.kind == "c":
        raise NotImplementedError(f'"{name}" not implemented for \'{type_name(from_numpy(input.dtype).name)}\'')
    if not input.ndim:
        return input.copy(), np.zeros((), _INT64)
    values = function.accumulate(input, axis)
    newest = input == values  # of several that tie, the last
    if category(input.dtype) >= FLOATING:
        newest |= np.isnan(input)
    steps = np.arange(input.shape[axis]).reshape([-1 if d == axis else 1 for d in range(input.ndim)])
    return values, np.maximum.accumulate(np.where(newest, steps, 0), axis)


_RUNNING = "place_along(g0, dim, result1, input_shape, True)"


@operation(input=_RUNNING, outputs="values indices", node="CummaxBackward0", public=False, method=False)
def cummax_pair(input, dim):
    return _running(np.maximum, "cummax_cpu", input, dim)


@operation(input=_RUNNING, outputs="values indices", node="CumminBackward0", public=False, method=False)
def cummin_pair(input, dim):
    return _running(np.minimum, "cummin_cpu", input, dim)


_cummax_result = named("cummax", "values indices")
_cummin_result = named("cummin", "values indices")


@public
@method
def cummax(input: Any, dim: int, *, out: Any = None) -> Any:
    """The largest so far along a dimension, and its index."""
    return _cummax_result(TENSORS.cummax_pair(input, dim, out=out))


@public
@method
def cummin(input: Any, dim: int, *, out: Any = None) -> Any:
    """The smallest so far along a dimension, and its index."""
    return _cummin_result(TENSORS.cummin_pair(input, dim, out=out))


# -- running log of a sum of exponentials ----------------------------------------------------------------------------
def _wide(values: np.ndarray) -> np.ndarray:
    """In double precision: a sum of exponentials can lose all the digits that single precision has."""
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def _accumulate(values: np.ndarray, axis: int) -> np.ndarray:
    """log of the running sum of exp."""
    if values.dtype.kind != "c":
        return np.logaddexp.accumulate(values, axis)
    made = np.moveaxis(values.copy(), axis, 0)
    for k in range(1, len(made)):
        swap = made[k].real < made[k - 1].real
        larger = np.where(swap, made[k - 1], made[k])
        added = np.log1p(np.exp(np.where(swap, made[k], made[k - 1]) - larger))
        made[k] = np.where(np.isneginf(larger.real), larger, larger + added)
    return np.moveaxis(made, 0, axis)


def _linear(weights: np.ndarray, scan: Any) -> np.ndarray:
    """What `scan` makes of weights given by their logarithms: exponentials alone could overflow on the way."""
    if weights.dtype.kind == "c":
        return np.exp(scan(np.log(weights)))
    return np.exp(scan(np.log(np.maximum(weights, 0)))) - np.exp(scan(np.log(np.maximum(-weights, 0))))


@operation(input="logcumsumexp_push(g, values, total, dim)",
           values="conj(g) * logcumsumexp_pull(input, values, total, dim)",
           total="-conj(logcumsumexp_push(g, values, total, dim)) * input", public=False, method=False)
def logcumsumexp_pull(input, values, total, dim):
    """The gradient of logcumsumexp: for each k the sum over i >= k of g[i] * exp(x[k] - r[i])."""
    if not input.ndim:
        return input[...].copy()
    dtype = input.dtype
    input, values, total = _wide(input), _wide(values), _wide(total)
    made = _linear(np.conjugate(input), lambda logarithms: np.flip(
        _accumulate(np.flip(logarithms - total, dim), dim), dim) + values)
    return np.conjugate(made).astype(dtype)


@operation(input="logcumsumexp_pull(g, values, total, dim)",
           values="conj(input) * logcumsumexp_pull(g, values, total, dim)",
           total="-g * conj(logcumsumexp_push(input, values, total, dim))", public=False, method=False)
def logcumsumexp_push(input, values, total, dim):
    """The other way: for each i the sum over k <= i of h[k] * exp(x[k] - r[i])."""
    if not input.ndim:
        return input[...].copy()
    dtype = input.dtype
    input, values, total = _wide(input), _wide(values), _wide(total)
    return _linear(input, lambda logarithms: _accumulate(logarithms + values, dim) - total).astype(dtype)


@operation(input="logcumsumexp_pull(g, input, result, dim)")
def logcumsumexp(input, dim):
    axis = wrap_dim(dim, input.ndim)
    if category(input.dtype) < FLOATING:
        raise NotImplementedError('"logcumsumexp_out_cpu" not implemented for '
                                  f"'{type_name(from_numpy(input.dtype).name)}'")
    if not input.ndim:
        return input.copy()
    return finished(_accumulate(_wide(input), axis), input.dtype)


# -- differences and integrals ---------------------------------------------------------------------------------------
@public
@method
def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None, *, out: Any = None) -> Any:
    """The n-th difference along a dimension."""
    if not input._shape:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    axis = wrap_dim(dim, len(input._shape))
    parts = [part for part in (prepend, input, append) if part is not None]
    for part in parts:
        if len(part._shape) != len(input._shape):
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    if n and len(parts) > 1:  # with n=0 what there is to prepend or append is not used
        input = TENSORS.cat(parts, axis)
    subtract = TENSORS.logical_xor if category(input._array.dtype) == BOOLEAN else TENSORS.sub
    made = input if n else TENSORS.clone(input)
    for _ in range(min(n, input._shape[axis])):
        made = subtract(cut(made, axis, 1, None), cut(made, axis, 0, -1))
    if out is None:
        return made
    from .apply import write_out
    write_out("diff", out, made._array)
    return out


def _spacings(spacing: Any, count: int) -> list:
    if spacing is None:
        return [1.0] * count
    if isinstance(spacing, (list, tuple)):
        if len(spacing) != count:
            raise RuntimeError("torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
                               "equal to "
                               f"'self.dim()' or to the number of given dims, but got a list of length {len(spacing)}")
        return list(spacing)
    if isinstance(spacing, Tensor):
        raise TypeError("gradient(): argument 'spacing' must be a number or a list of numbers or tensors, not Tensor")
    return [spacing] * count


@public
def gradient(input: Any, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> list:
    """Central differences along each dimension, one-sided at the edges."""
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    ndim = len(input._shape)
    axes = tuple(range(ndim)) if dim is None else wrap_dims(dim, ndim)
    steps = _spacings(spacing, len(axes))
    for axis in axes:
        if input._shape[axis] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return [_gradient_along(input, axis, step, edge_order) for axis, step in zip(axes, steps, strict=True)]


def _gradient_along(x: Tensor, axis: int, step: Any, edge_order: int) -> Any:
    length = x._shape[axis]

    def at(start: int, stop: int) -> Any:
        return cut(x, axis, start, stop)

    if isinstance(step, Tensor):
        if len(step._shape) != 1 or step._shape[0] != length:
            raise RuntimeError("torch.gradient expected each element of spacing to have one dimension, with as many "
                               "coordinates "
                               f"as the input has along dimension {axis}")
        widths = TENSORS.reshape(diff(step), [-1 if d == axis else 1 for d in range(len(x._shape))])
    else:
        widths = None
    n = length

    def width(start: int, stop: int) -> Any:
        return float(step) if widths is None else cut(widths, axis, start, stop)

    if widths is None:
        inner = _over(at(2, n) - at(0, n - 2), 2 * float(step))
    else:
        first, second = width(0, n - 2), width(1, n - 1)
        inner = (at(2, n) * (first / (second * (first + second))) + at(1, n - 1) * ((second - first) / (first * second))
                 - at(0, n - 2) * (second / (first * (first + second))))
    if edge_order == 1:
        left = _over(at(1, 2) - at(0, 1), width(0, 1))
        right = _over(at(n - 1, n) - at(n - 2, n - 1), width(n - 2, n - 1))
    else:
        h1, h2 = width(0, 1), width(1, 2)
        left = (_times(at(0, 1), -((2 * h1 + h2) / (h1 * (h1 + h2)))) + _times(at(1, 2), (h1 + h2) / (h1 * h2))
                - _times(at(2, 3), h1 / (h2 * (h1 + h2))))
        h1, h2 = width(n - 3, n - 2), width(n - 2, n - 1)
        right = (_times(at(n - 3, n - 2), h2 / (h1 * (h1 + h2))) - _times(at(n - 2, n - 1), (h1 + h2) / (h1 * h2))
                 + _times(at(n - 1, n), (2 * h2 + h1) / (h2 * (h1 + h2))))
    return TENSORS.cat([left, inner, right], axis)


# PyTorch's own compositions multiply and divide by plain numbers, which a backward pass does not free.
@operation(input="times_number(g, number)", jvp="linear", node="MulBackward1", public=False, method=False)
def times_number(input, number):
    return input * number


@operation(input="over_number(g, number)", jvp="linear", node="DivBackward1", public=False, method=False)
def over_number(input, number):
    return input / np.asarray(number, input.dtype)


def _times(x: Tensor, number: Any) -> Any:
    return TENSORS.times_number(x, number) if x._real is not None and isinstance(number, (int, float)) else x * number


def _over(x: Tensor, number: Any) -> Any:
    return TENSORS.over_number(x, number) if x._real is not None and isinstance(number, (int, float)) else x / number


def _panels(name: str, y: Any, x: Any, dx: Any, dim: int) -> Any:
    """Twice the areas of the trapezoids between neighbouring points."""
    if x is not None and dx is not None:
        raise TypeError(f"{name}() takes either 'x' or 'dx', not both")
    axis = wrap_dim(dim, len(y._shape))
    pairs = cut(y, axis, 1, None) + cut(y, axis, 0, -1)
    if x is None:
        return pairs if dx is None else _times(pairs, dx)
    if category(y._array.dtype) == BOOLEAN or category(x._array.dtype) == BOOLEAN:
        raise RuntimeError(f"{name}: received a bool input for `x` or `y`, but bool is not supported")
    if len(x._shape) == 1:
        if x._shape[0] != y._shape[axis]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        widths = TENSORS.reshape(diff(x), [-1 if d == axis else 1 for d in range(len(y._shape))])
    else:
        widths = diff(x, dim=dim)
    return pairs * widths


@public
def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integral along a dimension by the trapezoidal rule."""
    if category(y._array.dtype) == BOOLEAN:
        raise RuntimeError("trapezoid: received a bool input for `y`, but bool is not supported")
    return _over(TENSORS.sum(_panels("trapezoid", y, x, dx, dim), dim), 2)


@public
def trapz(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integral along a dimension by the trapezoidal rule."""
    return trapezoid(y, x, dx=dx, dim=dim)


@public
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The running integral along a dimension by the trapezoidal rule."""
    if category(y._array.dtype) == BOOLEAN:
        raise RuntimeError("cumulative_trapezoid: received a bool input for `y`, but bool is not supported")
    return _over(TENSORS.cumsum(_panels("cumulative_trapezoid", y, x, dx, dim), dim), 2)
