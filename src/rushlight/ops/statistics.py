"""Statistics: variance, median and other quantiles, norms, histograms, covariance."""
from __future__ import annotations

from math import inf, isinf
from typing import Any

import numpy as np

from ..arrays.dtypes import COMPLEX, FLOATING, INTEGER, category, default_numpy, from_numpy, int64, to_numpy
from ..tensor import Tensor, wrap
from .dimensions import wrap_dim
from .reductions import along, axes_of, check_not_empty, converted, count, finished, named, picked, restore, sum_axes
from .sorting import order_of
from .table import TENSORS, helper, method, operation, public
from .unpack import type_name

_INT64 = int64.numpy


# -- variance --------------------------------------------------------------------------------------------------------
def _moments(input: np.ndarray, dim: Any, correction: Any, keepdim: bool) -> tuple[Any, Any, np.dtype]:
    """Variance and mean, and the dtype they are to have."""
    if category(input.dtype) < FLOATING:
        raise RuntimeError("std and var only support floating point and complex dtypes")
    axes = axes_of(dim, input.ndim)
    freedom = count(input.shape, dim) - correction
    if freedom <= 0:
        import warnings
        warnings.warn("std(): degrees of freedom is <= 0. The correction must be less than the number of "
                      "elements that each result is made of.", UserWarning, stacklevel=5)
    input, result = converted(input, None)
    mean = sum_axes(input, axes, True) / input.real.dtype.type(count(input.shape, dim))
    off = input - mean
    squares = np.square(off) if input.dtype.kind != "c" else np.square(off.real) + np.square(off.imag)
    variance = sum_axes(squares, axes, bool(keepdim)) / squares.dtype.type(freedom if freedom > 0 else 0)
    return variance, mean if keepdim else mean.squeeze(axes), result


@helper
def variance_gradient(F: Any, g: Any, input: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    shape = input.shape
    freedom = count(shape, dim) - correction
    off = input - F.mean(input, dim, True)
    if freedom <= 0 and (dim is None or not shape):
        return g * (F.abs(off) * inf)  # nan at the mean itself, else inf
    return restore(F, g, shape, dim, keepdim) * (off * (2.0 / freedom if freedom else inf))


@helper
def deviation_gradient(F: Any, g: Any, result: Any) -> Any:
    """The gradient of the variance from that of its square root; 0 where it is 0."""
    return F.masked_fill(g / (result * 2), result == 0, 0)


@operation(input="variance_gradient(g, input, dim, correction, keepdim)", node="VarBackward0", public=False,
           method=False)
def variance(input, dim, correction, keepdim):
    made, _, dtype = _moments(input, dim, correction, keepdim)
    return _as_real(made, dtype)


@operation(input="variance_gradient(deviation_gradient(g, result), input, dim, correction, keepdim)",
           node="StdBackward0", public=False, method=False)
def deviation(input, dim, correction, keepdim):
    made, _, dtype = _moments(input, dim, correction, keepdim)
    return _as_real(np.sqrt(made), dtype)


def _as_real(made: Any, dtype: np.dtype) -> Any:
    return made if dtype.kind == "c" else finished(made, dtype)


def _with_mean(F: Any, g0: Any, g1: Any, input: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    parts = []
    if g0 is not None:
        parts.append(F.variance_gradient(g0, input, dim, correction, keepdim))
    if g1 is not None:
        shape = input.shape
        parts.append(F.spread(restore(F, g1, shape, dim, keepdim) / count(shape, dim), shape))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _deviation_with_mean(F: Any, g0: Any, g1: Any, input: Any, result0: Any, dim: Any, correction: Any,
                         keepdim: bool) -> Any:
    return _with_mean(F, None if g0 is None else F.deviation_gradient(g0, result0), g1, input, dim, correction, keepdim)


@operation(input=_with_mean, outputs=2, zeros=False, node="VarMeanBackward0", public=False, method=False)
def variance_and_mean(input, dim, correction, keepdim):
    made, mean, dtype = _moments(input, dim, correction, keepdim)
    return _as_real(made, dtype), finished(mean, dtype)


@operation(input=_deviation_with_mean, outputs=2, zeros=False, node="StdMeanBackward0", public=False, method=False)
def deviation_and_mean(input, dim, correction, keepdim):
    made, mean, dtype = _moments(input, dim, correction, keepdim)
    return _as_real(np.sqrt(made), dtype), finished(mean, dtype)


def _corrected(operation_name: str) -> Any:
    """The public form of std, var and their pairs: the older `unbiased` and the newer `correction` mean the same."""
    def function(input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
                 correction: Any = None, axis: Any = None, keepdims: Any = None, out: Any = None) -> Any:
        if isinstance(dim, bool):  # x.std(False)
            dim, unbiased = None, dim
        if unbiased is not None and correction is not None:
            raise TypeError(f"{function.__name__}() takes 'unbiased' or 'correction', not both")
        if correction is None:
            correction = 1 if unbiased is None or unbiased else 0
        return getattr(TENSORS, operation_name)(input, dim if axis is None else axis, correction,
                                                bool(keepdim if keepdims is None else keepdims), out=out)
    return function


for _name, _operation in (("var", "variance"), ("std", "deviation"), ("var_mean", "variance_and_mean"),
                          ("std_mean", "deviation_and_mean")):
    _function = _corrected(_operation)
    _function.__name__ = _function.__qualname__ = _name
    public(_function)
    if not _name.endswith("mean"):
        method(_function)


# -- order statistics ------------------------------------------------------------------------------------------------
_PICKED = "at_index(g0, input_shape, dim, keepdim, result1)"


def _ranked(name: str, input: np.ndarray, dim: Any, keepdim: bool, rank: Any) -> tuple[np.ndarray, np.ndarray]:
    """The element of each line that has a rank, given for sorted lines, and its index."""
    axis = wrap_dim(dim, input.ndim)
    if not input.ndim:
        return input.copy(), np.zeros((), _INT64)
    check_not_empty(name, input, axis)
    order = order_of(input, axis)
    place = order[along(rank(input[along(order, axis)], axis), axis)]
    return picked(input, axis, keepdim, place)


def _every_line(input: np.ndarray, axis: int, value: int) -> np.ndarray:
    return np.full([1 if d == axis else n for d, n in enumerate(input.shape)], value, _INT64)


def _median_rank(skip_nan: bool) -> Any:
    """The rank of the lower median in sorted lines; nan is last there, and if there is any, the median is the first."""
    def rank(lines: np.ndarray, axis: int) -> np.ndarray:
        length = lines.shape[axis]
        if category(lines.dtype) < FLOATING:
            return _every_line(lines, axis, (length - 1) // 2)
        present = length - np.isnan(lines).sum(axis, keepdims=True)
        if skip_nan:
            return np.maximum((present - 1) // 2, 0)
        return np.where(present < length, present, (length - 1) // 2)
    return rank


def _median_of_all(input: np.ndarray, skip_nan: bool) -> Any:
    if not input.size:
        return np.asarray(np.nan if category(input.dtype) >= FLOATING else np.iinfo(input.dtype).min, input.dtype)
    return _ranked("median", input.reshape(-1), 0, False, _median_rank(skip_nan))[0]


@operation(input="g * ties(input, result, None, True)", node="MedianBackward0", public=False, method=False)
def median_all(input):
    return _median_of_all(input, False)


@operation(input="g * ties(input, result, None, True)", node="NanmedianBackward0", public=False, method=False)
def nanmedian_all(input):
    return _median_of_all(input, True)


@operation(input=_PICKED, outputs="values indices", node="MedianBackward1", public=False, method=False)
def median_dim(input, dim, keepdim):
    return _ranked("median", input, dim, keepdim, _median_rank(False))


@operation(input=_PICKED, outputs="values indices", node="NanmedianBackward1", public=False, method=False)
def nanmedian_dim(input, dim, keepdim):
    return _ranked("nanmedian", input, dim, keepdim, _median_rank(True))


def _median_function(name: str) -> None:
    made = named(name, "values indices")

    def function(input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None,
                 out: Any = None) -> Any:
        dim = dim if axis is None else axis
        if dim is None:
            return getattr(TENSORS, name + "_all")(input, out=out)
        return made(getattr(TENSORS, name + "_dim")(input, dim, keepdim if keepdims is None else keepdims, out=out))

    function.__name__ = function.__qualname__ = name
    method(public(function))


_median_function("median")
_median_function("nanmedian")


@operation(input=_PICKED, outputs="values indices", node="KthvalueBackward0", public=False, method=False)
def kthvalue_pair(input, k, dim, keepdim):
    axis = wrap_dim(dim, input.ndim)
    if not 1 <= k <= (input.shape[axis] if input.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    return _ranked("kthvalue", input, dim, keepdim, lambda lines, axis: _every_line(lines, axis, k - 1))


def _mode_rank(lines: np.ndarray, axis: int) -> np.ndarray:
    """The last of the longest run in sorted lines; of runs as long, the first."""
    front = np.moveaxis(lines, axis, 0)
    run = np.ones(front.shape, _INT64)
    for i in range(1, len(front)):
        run[i] += np.where(front[i] == front[i - 1], run[i - 1], 0)
    return np.moveaxis(np.argmax(run, 0, keepdims=True), 0, axis)


@operation(input=_PICKED, outputs="values indices", node="ModeBackward0", public=False, method=False)
def mode_pair(input, dim, keepdim):
    return _ranked("mode", input, dim, keepdim, _mode_rank)


_kthvalue_result = named("kthvalue", "values indices")
_mode_result = named("mode", "values indices")


@public
@method
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The k-th smallest element along a dimension, counted from 1, and its index."""
    return _kthvalue_result(TENSORS.kthvalue_pair(input, int(k), dim, keepdim, out=out))


@public
@method
def mode(input: Any, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The most frequent element along a dimension, the smallest if several are, and where it occurs last."""
    return _mode_result(TENSORS.mode_pair(input, dim, keepdim, out=out))


# -- quantiles -------------------------------------------------------------------------------------------------------
_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(name: str, input: Any, q: Any, dim: Any, keepdim: bool, interpolation: str, out: Any) -> Any:
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got "
                           f"{interpolation}")
    if not input._array.size:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if input._array.dtype.name not in ("float32", "float64"):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if isinstance(q, Tensor):
        if len(q._shape) > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
        if q._array.dtype != input._array.dtype:
            raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
        if not ((q._array >= 0) & (q._array <= 1)).all():
            raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    else:
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        q = wrap(np.asarray(q, input._array.dtype))
    shape = input._shape
    axis = 0 if dim is None else wrap_dim(dim, len(shape))
    lines = TENSORS.reshape(input, (-1,)) if dim is None or not shape else input
    lines = TENSORS.sort_pair(lines, axis, False)[0]
    length = lines._shape[axis]
    absent = np.isnan(lines._array).sum(axis, keepdims=True)
    # One rank for each quantile and line; the quantiles come first, and in their place along the axis there is a 1.
    wide = TENSORS.reshape(q, (-1, *(1 for _ in lines._shape)))
    if name == "nanquantile":
        ranks = wide * wrap(np.maximum(length - absent - 1, 0)[None].astype(input._array.dtype))
    else:
        last = wrap(np.asarray(length - 1, input._array.dtype))
        ranks = TENSORS.where(wrap(absent[None] > 0), last, wide * (length - 1))
    below = np.floor(ranks._array)
    above = np.ceil(ranks._array)
    if interpolation == "lower":
        made = _at_ranks(lines, axis, below)
    elif interpolation == "higher":
        made = _at_ranks(lines, axis, above)
    elif interpolation == "nearest":
        made = _at_ranks(lines, axis, np.rint(ranks._array))
    else:
        weights = 0.5 if interpolation == "midpoint" else ranks - wrap(below)
        made = TENSORS.lerp(_at_ranks(lines, axis, below), _at_ranks(lines, axis, above), weights)
    if dim is None:
        kept = tuple(1 for _ in shape) if keepdim else ()
    else:
        kept = tuple(1 if d == axis else n for d, n in enumerate(shape) if keepdim or d != axis)
    made = TENSORS.reshape(made, (*q._shape, *kept))
    if out is None:
        return made
    from .apply import write_out
    write_out(name, out, made._array)
    return out


def _at_ranks(lines: Any, axis: int, ranks: np.ndarray) -> Any:
    """The elements at whole-numbered ranks (quantiles first, 1 along the axis) of sorted lines."""
    index = np.moveaxis(ranks, 0, axis + 1).squeeze(axis) if ranks.ndim > 1 else ranks
    index = np.broadcast_to(index, [index.shape[d] if d == axis else n for d, n in enumerate(lines._shape)])
    taken = TENSORS.gather(lines, axis, wrap(index.astype(_INT64)))
    return TENSORS.unsqueeze(TENSORS.movedim(taken, axis, 0), axis + 1)


@public
@method
def quantile(input: Any, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear",
             out: Any = None) -> Any:
    """The q-quantiles along a dimension, or of everything."""
    return _quantile("quantile", input, q, dim, keepdim, interpolation, out)


@public
@method
def nanquantile(input: Any, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear",
                out: Any = None) -> Any:
    """The q-quantiles of the elements that are not nan."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, out)


# -- norms -----------------------------------------------------------------------------------------------------------
@helper
def norm_gradient(F: Any, g: Any, input: Any, order: float, norm: Any, dim: Any, keepdim: bool) -> Any:
    """The gradient of a vector norm, with 0 where the norm is not differentiable."""
    shape = input.shape
    if order == 0:
        return None  # a count: constant
    if not shape:
        return F.sgn(input) * g
    g, norm = restore(F, g, shape, dim, keepdim), restore(F, norm, shape, dim, keepdim)
    if order == 1:
        return F.sgn(input) * g
    if order == 2:
        return input * F.masked_fill(g / norm, norm == 0, 0)
    size = F.abs(input)
    if isinf(order):
        return F.sgn(input) * (g * F.ties(size, norm, dim, True))
    if order < 1:
        return F.sgn(input) * F.masked_fill(size ** (order - 1), input == 0, 0) * g * norm ** (1 - order)
    scaled = F.masked_fill(g / norm ** (order - 1), norm == 0, 0)
    if order < 2:
        return F.sgn(input) * size ** (order - 1) * scaled
    return input * size ** (order - 2) * scaled


def norm_of(input: np.ndarray, order: float, dim: Any, keepdim: bool) -> Any:
    """A vector norm along dimensions."""
    axes, keep = axes_of(dim, input.ndim), bool(keepdim)
    if order == 2 and input.dtype.kind != "c":
        return np.sqrt(sum_axes(np.square(input), axes, keep))
    size = np.abs(input)
    if order == 0:
        return sum_axes((size != 0).astype(size.dtype), axes, keep)
    if isinf(order):
        reduce: Any = np.maximum.reduce if order > 0 else np.minimum.reduce
        if not size.size and order > 0 and dim is None:
            return np.zeros((1,) * size.ndim if keep else (), size.dtype)
        return reduce(size, axes, None, None, keep)
    if order == 1:
        return sum_axes(size, axes, keep)
    power = size.dtype.type(order)
    return sum_axes(size ** power, axes, keep) ** (1 / power)


@operation(input="norm_gradient(g, input, ord, result, dim, keepdim)", public=False, method=False)
def linalg_vector_norm(input, ord=2, dim=None, keepdim=False, *, dtype=None):
    if category(input.dtype) < FLOATING:
        raise RuntimeError("linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
                           f"{type_name(from_numpy(input.dtype).name)}")
    order = float(ord)
    if (order < 0 or order == inf) and not input.size:
        empty = [d for d in axes_of(dim, input.ndim) if input.shape[d] == 0]
        if empty or dim is None:
            raise RuntimeError(f"linalg.vector_norm cannot compute the {order:g} norm on an empty tensor because the "
                               "operation "
                               "does not have an identity")
    if dtype is not None:
        wanted = to_numpy(dtype)
        if category(wanted) < FLOATING or (category(wanted) == COMPLEX) != (input.dtype.kind == "c"):
            raise RuntimeError("linalg.vector_norm: dtype should be floating point or complex as the input is, but "
                               f"got {wanted}")
    wide, result = converted(input, dtype)
    made = norm_of(wide, order, dim, keepdim)
    return made if result.kind == "c" else finished(made, result)


@public
@method
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None) -> Any:
    """A vector norm; with p='nuc' the sum of the singular values."""
    if not isinstance(input, Tensor):
        raise TypeError(f"norm(): argument 'input' must be Tensor, not {type(input).__name__}")
    if isinstance(p, str):
        if p == "nuc":
            if dtype is not None:
                raise ValueError("dtype argument is not supported in nuclear norm")
            return TENSORS.linalg_matrix_norm(input, "nuc", (0, 1) if dim is None else dim, keepdim, out=out)
        if p != "fro":
            raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
        if dim is not None and not isinstance(dim, int) and len(dim) > 2:
            raise RuntimeError(f"Frobenius norm takes one or two dimensions, but got {len(dim)}")
        p = 2
    return TENSORS.linalg_vector_norm(input, 2 if p is None else p, dim, keepdim, dtype=dtype, out=out)


@operation(input="sum_to_size(norm_gradient(g, input - other, p, result, None, False), input_shape)",
           other="-sum_to_size(norm_gradient(g, input - other, p, result, None, False), other_shape)")
def dist(input, other, p=2):
    return norm_of(np.subtract(input, other), float(p), None, False)


def _renorm_gradient(F: Any, g: Any, input: Any, p: Any, dim: int, maxnorm: float) -> Any:
    others = tuple(d for d in range(input.ndim) if d != wrap_dim(dim, input.ndim))
    size = F.linalg_vector_norm(input, p, others, True)
    scale = maxnorm / (size + 1e-7)
    toward = F.sum(g * F.conj(input), others, True)
    toward = (F.real(toward) if F.is_complex_like(toward) else toward) * -scale / (size + 1e-7)
    through = F.norm_gradient(toward, input, float(p), size, others, True)
    scaled = g * scale if through is None else g * scale + through
    return F.where(size > maxnorm, scaled, g)


@operation(input=_renorm_gradient, inplace=True)
def renorm(input, p, dim, maxnorm):
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    axis = wrap_dim(dim, input.ndim)
    size = norm_of(input, float(p), tuple(d for d in range(input.ndim) if d != axis), True)
    return input * np.where(size > maxnorm, maxnorm / (size + 1e-7), 1).astype(size.dtype)


# -- covariance ------------------------------------------------------------------------------------------------------
@public
@method
def cov(input: Any, *, correction: Any = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariance matrix of variables in rows."""
    if len(input._shape) > 2:
        raise RuntimeError("cov(): expected input to have two or fewer dimensions but got an input with "
                           f"{len(input._shape)} "
                           "dimensions")
    if input._array.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    if category(input._array.dtype) < FLOATING:
        input = TENSORS.cast(input, default_numpy())
    rows = TENSORS.reshape(input, (1, -1)) if len(input._shape) < 2 else input
    samples = rows._shape[1]
    weights = None
    for name, given, kinds in (("fweights", fweights, (INTEGER,)), ("aweights", aweights, (FLOATING,))):
        if given is None:
            continue
        if len(given._shape) > 1:
            raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
                               f"{len(given._shape)} "
                               "dimensions")
        if category(given._array.dtype) not in kinds:
            raise RuntimeError(f"cov(): expected {name} to have "
                               f"{'integral' if name == 'fweights' else 'floating point'} dtype but "
                               f"got {name} with {type_name(given.dtype.name)} dtype")
        if given._array.size != samples:
            raise RuntimeError(f"cov(): expected {name} to have the same numel as there are observations in the input "
                               "but got "
                               f"{given._array.size} != {samples}")
        if given._array.size and given._array.min() < 0:
            raise RuntimeError(f"cov(): {name} cannot be negative")
        weights = given if weights is None else weights * given
    if weights is None:
        total: Any = samples
        mean = TENSORS.mean(rows, 1, True)
    else:
        total = TENSORS.sum(weights)
        if samples and not total._array:
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = TENSORS.sum(rows * weights, 1, True) / total
    freedom: Any
    if weights is not None and aweights is not None and correction:
        freedom = total - correction * TENSORS.sum(weights * aweights) / total
    else:
        freedom = total - correction
    value = float(freedom if not isinstance(freedom, Tensor) else freedom._array.real)
    if value <= 0:
        import warnings
        warnings.warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of "
                      "observations.",
                      UserWarning, stacklevel=2)
        freedom = freedom * 0
    off = rows - mean
    weighted = off if weights is None else off * weights
    made = TENSORS.matmul(off, TENSORS.conj(TENSORS.transpose(weighted, 0, 1)))
    return TENSORS.squeeze(made / freedom)


@public
@method
def corrcoef(input: Any) -> Any:
    """The matrix of correlation coefficients of variables in rows."""
    if len(input._shape) > 2:
        raise RuntimeError(f"corrcoef(): expected input to have two or fewer dimensions but got an input with "
                           f"{len(input._shape)} dimensions")
    covariance = cov(input)
    if not covariance._shape:
        return covariance / covariance
    spreads = TENSORS.sqrt(TENSORS.real(TENSORS.diagonal(covariance)))
    made = covariance / TENSORS.unsqueeze(spreads, 1) / TENSORS.unsqueeze(spreads, 0)
    if made._array.dtype.kind == "c":
        return TENSORS.complex(TENSORS.clamp(TENSORS.real(made), -1, 1), TENSORS.clamp(TENSORS.imag(made), -1, 1))
    return TENSORS.clamp(made, -1, 1)
