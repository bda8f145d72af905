"""Reductions: sums, means, products, extremes, truth tests, and what the other reductions share."""
from __future__ import annotations

from math import prod as product
from typing import Any

import numpy as np

from ..arrays.dtypes import COMPLEX, FLOATING, INTEGER, bool_, category, from_numpy, int64, to_numpy
from ..tensor import Tensor
from .dimensions import wrap_dim, wrap_dims
from .scattering import add_at, flat_places
from .table import PUBLIC, RAW, TENSORS, helper, method, operation, public
from .unpack import type_name

_add: Any = np.add.reduce
_multiply: Any = np.multiply.reduce
_xor: Any = np.bitwise_xor.reduce
_maximum: Any = np.maximum.reduce
_minimum: Any = np.minimum.reduce
_empty = np.empty
_INT64 = int64.numpy
_BOOL = bool_.numpy
_FLOAT32 = np.dtype(np.float32)


# -- dimensions ------------------------------------------------------------------------------------------------------
def axes_of(dim: Any, ndim: int) -> tuple[int, ...]:
    """The axes that a `dim` argument reduces: all of them for None and for an empty list."""
    if dim is None:
        return tuple(range(ndim))
    if not isinstance(dim, (tuple, list)):
        dim = (wrap_dim(dim, ndim),)
    elif not dim:
        return tuple(range(ndim))
    else:
        dim = wrap_dims(dim, ndim)
    return dim if ndim else ()


def count(shape: tuple[int, ...], dim: Any) -> int:
    """How many elements are reduced to one."""
    return product(shape) if dim is None else product(shape[d] for d in axes_of(dim, len(shape)))


def check_not_empty(name: str, input: np.ndarray, dim: Any) -> None:
    """The largest of no elements does not exist."""
    if input.size == 0:
        if dim is None or dim == () or dim == []:
            raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                               "reduction "
                               "dim with the 'dim' argument.")
        for axis in axes_of(dim, input.ndim):
            if input.shape[axis] == 0:
                raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")


# -- results with names ----------------------------------------------------------------------------------------------
class Named(tuple):
    """A tuple of results whose members have names."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def __repr__(self) -> str:
        members = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"torch.return_types.{type(self).__name__}(\n{members})"

    def __reduce__(self) -> tuple:
        return type(self), (tuple(self),)


class ReturnTypes:
    """The classes of named results, by the operation's name."""


return_types = ReturnTypes()
for _place in PUBLIC:
    _place["return_types"] = return_types


def named(name: str, fields: str) -> Any:
    """A class of named results."""
    from operator import itemgetter
    names = tuple(fields.split())
    members = {field: property(itemgetter(i)) for i, field in enumerate(names)}
    made = type(name, (Named,), {"__slots__": (), "_fields": names, "__module__": "torch.return_types", **members})
    setattr(return_types, name, made)
    return made


# -- pieces of gradient formulas -------------------------------------------------------------------------------------
# Up to this many elements a filled array costs no more than a broadcast view (0.4 us against 0.3), and what uses it
# next is 0.5 us faster; beyond, filling costs memory traffic (8 us at 100,000).
_FILLED = 4096


@operation(input="sum_to_size(g, input_shape)", jvp="linear", node="ExpandBackward0", public=False, method=False)
def spread(input, size):
    if product(size) <= _FILLED:
        made = _empty(size, input.dtype)
        made[...] = input
        return made
    return np.broadcast_to(input, size)


@helper
def restore(F: Any, reduced: Any, shape: tuple, dim: Any, keepdim: bool) -> Any:
    """What was reduced from `shape`, with its reduced dimensions again, of size 1."""
    if keepdim or dim is None:  # reduced to no dimension at all it broadcasts as it is
        return reduced
    if dim.__class__ is int and shape:
        whole = (*shape[:dim], 1, *shape[dim + 1:]) if dim != -1 else (*shape[:-1], 1)
    else:
        axes = axes_of(dim, len(shape))
        whole = tuple(1 if d in axes else n for d, n in enumerate(shape))
    # On raw arrays NumPy's own method: the operation's kernel takes 1 us longer.
    return reduced.reshape(whole) if F is RAW else F.reshape(reduced, whole)


@operation(tensors="input result", public=False, method=False)
def ties(input, result, dim, match_nan):
    """The share of the gradient of an extreme that each element gets: elements that tie get equal parts."""
    mask = input == result
    if match_nan and category(input.dtype) >= FLOATING:
        mask |= np.isnan(input) & np.isnan(result)
    shares = mask.astype(input.dtype)
    shares /= _add(mask, axes_of(dim, input.ndim), _INT64, None, True).astype(input.dtype)
    return shares


def along(index: np.ndarray, axis: int) -> tuple:
    """The full index that an index along one axis means. NumPy's take_along_axis does the same, and more checks."""
    ndim = index.ndim
    return tuple([index if d == axis else np.arange(n).reshape((n,) + (1,) * (ndim - 1 - d))
                  for d, n in enumerate(index.shape)])


@operation(input="gather(g, dim, index)", tensors="index", jvp="linear", public=False, method=False)
def place_along(input, dim, index, shape, repeated=False):
    """Zeros of the given shape with each value put at its index along the dimension; `repeated`: added there."""
    made = np.zeros(shape, input.dtype)
    if not shape:
        made[...] = input
        return made
    places = flat_places(shape, wrap_dim(dim, len(shape)), index)
    if repeated:
        add_at(made.reshape(-1), places.reshape(-1), input.reshape(-1))
    else:
        made.reshape(-1)[places] = input
    return made


@helper
def at_index(F: Any, g: Any, shape: tuple, dim: Any, keepdim: bool, index: Any) -> Any:
    """The gradient of a reduction that picked one element of each line."""
    if not shape:
        return g
    return F.place_along(restore(F, g, shape, dim, keepdim), dim, restore(F, index, shape, dim, keepdim), shape)


@helper
def is_complex_like(F: Any, value: Any) -> bool:
    return category(getattr(value, "_array", value).dtype) == COMPLEX


def cut(values: Any, axis: int, start: int, stop: int | None) -> Any:
    """A slice along one axis, of an array or of a tensor."""
    return values[(slice(None),) * axis + (slice(start, stop),)]


# -- sums ------------------------------------------------------------------------------------------------------------
_BLOCKS = 32
_LONG = 256  # from here on it matters in which order float32 numbers are added


def sum_axis(array: np.ndarray, axis: int, keepdims: bool = False) -> np.ndarray:
    """A sum along one axis, with a rounding error that hardly grows with its length.

    NumPy sums pairwise only along the axis that is contiguous in memory. Along another one, 1,000,000 float32 numbers
    came out wrong by 3e-5, in PyTorch by 1e-7. Here 32 long parts are added up, then 32 parts of that, and so on.
    """
    if array.shape[axis] > _LONG and array.strides[axis] != array.itemsize and array.dtype.char in "fF":
        while (length := array.shape[axis]) > _BLOCKS:
            part, rest = divmod(length, _BLOCKS)
            shape = (*array.shape[:axis], _BLOCKS, part, *array.shape[axis + 1:])
            total = _add(cut(array, axis, 0, length - rest).reshape(shape), axis)  # splitting an axis copies nothing
            if rest:
                first = cut(total, axis, 0, 1)
                first += _add(cut(array, axis, length - rest, None), axis, None, None, True)
            array = total
    return _add(array, axis, None, None, keepdims)


def sum_axes(array: np.ndarray, axes: tuple[int, ...], keepdims: bool = False) -> np.ndarray:
    """A sum along several axes, innermost first where rounding errors could add up."""
    if len(axes) == 1:
        return sum_axis(array, axes[0], keepdims)
    run, one_by_one = array.itemsize, 1
    for d in sorted(axes, reverse=True):
        if array.strides[d] == run:
            run *= array.shape[d]  # NumPy takes what lies in one piece for one axis, and sums it pairwise
        else:
            one_by_one *= array.shape[d]
    if one_by_one > 1024 and len(axes) < array.ndim and array.dtype.char in "fF":
        for axis in sorted(axes, reverse=True):
            array = sum_axis(array, axis, keepdims)
        return array
    return _add(array, axes, None, None, keepdims)


def converted(input: np.ndarray, dtype: Any, integers: np.dtype | None = _INT64) -> tuple[np.ndarray, np.dtype]:
    """What to sum, and the dtype of the sum: small floats are summed as float32, integers as int64."""
    if dtype is not None:
        result = to_numpy(dtype)
    elif integers is not None and category(input.dtype) <= INTEGER:
        result = integers
    else:
        result = input.dtype
    wide = _FLOAT32 if result.itemsize == 2 and category(result) == FLOATING else result
    if input.dtype == wide:
        return input, result
    if input.dtype.kind == "c" and wide.kind != "c":
        input = input.real
    return input.astype(wide), result


def finished(made: Any, dtype: np.dtype) -> Any:
    return made if made.dtype == dtype else made.astype(dtype)


def _all_or_dim(name: str) -> Any:
    """The node's name: number 0 where everything is reduced, 1 where a `dim` was given."""
    return lambda kept: f"{name}Backward{0 if kept['dim'] is None and not kept['keepdim'] else 1}"


@operation(input="spread(g if dim is None else restore(g, input_shape, dim, keepdim), input_shape)", jvp="linear",
           node=_all_or_dim("Sum"))
def sum_(input, dim=None, keepdim=False, *, dtype=None):
    if dtype is None and input.dtype.kind == "f" and input.dtype.itemsize > 2:
        # The two common forms. The rest of the function would add 2 us to the 1 us that NumPy takes for a small array.
        if dim is None and not keepdim:
            return _add(input, None)
        if dim.__class__ is int and -input.ndim <= dim < input.ndim and input.shape[dim] <= _LONG:
            return _add(input, dim, None, None, bool(keepdim))
    input, result = converted(input, dtype)
    return finished(sum_axes(input, axes_of(dim, input.ndim), bool(keepdim)), result)


@operation(input="spread((g if dim is None else restore(g, input_shape, dim, keepdim)) / count_of(input_shape, dim), "
                 "input_shape)", jvp="linear", node=_all_or_dim("Mean"))
def mean(input, dim=None, keepdim=False, *, dtype=None):
    if dtype is None and input.dtype.kind == "f" and input.dtype.itemsize > 2:
        if dim is None and not keepdim:
            return _add(input, None) / input.size
        if dim.__class__ is int and -input.ndim <= dim < input.ndim and input.shape[dim] <= _LONG:
            return _add(input, dim, None, None, bool(keepdim)) / input.shape[dim]
    if dtype is None and category(input.dtype) < FLOATING:
        raise RuntimeError("mean(): could not infer output dtype. Input dtype must be either a floating point or "
                           "complex dtype. "
                           f"Got: {type_name(from_numpy(input.dtype).name)}")
    shape = input.shape
    input, result = converted(input, dtype, None)
    if category(result) < FLOATING:
        raise RuntimeError("mean(): could not infer output dtype. Optional dtype must be either a floating point or "
                           "complex "
                           f"dtype. Got: {type_name(from_numpy(result).name)}")
    made = sum_axes(input, axes_of(dim, input.ndim), bool(keepdim))
    return finished(made / made.dtype.type(count(shape, dim)), result)


for _namespace in (RAW, TENSORS):
    _namespace.__dict__["count_of"] = count


@operation(input="where(isnan(input), zeros_of(input), spread(restore(g, input_shape, dim, keepdim), input_shape))",
           node="NansumBackward0")
def nansum(input, dim=None, keepdim=False, *, dtype=None):
    if input.dtype.kind == "c":
        raise RuntimeError("nansum does not support complex inputs")
    if category(input.dtype) >= FLOATING:
        input = np.where(np.isnan(input), input.dtype.type(0), input)
    input, result = converted(input, dtype)
    return finished(sum_axes(input, axes_of(dim, input.ndim), bool(keepdim)), result)


@operation(tensors="input", public=False, method=False)
def zeros_of(input):
    return np.zeros(input.shape, input.dtype)


@public
@method
def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:
    """The mean of the elements that are not nan."""
    if not isinstance(input, Tensor) or category(input._array.dtype) < FLOATING:
        raise RuntimeError("nanmean(): expected input to have floating point or complex dtype but got "
                           f"{type_name(input.dtype.name)}")
    present = TENSORS.sum(TENSORS.logical_not(TENSORS.isnan(input.detach())), dim, keepdim)
    return TENSORS.div(TENSORS.nansum(input, dim, keepdim, dtype=dtype), present, out=out)


# -- products --------------------------------------------------------------------------------------------------------
def _prod_gradient(F: Any, g: Any, input: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    if not input.ndim:
        return g
    shape = input.shape
    whole = restore(F, result, shape, dim, keepdim)
    if not F.any(input == 0):
        return restore(F, g, shape, dim, keepdim) * F.conj(whole / input)
    if dim is None:
        return F.reshape(_others(F, F.reshape(g, (1,)), F.reshape(input, (-1,)), 0), shape)
    return _others(F, restore(F, g, shape, dim, keepdim), input, wrap_dim(dim, len(shape)))


def _others(F: Any, g: Any, input: Any, axis: int) -> Any:
    """Each element's gradient where some are zero: the product of all others, by scans from both ends."""
    if input.shape[axis] == 1:
        return g
    before = cut(F.cumprod(input, axis), axis, 0, -1)
    after = F._flip(cut(F.cumprod(F._flip(input, (axis,)), axis), axis, 0, -1), (axis,))
    ones = F.ones_of(cut(input, axis, 0, 1))
    return g * F.conj(F.cat([ones, before], axis) * F.cat([after, ones], axis))


@operation(tensors="input", public=False, method=False)
def ones_of(input):
    return np.ones(input.shape, input.dtype)


@operation(input=_prod_gradient, node=_all_or_dim("Prod"))
def prod(input, dim=None, keepdim=False, *, dtype=None):
    if isinstance(dim, (tuple, list)):
        raise TypeError("prod(): argument 'dim' must be int, not tuple")
    input, result = converted(input, dtype)
    return finished(_multiply(input, axes_of(dim, input.ndim), None, None, bool(keepdim)), result)


# -- extremes --------------------------------------------------------------------------------------------------------
def extreme(function: Any, name: str, input: np.ndarray, dim: Any, keepdim: bool, inner: str = "") -> Any:
    """The largest or smallest along dimensions; `inner` is PyTorch's name of the operation in what it cannot do."""
    if input.dtype.kind == "c":
        kind = type_name(from_numpy(input.dtype).name)
        raise NotImplementedError(f'"{inner or name}" not implemented for \'{kind}\'')
    check_not_empty(name, input, dim)
    return function(input, axes_of(dim, input.ndim), None, None, bool(keepdim))


_EVENLY = ("restore(g, input_shape, dim, keepdim) * "
           "ties(input, restore(result, input_shape, dim, keepdim), dim, False)")


@operation(input=_EVENLY)
def amax(input, dim=(), keepdim=False):
    return extreme(_maximum, "amax", input, dim, keepdim)


@operation(input=_EVENLY)
def amin(input, dim=(), keepdim=False):
    return extreme(_minimum, "amin", input, dim, keepdim)


@operation(input="g * ties(input, result, None, True)", node="MaxBackward1", public=False, method=False)
def max_all(input):
    return extreme(_maximum, "max", input, None, False, "max_all")


@operation(input="g * ties(input, result, None, True)", node="MinBackward1", public=False, method=False)
def min_all(input):
    return extreme(_minimum, "min", input, None, False, "min_all")


def _aminmax_gradient(F: Any, g0: Any, g1: Any, input: Any, result0: Any, result1: Any, dim: Any, keepdim: bool) -> Any:
    shape = input.shape
    total = None
    for g, result in ((g0, result0), (g1, result1)):
        if g is not None:
            shares = F.ties(input, restore(F, result, shape, dim, keepdim), dim, False)
            part = restore(F, g, shape, dim, keepdim) * shares
            total = part if total is None else total + part
    return total


@operation(input=_aminmax_gradient, outputs="min max", zeros=False, node="AminmaxBackward0", public=False, method=False)
def aminmax_pair(input, dim, keepdim):
    check_not_empty("aminmax", input, dim)
    return (extreme(_minimum, "aminmax", input, dim, keepdim),
            extreme(_maximum, "aminmax", input, dim, keepdim))


def picked(input: np.ndarray, dim: Any, keepdim: bool, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values at indices that have the reduced dimension of size 1, and the indices."""
    axis = wrap_dim(dim, input.ndim)
    values = input[along(place, axis)]
    return (values, place) if keepdim else (values.squeeze(axis), place.squeeze(axis))


def _best_of_lines(function: Any, find: Any, name: str, input: np.ndarray, dim: Any, keepdim: bool) -> tuple[Any, Any]:
    axis = wrap_dim(dim, input.ndim)
    values = extreme(function, name, input, axis, keepdim)
    if not input.ndim:
        return values, np.zeros((), _INT64)
    place = find(input, axis)
    return values, np.expand_dims(place, axis) if keepdim else place


_PICKED = "at_index(g0, input_shape, dim, keepdim, result1)"


@operation(input=_PICKED, outputs="values indices", node="MaxBackward0", public=False, method=False)
def max_dim(input, dim, keepdim):
    return _best_of_lines(_maximum, np.ndarray.argmax, "max", input, dim, keepdim)


@operation(input=_PICKED, outputs="values indices", node="MinBackward0", public=False, method=False)
def min_dim(input, dim, keepdim):
    return _best_of_lines(_minimum, np.ndarray.argmin, "min", input, dim, keepdim)


_max_result = named("max", "values indices")
_min_result = named("min", "values indices")
_aminmax_result = named("aminmax", "min max")


def _best(name: str, made: Any, input: Any, dim: Any, keepdim: bool, axis: Any, keepdims: Any, other: Any,
          out: Any) -> Any:
    """The three forms of max and min: of everything, along a dimension, and of two tensors."""
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if isinstance(dim, Tensor):
        other = dim
    if other is not None:
        return getattr(TENSORS, name + "imum")(input, other, out=out)
    if dim is None:
        return getattr(TENSORS, name + "_all")(input, out=out)
    if isinstance(dim, (tuple, list)):
        raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
    return made(getattr(TENSORS, name + "_dim")(input, dim, keepdim, out=out))


@public
@method
def max(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None, axis: Any = None,
        keepdims: Any = None, out: Any = None) -> Any:
    """The largest element; or along `dim` the largest ones and their indices; or of two tensors."""
    return _best("max", _max_result, input, dim, keepdim, axis, keepdims, other, out)


@public
@method
def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None, axis: Any = None,
        keepdims: Any = None, out: Any = None) -> Any:
    """The smallest element; or along `dim` the smallest ones and their indices; or of two tensors."""
    return _best("min", _min_result, input, dim, keepdim, axis, keepdims, other, out)


@public
@method
def aminmax(input: Any, *, dim: Any = None, keepdim: bool = False, out: Any = None) -> Any:
    """The smallest and the largest, at once."""
    return _aminmax_result(TENSORS.aminmax_pair(input, dim, keepdim, out=out))


def _arg(function: Any, name: str, input: np.ndarray, dim: Any, keepdim: bool) -> Any:
    if input.dtype.kind == "c":
        raise NotImplementedError(f'"{name}_cpu" not implemented for \'{type_name(from_numpy(input.dtype).name)}\'')
    if input.dtype == _BOOL:
        raise RuntimeError(f"{name}(): does not support bool input")
    if dim is not None:
        dim = wrap_dim(dim, input.ndim)
        check_not_empty(name, input, dim)
    elif not input.size:
        raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
    if not input.ndim:
        return np.zeros((), _INT64)
    place = function(input, dim)
    if keepdim:
        return place.reshape([1 if dim is None or d == dim else n for d, n in enumerate(input.shape)])
    return place


@operation(tensors="input")
def argmax(input, dim=None, keepdim=False):
    return _arg(np.ndarray.argmax, "argmax", input, dim, keepdim)


@operation(tensors="input")
def argmin(input, dim=None, keepdim=False):
    return _arg(np.ndarray.argmin, "argmin", input, dim, keepdim)


# -- truth and counting ----------------------------------------------------------------------------------------------
def _truth(function: Any, input: np.ndarray, dim: Any, keepdim: bool) -> Any:
    axes = () if dim == () or dim == [] else axes_of(dim, input.ndim)
    made = function(input != 0 if input.dtype != _BOOL else input, axes, None, None, bool(keepdim))
    return made.astype(np.uint8) if input.dtype == np.uint8 else made


@operation(tensors="input", name="all")
def all_(input, dim=None, keepdim=False):
    return _truth(np.logical_and.reduce, input, dim, keepdim)


@operation(tensors="input", name="any")
def any_(input, dim=None, keepdim=False):
    return _truth(np.logical_or.reduce, input, dim, keepdim)


@operation(tensors="input")
def count_nonzero(input, dim=None):
    return _add(input != 0, axes_of(dim, input.ndim), _INT64)


@operation(tensors="input")
def hash_tensor(input, dim=(), keepdim=False, *, mode=0):
    """The exclusive or of the elements' bits, floating-point numbers being read as float64."""
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    bits = input.astype(np.float64 if category(input.dtype) == FLOATING else _INT64).view(np.uint64)
    return _xor(bits, axes_of(dim, input.ndim), None, None, bool(keepdim))


# -- log of a sum of exponentials ------------------------------------------------------------------------------------
@operation(input="restore(g, input_shape, dim, keepdim) * "
                 "conj(exp(input - restore(result, input_shape, dim, keepdim)))")
def logsumexp(input, dim, keepdim=False):
    if category(input.dtype) < FLOATING:
        from ..arrays.dtypes import default_numpy
        input = input.astype(default_numpy())
    axes = axes_of(dim, input.ndim)
    if input.size:
        largest = _maximum(input.real if category(input.dtype) == COMPLEX else input, axes, None, None, True)
        largest = np.where(np.isfinite(largest), largest, largest.dtype.type(0))
        made = np.log(_add(np.exp(input - largest), axes, None, None, bool(keepdim)))
        return made + (largest if keepdim else largest.squeeze(axes))
    return np.log(_add(np.exp(input), axes, None, None, bool(keepdim)))
