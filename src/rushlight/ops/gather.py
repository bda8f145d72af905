"""Picking and placing elements one by one: gather, scatter and its kinds, take, put, masked_select, masked_scatter."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor, wrap
from .dimensions import broadcast_shape, wrap_dim
from .indexing import flat_positions
from .scattering import add_at, flat_places, reduce_at, writable
from .table import TENSORS, helper, method, operation, public
from .unpack import type_name

_PRIVATE = {"public": False, "method": False}


# -- gather and scatter ----------------------------------------------------------------------------------------------
def _check_index(name: str, index: np.ndarray, kinds: tuple = (np.int64,)) -> None:
    if index.dtype not in kinds:
        wanted = "int32/int64" if len(kinds) > 1 else "int64"
        raise RuntimeError(f"{name}(): Expected dtype {wanted} for index, got {dtypes.from_numpy(index.dtype).name}")


def _check_sizes(name: str, input: np.ndarray, dim: int, index: np.ndarray, src: np.ndarray | None = None) -> int:
    """The dimension, if the index fits the tensor and the source."""
    place = wrap_dim(dim, input.ndim)
    _check_index(name, index, (np.int64, np.int32))
    if not index.size:
        return place
    if max(index.ndim, 1) != max(input.ndim, 1):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as {'self' if name != 'gather' else 'input'} tensor"
        )
    if src is not None and max(index.ndim, 1) != max(src.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    if index.ndim and input.ndim:
        for d, size in enumerate(index.shape):
            if d != place and size > input.shape[d]:
                if src is None:
                    raise RuntimeError(
                        f"Size does not match at dimension {d} expected index {list(index.shape)} to be no larger than "
                        f"self {list(input.shape)} apart from dimension {place}"
                    )
                raise RuntimeError(
                    f"Expected index {list(index.shape)} to be no larger than self {list(input.shape)} apart from "
                    f"dimension {place} and to be no larger size than src {list(src.shape)}"
                )
            if src is not None and size > src.shape[d]:
                raise RuntimeError(
                    f"Expected index {list(index.shape)} to be no larger than self {list(input.shape)} apart from "
                    f"dimension {place} and to be no larger size than src {list(src.shape)}"
                )
    length = input.shape[place] if input.ndim else 1
    low, high = index.min(), index.max()
    if low < 0 or high >= length:
        raise RuntimeError(f"index {low if low < 0 else high} is out of bounds for dimension {place} with size {length}")
    return place


def _places(input: np.ndarray, dim: int, index: np.ndarray) -> np.ndarray:
    """Where in the flattened input the index points to."""
    if not input.ndim or not index.ndim:
        return index.reshape(index.shape or (1,)).astype(np.intp)
    return flat_places(input.shape, dim, index)


def _cut(src: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The part of a source that the index has places for."""
    if src.shape == index.shape or not src.ndim or not index.ndim:
        return src
    return src[tuple(slice(size) for size in index.shape)]


@operation(tensors="index", input="gather_backward(g, input, dim, index)", jvp="linear")
def gather(input, dim, index, *, sparse_grad=False):
    if not index.size:
        return np.empty(index.shape, input.dtype)
    place = _check_sizes("gather", input, dim, index)
    return input.reshape(-1)[_places(input, place, index)].reshape(index.shape)


@operation(tensors="index input", grad_output="gather(g, dim, index)", jvp="linear", **_PRIVATE)
def gather_backward(grad_output, input, dim, index):
    made = np.zeros(input.shape, grad_output.dtype)
    add_at(made.reshape(-1), _places(made, dim % max(made.ndim, 1), index).reshape(-1), grad_output.reshape(-1))
    return made


def _same_dtype(name: str, input: np.ndarray, src: np.ndarray) -> None:
    if input.dtype != src.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")


@operation(
    tensors="index",
    input="_scatter_value(g, dim, index, 0)",
    src="_grow_to(gather(g, dim, index), src_shape)",
    jvp="linear",
    inplace=True,
    name="_scatter",
    node="ScatterBackward0",
    **_PRIVATE,
)
def scatter_array(input, dim, index, src):
    _same_dtype("scatter", input, src)
    place = _check_sizes("scatter", input, dim, index, src)
    made = writable(input)
    if index.size:
        made.reshape(-1)[_places(made, place, index).reshape(-1)] = _cut(src, index).reshape(-1)
    return made


@operation(
    tensors="index",
    input="_scatter_value(g, dim, index, 0)",
    inplace=True,
    name="_scatter_value",
    node="ScatterBackward1",
    **_PRIVATE,
)
def scatter_value(input, dim, index, value):
    if isinstance(value, complex) and input.dtype.kind != "c":
        raise RuntimeError("value cannot be converted to type double without overflow")
    place = _check_sizes("scatter", input, dim, index)
    made = writable(input)
    if index.size:
        made.reshape(-1)[_places(made, place, index).reshape(-1)] = value
    return made


@helper
def _scatter_refuses(F, g):
    raise RuntimeError(
        "derivative for aten::scatter is not implemented: scatter() with reduce= has no gradient. Use "
        "scatter_reduce(), which has one."
    )


@operation(
    tensors="index",
    input="_scatter_refuses(g)",
    src="_scatter_refuses(g)",
    inplace=True,
    name="_scatter_combine",
    node="NotImplemented",
    **_PRIVATE,
)
def scatter_combine(input, dim, index, src, reduce):
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    _same_dtype("scatter", input, src)
    place = _check_sizes("scatter", input, dim, index, src)
    made = writable(input)
    if index.size:
        reduce_at(
            np.add if reduce == "add" else np.multiply,
            made.reshape(-1),
            _places(made, place, index).reshape(-1),
            _cut(src, index).reshape(-1),
        )
    return made


@operation(
    tensors="index",
    input="_scatter_refuses(g)",
    inplace=True,
    name="_scatter_combine_value",
    node="NotImplemented",
    **_PRIVATE,
)
def scatter_combine_value(input, dim, index, value, reduce):
    return scatter_combine(input, dim, index, np.full(index.shape, value, input.dtype), reduce)


def _scatter_call(input: Tensor, dim: int, index: Tensor, src: Any, value: Any, reduce: str | None, suffix: str) -> Tensor:
    given = src if src is not None else value
    form = "_scatter" if reduce is None else "_scatter_combine"
    if not isinstance(given, Tensor):
        form += "_value"
    return getattr(TENSORS, form + suffix)(input, dim, index, given, *(() if reduce is None else (reduce,)))


@public
@method
def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Tensor:
    """A copy with the elements of `src` (or one number) written where the index says."""
    return _scatter_call(input, dim, index, src, value, reduce, "")


@method
def scatter_(self: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Tensor:
    return _scatter_call(self, dim, index, src, value, reduce, "_")


@operation(tensors="index", input="g", src="_grow_to(gather(g, dim, index), src_shape)", jvp="linear", inplace=True)
def scatter_add(input, dim, index, src):
    _same_dtype("scatter_add", input, src)
    place = _check_sizes("scatter_add", input, dim, index, src)
    made = writable(input)
    if index.size:
        add_at(made.reshape(-1), _places(made, place, index).reshape(-1), _cut(src, index).reshape(-1))
    return made


# -- with a reduction ------------------------------------------------------------------------------------------------
_UFUNCS = {"sum": np.add, "prod": np.multiply, "mean": np.add, "amax": np.maximum, "amin": np.minimum}


def _identity(reduce: str, dtype: np.dtype) -> Any:
    """What a place holds before the first value comes to it, where its own does not count."""
    if reduce in ("amax", "amin"):
        if dtypes.category(dtype) == dtypes.FLOATING:
            return -np.inf if reduce == "amax" else np.inf
        limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return limits[0] if reduce == "amax" else limits[1]
    return 1 if reduce == "prod" else 0


def reduce_into(flat: np.ndarray, places: np.ndarray, values: np.ndarray, reduce: str, include_self: bool) -> None:
    """Reduce the values that come to each place of a flat array, with or without what it holds."""
    if not include_self:
        flat[places] = _identity(reduce, flat.dtype)
    reduce_at(_UFUNCS[reduce], flat, places, values)
    if reduce == "mean":
        counts = np.bincount(places, minlength=flat.size)
        counts = np.maximum(counts + 1 if include_self else counts, 1).astype(flat.dtype)
        np.floor_divide(flat, counts, out=flat) if dtypes.category(flat.dtype) <= dtypes.INTEGER else np.divide(
            flat, counts, out=flat
        )


def _check_reduce(name: str, reduce: str, known: tuple) -> None:
    if reduce not in known:
        raise RuntimeError(f"reduce argument must be either {', '.join(known[:-1])} or {known[-1]}, got {reduce}.")


def _scatter_reduce_formula(F, g, needs, input, dim, index, src, reduce, include_self, result):
    # An index with fewer entries than the source: only those take part.
    whole = src.shape
    part = F._cut_to(src, index.shape)
    pick, spread = (lambda x: F.gather(x, dim, index)), (lambda x, y: F.scatter_add(x, dim, index, y))
    own, others = _reduce_gradients(
        F,
        g,
        input,
        part,
        reduce,
        include_self,
        result,
        pick,
        spread,
        lambda s, v: F.scatter_reduce(s, dim, index, v, reduce, include_self=include_self),
    )
    if not include_self:
        own = F._scatter_value(own, dim, index, 0)
    return own, F._grow_to(others, whole)


def _reduce_gradients(F, g, input, src, reduce, include_self, result, pick, spread, again):
    """Gradients of the tensor and of the source. `pick` goes from places to the source, `spread` adds the other way."""
    if reduce == "sum":
        return g, pick(g)
    if reduce == "mean":
        counts = spread(F.constant_like(g, 1 if include_self else 0), F.constant_like(src, 1))
        counts = F.where(F.eq(counts, 0), F.constant_like(counts, 1), counts)
        return g / counts, pick(g) / pick(counts)
    if reduce == "prod":
        one_self, one_src = F.constant_like(input, 1), F.constant_like(src, 1)
        safe_self = F.where(F.eq(input, 0), one_self, input)
        own = g * again(safe_self, src) / safe_self
        zero = F.eq(src, 0)
        zeros = pick(spread(F.constant_like(input, 0), F.where(zero, one_src, F.constant_like(src, 0))))
        only = F.logical_and(zero, F.eq(zeros, 1))
        without = pick(g * again(input, F.where(only, one_src, src)))
        return own, F.where(only, without, pick(g * result) / F.where(zero, one_src, src))
    chosen, own_chosen = F.eq(src, pick(result)), F.eq(input, result)
    ties = spread(
        F.where(own_chosen, F.constant_like(input, 1), F.constant_like(input, 0)),
        F.where(chosen, F.constant_like(src, 1), F.constant_like(src, 0)),
    )
    shared = g / ties
    zero_self, zero_src = F.constant_like(g, 0), F.constant_like(src, 0)
    return F.where(own_chosen, shared, zero_self), F.where(chosen, pick(shared), zero_src)


@helper
def _cut_to(F, src, shape):
    for d, size in enumerate(shape):
        if len(src.shape) and src.shape[d] != size:
            src = F.slice(src, d, 0, size, 1)
    return src


@helper
def _grow_to(F, src, shape):
    for d, size in enumerate(shape):
        if len(src.shape) and src.shape[d] != size:
            src = F.slice_backward(src, (*src.shape[:d], size, *src.shape[d + 1 :]), d, 0, src.shape[d], 1)
    return src


@operation(tensors="index", together=_scatter_reduce_formula, differentiable="input src", inplace=True)
def scatter_reduce(input, dim, index, src, reduce, *, include_self=True):
    _check_reduce("scatter_reduce", reduce, ("sum", "prod", "mean", "amax", "amin"))
    _same_dtype("scatter", input, src)
    place = _check_sizes("scatter_reduce", input, dim, index, src)
    made = np.array(input, order="C")
    if index.size:
        reduce_into(
            made.reshape(-1),
            _places(made, place, index).reshape(-1),
            _cut(src, index).reshape(-1),
            reduce,
            include_self,
        )
    return made


def _index_reduce_formula(F, g, needs, input, dim, index, source, reduce, include_self, result):
    pick = lambda x: F.reshape(F.index_select(x, dim, index), source.shape)
    own, others = _reduce_gradients(
        F,
        g,
        input,
        source,
        reduce,
        include_self,
        result,
        pick,
        lambda x, y: F.index_add(x, dim, index, y),
        lambda s, v: F.index_reduce(s, dim, index, v, reduce, include_self=include_self),
    )
    return own if include_self else F.index_fill(own, dim, index, 0), others


@operation(tensors="index", together=_index_reduce_formula, differentiable="input source", inplace=True)
def index_reduce(input, dim, index, source, reduce, *, include_self=True):
    _check_reduce("index_reduce", reduce, ("prod", "mean", "amax", "amin"))
    place = wrap_dim(dim, input.ndim)
    _check_index("index_reduce", index, (np.int64, np.int32))
    if input.dtype != source.dtype:
        raise RuntimeError("index_reduce(): self and source must have the same scalar type")
    if index.ndim > 1:
        raise IndexError(f"index_reduce(): Index is supposed to be a vector, but got dim: {index.ndim}")
    if index.size != (source.shape[place] if source.ndim else 1):
        raise RuntimeError(f"index_reduce(): Number of indices ({index.size}) should be equal to source.size(dim)")
    length = input.shape[place] if input.ndim else 1
    if index.size and (index.min() < 0 or index.max() >= length):
        raise IndexError("index out of range in self")
    made = np.array(input, order="C")
    if index.size:
        places = flat_positions(made.shape or (1,), [index.reshape(-1)], (place,))
        reduce_into(made.reshape(-1), places.reshape(-1), source.reshape(places.shape).reshape(-1), reduce, include_self)
    return made


# -- flat indices ----------------------------------------------------------------------------------------------------
@operation(tensors="index", input="take_backward(g, input, index)", jvp="linear")
def take(input, index):
    if index.dtype != np.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {type_name(dtypes.from_numpy(index.dtype).name)}")
    if not input.size and index.size:
        raise IndexError("take(): tried to take from an empty tensor")
    return input.reshape(-1)[_flat_index(index, input.size)]


def _flat_index(index: np.ndarray, size: int) -> np.ndarray:
    if index.size and (index.min() < -size or index.max() >= size):
        raise IndexError(
            f"out of range: tried to access index {index.min() if index.min() < -size else index.max()} on a tensor of "
            f"{size} elements."
        )
    return np.where(index < 0, index + size, index)


@operation(tensors="input index", grad_output="take(g, index)", jvp="linear", **_PRIVATE)
def take_backward(grad_output, input, index):
    made = np.zeros(input.shape, grad_output.dtype)
    add_at(made.reshape(-1), _flat_index(index, made.size).reshape(-1), grad_output.reshape(-1))
    return made


def _put_source(F, g, index, source):
    return F.reshape(F.take(g, index), source.shape)


@operation(tensors="index", input="g if accumulate else _put_zero(g, index)", source=_put_source, jvp="linear", inplace=True)
def put(input, index, source, accumulate=False):
    if index.dtype != np.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {type_name(dtypes.from_numpy(index.dtype).name)}")
    if input.dtype != source.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{type_name(dtypes.from_numpy(input.dtype).name)} and source.dtype = "
            f"{type_name(dtypes.from_numpy(source.dtype).name)}"
        )
    if index.size != source.size:
        raise IndexError(
            f"put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.size}, index.numel() = {index.size}"
        )
    if not input.size and index.size:
        raise IndexError("put_(): Expected self to be non-empty when source is")
    made = writable(input)
    places = _flat_index(index, made.size).reshape(-1)
    if accumulate:
        add_at(made.reshape(-1), places, source.reshape(-1))
    else:
        made.reshape(-1)[places] = source.reshape(-1)
    return made


@operation(tensors="index", input="_put_zero(g, index)", jvp="linear", **_PRIVATE)
def _put_zero(input, index):
    made = writable(input)
    made.reshape(-1)[_flat_index(index, made.size).reshape(-1)] = 0
    return made


@public
@method
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """gather() with broadcasting, or with flat indices."""
    if indices._array.dtype not in (np.int64, np.int32):
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {type_name(indices.dtype.name)}")
    if dim is None:
        return TENSORS.gather(TENSORS.reshape(input, (-1,)), 0, TENSORS.reshape(indices, (-1,)), out=out)
    if len(input._shape) != len(indices._shape):
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{len(input._shape)} dimensions for input, and {len(indices._shape)} dimensions for indices"
        )
    place = wrap_dim(dim, len(input._shape))
    common = broadcast_shape(
        tuple(1 if d == place else n for d, n in enumerate(input._shape)),
        tuple(1 if d == place else n for d, n in enumerate(indices._shape)),
    )
    if indices._array.size and indices._array.min() < 0:
        indices = wrap(
            np.where(indices._array < 0, indices._array + (input._shape[place] if input._shape else 1), indices._array)
        )
    widened = [
        TENSORS.expand(one, (*common[:place], one._shape[place], *common[place + 1 :])) if one._shape else one
        for one in (input, indices)
    ]
    return TENSORS.gather(widened[0], place, widened[1], out=out)


# -- masks -----------------------------------------------------------------------------------------------------------
def _check_mask(name: str, mask: np.ndarray) -> None:
    if mask.dtype.kind != "b":
        raise RuntimeError(f"{name}: expected BoolTensor for mask")


@operation(tensors="mask", input="masked_select_backward(g, input, mask)", jvp="linear")
def masked_select(input, mask):
    _check_mask("masked_select", mask)
    if input.shape != mask.shape:
        try:
            input, mask = np.broadcast_arrays(input, mask)
        except ValueError:
            raise RuntimeError(
                f"The size of tensor a {list(input.shape)} must match the size of tensor b {list(mask.shape)}: "
                "masked_select broadcasts the mask and the tensor"
            ) from None
    return input[mask]


@operation(tensors="input mask", grad_output="masked_select(g, mask)", jvp="linear", **_PRIVATE)
def masked_select_backward(grad_output, input, mask):
    shape = np.broadcast_shapes(input.shape, mask.shape)
    made = np.zeros(shape, grad_output.dtype)
    made[np.broadcast_to(mask, shape)] = grad_output
    if shape != input.shape:
        from .fit import sum_to

        made = sum_to(made, input.shape)
    return made


@operation(
    tensors="mask",
    input="where(mask, constant_like(g, 0), g)",
    source="masked_scatter_backward(g, mask, source_shape)",
    jvp="linear",
    inplace=True,
)
def masked_scatter(input, mask, source):
    if mask.dtype.kind != "b":
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {dtypes.from_numpy(mask.dtype).name}"
        )
    if input.dtype != source.dtype:
        raise RuntimeError(
            "masked_scatter_: expected self and source to have same dtypes but got "
            f"{type_name(dtypes.from_numpy(input.dtype).name)} and {type_name(dtypes.from_numpy(source.dtype).name)}"
        )
    shape = np.broadcast_shapes(input.shape, mask.shape)
    made = np.broadcast_to(input, shape).copy()
    chosen = np.broadcast_to(mask, shape)
    count = int(chosen.sum())
    if count > source.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    made[chosen] = source.reshape(-1)[:count]
    return made


@operation(tensors="mask", grad_output="masked_scatter_twice(g, mask, grad_output_shape)", jvp="linear", **_PRIVATE)
def masked_scatter_backward(grad_output, mask, sizes):
    picked = grad_output[np.broadcast_to(mask, grad_output.shape)]
    made = np.zeros(sizes, grad_output.dtype)
    made.reshape(-1)[: picked.size] = picked
    return made


@operation(tensors="mask", input="masked_scatter_backward(g, mask, input_shape)", jvp="linear", **_PRIVATE)
def masked_scatter_twice(input, mask, sizes):
    made = np.zeros(sizes, input.dtype)
    chosen = np.broadcast_to(mask, sizes)
    made[chosen] = input.reshape(-1)[: int(chosen.sum())]
    return made
