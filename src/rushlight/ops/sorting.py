"""Sorting, searching and counting: sort, topk, unique, searchsorted, histograms."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.dtypes import FLOATING, INTEGER, category, default_numpy, from_numpy, int32, int64
from ..tensor import Tensor, wrap
from .dimensions import wrap_dim
from .reductions import along, named
from .table import TENSORS, method, operation, public
from .unpack import type_name

_INT64 = int64.numpy


# -- order -----------------------------------------------------------------------------------------------------------
def order_of(input: np.ndarray, axis: int, descending: bool = False) -> np.ndarray:
    """The indices that sort, keeping the order of elements that tie. nan counts as the largest."""
    if input.dtype.kind == "c":
        raise RuntimeError("Sort does not support complex dtypes on CPU")
    if not input.ndim:
        return np.zeros((), _INT64)
    if descending:  # the reverse of sorting the reverse, so that ties keep their order
        reverse = np.flip(np.argsort(np.flip(input, axis), axis, kind="stable"), axis)
        return input.shape[axis] - 1 - reverse
    return np.argsort(input, axis, kind="stable")


@operation(input="place_along(g0, dim, result1, input_shape)", outputs="values indices", node="SortBackward0", public=False,
           method=False)
def sort_pair(input, dim, descending):
    axis = wrap_dim(dim, input.ndim)
    order = order_of(input, axis, descending)
    return (input[along(order, axis)] if input.ndim else input.copy()), order


_sort_result = named("sort", "values indices")


@public
@method
def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool | None = None, *, axis: Any = None,
         out: Any = None) -> Any:
    """The elements in order along a dimension, and where they were. It is stable whether asked to be or not."""
    return _sort_result(TENSORS.sort_pair(input, dim if axis is None else axis, bool(descending), out=out))


@operation(tensors="input")
def argsort(input, dim=-1, descending=False, stable=False):
    return order_of(input, wrap_dim(dim, input.ndim), bool(descending))


@public
@method
def msort(input: Any, *, out: Any = None) -> Any:
    """The elements in order along the first dimension."""
    if out is not None:
        return TENSORS.sort_pair(input, 0, False, out=(out, wrap(np.empty(input._shape, _INT64))))[0]
    return TENSORS.sort_pair(input, 0, False)[0]


@operation(input="place_along(g0, dim, result1, input_shape)", outputs="values indices", node="TopkBackward0", public=False,
           method=False)
def topk_pair(input, k, dim, largest):
    axis = wrap_dim(dim, input.ndim)
    length = input.shape[axis] if input.ndim else 1
    if not 0 <= k <= length:
        raise RuntimeError("selected index k out of range")
    if not input.ndim:
        return input.copy(), np.zeros((), _INT64)
    keep = (slice(None),) * axis + (slice(k),)
    if 0 < 8 * k < length:  # few of many: part them off before sorting
        last = np.argpartition(input, length - k if largest else k - 1, axis)
        part = np.sort(last[(slice(None),) * axis + (slice(length - k, None) if largest else slice(k),)], axis)
        order = order_of(input[along(part, axis)], axis, largest)
        place = part[along(order, axis)]
    else:
        place = order_of(input, axis, largest)[keep]
    return input[along(place, axis)], place


_topk_result = named("topk", "values indices")


@public
@method
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, axis: Any = None,
         out: Any = None) -> Any:
    """The k largest (or smallest) elements along a dimension, in order, and their indices."""
    return _topk_result(TENSORS.topk_pair(input, int(k), dim if axis is None else axis, bool(largest), out=out))


# -- distinct elements -----------------------------------------------------------------------------------------------
def _no_gradient(name: str) -> Any:
    """The formula of an operation that PyTorch has no derivative for."""
    def formula(g0: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")
    return formula


@operation(input=_no_gradient("_unique"), outputs=3, node="Unique2Backward0", public=False, method=False)
def unique_flat(input):
    values, inverse, counts = np.unique(input.reshape(-1), return_inverse=True, return_counts=True, equal_nan=False)
    return values, inverse.reshape(input.shape), counts


@operation(input=_no_gradient("unique_dim"), outputs=3, node="UniqueDimBackward0", public=False, method=False)
def unique_dim(input, dim):
    axis = wrap_dim(dim, input.ndim)
    if input.size == 0 and (input.shape[axis] == 0 or input.ndim == 1):
        if any(n == 0 for d, n in enumerate(input.shape) if d != axis):
            raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
        return input.copy(), np.zeros(0, _INT64), np.zeros(0, _INT64)
    if 0 in input.shape:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    values, inverse, counts = np.unique(input, return_inverse=True, return_counts=True, axis=axis, equal_nan=False)
    return values, inverse.reshape(-1), counts


@operation(input=_no_gradient("unique_consecutive"), outputs=3, node="UniqueConsecutiveBackward0", public=False,
           method=False)
def unique_runs(input, dim):
    lines = input.reshape(-1) if dim is None else np.moveaxis(input, wrap_dim(dim, input.ndim), 0)
    changed = np.ones(len(lines), bool)
    if len(lines) > 1:
        changed[1:] = (lines[1:] != lines[:-1]).reshape(len(lines) - 1, -1).any(1)
    starts = np.flatnonzero(changed)
    values = lines[starts]
    inverse = np.cumsum(changed) - 1
    counts = np.diff(np.append(starts, len(lines)))
    if dim is None:
        return values, inverse.reshape(input.shape), counts
    return np.moveaxis(values, 0, wrap_dim(dim, input.ndim)), inverse, counts


def _chosen(made: tuple, return_inverse: bool, return_counts: bool) -> Any:
    output, inverse, counts = made
    chosen = (output, *((inverse,) if return_inverse else ()), *((counts,) if return_counts else ()))
    return chosen if len(chosen) > 1 else output


@public
@method
def unique(input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:
    """The distinct elements in order; on request each element's place among them, and how often each occurs."""
    made = TENSORS.unique_flat(input) if dim is None else TENSORS.unique_dim(input, dim)
    return _chosen(made, return_inverse, return_counts)


@public
@method
def unique_consecutive(input: Any, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:
    """The elements without those that equal the one before."""
    return _chosen(TENSORS.unique_runs(input, dim), return_inverse, return_counts)


# -- searching -------------------------------------------------------------------------------------------------------
def _value_like(value: Any, other: Any) -> Tensor:
    """A Python number among tensors."""
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, (bool, int, float, np.generic)):
        raise TypeError(f"expected a Tensor or a number, but got {type(value).__name__}")
    dtype = other._array.dtype if isinstance(other, Tensor) else None
    if dtype is None or (isinstance(value, float) and category(dtype) < FLOATING):
        dtype = default_numpy() if isinstance(value, float) else _INT64
    return wrap(np.asarray(value, dtype))


@operation(tensors="boundaries values sorter", public=False, method=False)
def search_places(boundaries, values, sorter=None, right=False, out_int32=False):
    side: Any = "right" if right else "left"
    if sorter is not None:
        boundaries = np.take_along_axis(boundaries, sorter, -1)
    made: np.ndarray
    if not values.size:
        made = np.zeros(values.shape, _INT64)
    elif boundaries.ndim == 1:
        made = np.searchsorted(boundaries, values, side)
    else:
        lines = boundaries.reshape(-1, boundaries.shape[-1])
        wanted = values.reshape(len(lines), -1)
        made = np.empty(wanted.shape, _INT64)
        for i, line in enumerate(lines):
            made[i] = np.searchsorted(line, wanted[i], side)
        made = made.reshape(values.shape)
    return np.asarray(made, int32.numpy if out_int32 else _INT64)


@public
def searchsorted(sorted_sequence: Any, input: Any, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None, sorter: Any = None, out: Any = None) -> Any:
    """Where each value belongs in sorted lines."""
    name = "torch.searchsorted()"
    values = _value_like(input, sorted_sequence)
    bounds, wanted = sorted_sequence._array, values._array
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"{name}: side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(f"{name}: side and right can't be set to opposites, got side of {side} while right was True")
    if not bounds.ndim:
        raise RuntimeError(f"{name}: boundaries tensor should have positive dimension, but got 0 dimension")
    if bounds.ndim > 1 and bounds.shape[:-1] != wanted.shape[:-1]:
        raise RuntimeError(f"{name}: boundaries tensor should be 1 dimension or the first N-1 dimensions of "
                           "boundaries tensor and "
                           f"input value tensor must match, but we got boundaries tensor {list(bounds.shape)} and "
                           "input value "
                           f"tensor {list(wanted.shape)}")
    if sorter is not None:
        if sorter._array.dtype != _INT64:
            raise RuntimeError(f"{name}: sorter must be a tensor of long dtype but got dtype "
                               f"{type_name(sorter.dtype.name)}")
        if sorter._shape != sorted_sequence._shape:
            raise RuntimeError(f"{name}: boundary and sorter must have the same size, but got boundary tensor "
                               f"{list(bounds.shape)} and got sorter tensor {list(sorter._shape)}")
        if sorter._array.size and not 0 <= sorter._array.min() <= sorter._array.max() < bounds.shape[-1]:
            raise RuntimeError("torch.searchsorted(): sorter index out of range")
    if out is not None and out._array.dtype != (int32.numpy if out_int32 else _INT64):
        raise RuntimeError(f"{name}: output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) "
                           "depending on whether "
                           f"out_int32 flag is True, but we got output tensor's dtype {type_name(out.dtype.name)} and "
                           "out_int32 "
                           f"flag is {out_int32}")
    return TENSORS.search_places(sorted_sequence, values, sorter, right or side == "right", out_int32, out=out)


@public
def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False, out: Any = None) -> Any:
    """The number of the bucket, between boundaries, that each value falls into."""
    if len(boundaries._shape) != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({len(boundaries._shape)})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


@operation(tensors="elements test_elements", public=False, method=False)
def is_among(elements, test_elements, invert):
    return np.isin(elements, test_elements, invert=invert)


@public
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False,
         out: Any = None) -> Any:
    """Whether each element occurs in another tensor."""
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError("isin() received an invalid combination of arguments: one of elements and test_elements must "
                        "be a Tensor")
    return TENSORS.is_among(_value_like(elements, test_elements), _value_like(test_elements, elements), bool(invert),
                            out=out)


# -- counting --------------------------------------------------------------------------------------------------------
@operation(tensors="input")
def histc(input, bins=100, min=0, max=0):
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if category(input.dtype) != FLOATING:
        raise NotImplementedError(f'"histogram_cpu" not implemented for \'{type_name(from_numpy(input.dtype).name)}\'')
    low, high = _histogram_range("histc", input, min, max, 1)
    return np.histogram(input, bins, (low, high))[0].astype(input.dtype)


def _histogram_range(name: str, input: np.ndarray, low: float, high: float, widening: float) -> tuple[float, float]:
    if low == high and input.size:
        low, high = float(input.min()), float(input.max())
    if low == high:
        low, high = low - widening, high + widening
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"torch.{name}: range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"torch.{name}: max must be larger than min")
    return low, high


@operation(tensors="input weight", lists="edges", public=False, method=False)
def fill_histogram(input, edges, weight=None, density=False):
    """Counts or weights of points, given by their coordinates along the last dimension, in bins along each of them."""
    points = input.reshape(-1, input.shape[-1])
    inside = np.ones(len(points), bool)
    places = []
    for column, bounds in zip(points.T, edges, strict=True):
        inside &= (column >= bounds[0]) & (column <= bounds[-1])
        places.append(np.minimum(np.searchsorted(bounds, column, "right") - 1, len(bounds) - 2))
    made = np.zeros([len(bounds) - 1 for bounds in edges], input.dtype)
    weights = input.dtype.type(1) if weight is None else weight.reshape(-1)[inside]
    np.add.at(made, tuple(place[inside] for place in places), weights)
    if density:
        made /= made.sum()
        for d, bounds in enumerate(edges):
            made /= np.diff(bounds).reshape([-1 if i == d else 1 for i in range(len(edges))])
    return made


_histogram_result = named("histogram", "hist bin_edges")
_histogramdd_result = named("histogramdd", "hist bin_edges")


def _edges(name: str, input: Any, columns: np.ndarray, bins: Any, range: Any) -> list[Tensor]:
    """The edges of the bins of each coordinate."""
    made = []
    for d, given in enumerate(bins):
        if isinstance(given, Tensor):
            if given._array.dtype != input._array.dtype:
                raise RuntimeError("torch.histogramdd: input tensor and bins tensors should have the same dtype, but "
                                   "got "
                                   f"input with dtype {type_name(input.dtype.name)} and bins with dtype "
                                   f"{type_name(given.dtype.name)}")
            if len(given._shape) != 1 or not given._array.size:
                raise RuntimeError("torch.histogramdd: bins tensor should have one dimension and at least one element")
            made.append(given.detach())
            continue
        if given <= 0:
            raise RuntimeError(f"torch.{name}(): bins must be > 0, but got {given} for dimension {d}")
        low, high = (0, 0) if range is None else range[2 * d:2 * d + 2]
        low, high = _histogram_range(name, columns[:, d], low, high, 0.5)
        made.append(wrap(np.linspace(low, high, given + 1, dtype=input._array.dtype)))
    return made


def _check_histogram(name: str, input: Any, weight: Any, shape: tuple) -> None:
    if input._array.dtype.name not in ("float32", "float64"):
        raise NotImplementedError(f'"{name}" not implemented for \'{type_name(input.dtype.name)}\'')
    if weight is not None:
        if weight._array.dtype != input._array.dtype:
            raise RuntimeError("torch.histogramdd: if weight tensor is provided, input tensor and weight tensor "
                               "should have the "
                               f"same dtype, but got input(dtype={type_name(input.dtype.name)}) and "
                               f"weight(dtype={type_name(weight.dtype.name)})")
        if weight._shape != shape:
            raise RuntimeError("torch.histogramdd: if weight tensor is provided it should have the same shape as the "
                               "input "
                               f"tensor excluding its innermost dimension, but got {list(weight._shape)} for "
                               f"{list(shape)}")


@public
@method
def histogram(input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False,
              out: Any = None) -> Any:
    """Counts, or weights, per bin, and the edges of the bins."""
    _check_histogram("histogram", input, weight, input._shape)
    columns = input._array.reshape(-1, 1)
    edges = _edges("histogram", input, columns, [bins], range)
    hist = TENSORS.fill_histogram(wrap(columns), edges, weight, density, out=None if out is None else out[0])
    return _histogram_result((hist, edges[0]))


@public
def histogramdd(input: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    """Counts, or weights, per bin of points with several coordinates, and the edges of the bins of each."""
    if len(input._shape) < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    _check_histogram("histogramdd", input, weight, input._shape[:-1])
    count = input._shape[-1]
    bins = [bins] * count if isinstance(bins, int) else list(bins)
    if len(bins) != count:
        raise RuntimeError(f"torch.histogramdd: expected {count} sequences of bin edges for a {count}-dimensional "
                           "histogram but "
                           f"got {len(bins)}")
    edges = _edges("histogramdd", input, input._array.reshape(-1, count), bins, range)
    return _histogramdd_result((TENSORS.fill_histogram(input.detach(), edges, weight, density), tuple(edges)))


@operation(tensors="input weights")
def bincount(input, weights=None, minlength=0):
    if category(input.dtype) > INTEGER:
        raise NotImplementedError(f'"bincount_cpu" not implemented for \'{type_name(from_numpy(input.dtype).name)}\'')
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if input.ndim != 1 or (input.size and input.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != input.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    made = np.bincount(input.astype(_INT64), weights, minlength)
    return made if weights is None else made.astype(weights.dtype if weights.dtype == np.float32 else np.float64)
