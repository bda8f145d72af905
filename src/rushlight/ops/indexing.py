"""Indexing by tensors along dimensions: index, index_put, index_select, index_add and their kin; nonzero."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor, wrap
from .arithmetic import install
from .dimensions import at_dim, broadcast_shape, plain_int, wrap_dim
from .quick import Quick, common_real, edges_from, tensor_over
from .scattering import add_at, reduce_at, writable
from .table import TABLE, TENSORS, method, operation, public
from .unpack import type_name

_PRIVATE = {"public": False, "method": False}


# -- the machinery of index tensors ----------------------------------------------------------------------------------
def numpy_index(indices: list[np.ndarray], dims: tuple[int, ...]) -> tuple:
    """The index for NumPy that applies each index array at its dimension."""
    place: list[Any] = []
    width = 0
    for array, dim in zip(indices, dims, strict=True):
        place += [slice(None)] * (dim - width)
        place.append(array)
        width = dim + (array.ndim if array.dtype.kind == "b" else 1)
    return tuple(place)


def check_mask(mask: tuple, shape: tuple, dim: int, number: int) -> None:
    for i, size in enumerate(mask):
        if dim + i >= len(shape) or shape[dim + i] != size:
            raise IndexError(
                f"The shape of the mask {list(mask)} at index {i} does not match the shape of the indexed tensor "
                f"{list(shape)} at index {dim + i}"
            )


def index_error(error: IndexError, indices: list[np.ndarray]) -> IndexError:
    """NumPy's complaint about an index in PyTorch's words."""
    text = str(error)
    if "broadcast" in text:
        shapes = ", ".join(str(list(one.shape)) for one in indices)
        return IndexError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}")
    return IndexError(text.replace("axis", "dimension"))


def flat_positions(shape: tuple, indices: list[np.ndarray], dims: tuple) -> np.ndarray:
    """Where in a C-ordered array the elements lie that numpy_index() picks, in the shape of what it gives."""
    arrays: list[np.ndarray] = []
    places: list[int] = []
    for array, dim in zip(indices, dims, strict=True):
        found = array.nonzero() if array.dtype.kind == "b" else (array,)
        arrays += found
        places += range(dim, dim + len(found))
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * shape[d + 1]
    common = broadcast_shape(*(array.shape for array in arrays))
    adjacent = places == list(range(places[0], places[0] + len(places)))
    front = places[0] if adjacent else 0
    rest = [d for d in range(len(shape)) if d not in places]
    ndim = len(rest) + len(common)
    total: Any = 0
    for array, d in zip(arrays, places, strict=True):
        positive = np.where(array < 0, array + shape[d], array) * strides[d]
        total = total + positive.reshape(
            (1,) * front + (1,) * (len(common) - array.ndim) + array.shape + (1,) * (len(rest) - front)
        )
    for i, d in enumerate(rest):
        out = i if i < front else i + len(common)
        total = total + (np.arange(shape[d]) * strides[d]).reshape((1,) * out + (-1,) + (1,) * (ndim - out - 1))
    return total


@operation(input="_index_backward(g, input_shape, indices, dims)", lists="indices", jvp="linear", name="_index", **_PRIVATE)
def index_array(input, indices, dims):
    try:
        return input[numpy_index(indices, dims)]
    except IndexError as error:
        raise index_error(error, indices) from None


_QUICK_INDEX = Quick(TABLE["_index"])


def index_by(input: Tensor, indices: list[Tensor], dims: tuple) -> Tensor:
    """The elements that index tensors pick."""
    real = common_real((input,))
    if real is None:
        return TENSORS._index(input, indices, dims)
    result = tensor_over(index_array(input._array, [one._array for one in indices], dims), real)
    edges = edges_from((input,))
    if edges is not None:
        result._node = _QUICK_INDEX.node((dims, input._shape), edges, indices)
    return result


@operation(grad_output="_index(g, indices, dims)", lists="indices", jvp="linear", name="_index_backward", **_PRIVATE)
def index_backward(grad_output, input_sizes, indices, dims):
    made = np.zeros(input_sizes, grad_output.dtype)
    if all(one.dtype.kind == "b" for one in indices):  # masks name each place once
        made[numpy_index(indices, dims)] = grad_output
    else:
        add_at(made.reshape(-1), flat_positions(input_sizes, indices, dims).reshape(-1), grad_output.reshape(-1))
    return made


def put_values(target: np.ndarray, indices: list[np.ndarray], dims: tuple, values: np.ndarray) -> None:
    """target[indices] = values, where target may be a view."""
    if values.dtype != target.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{type_name(dtypes.from_numpy(target.dtype).name)} for the destination and "
            f"{type_name(dtypes.from_numpy(values.dtype).name)} for the source."
        )
    place = numpy_index(indices, dims)
    try:
        target[place] = values
    except IndexError as error:
        raise index_error(error, indices) from None
    except ValueError:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
            f"shape {list(target[place].shape)}"
        ) from None


@operation(input="_index_zero(g, indices, dims)", lists="indices", jvp="linear", **_PRIVATE)
def _index_zero(input, indices, dims):
    made = writable(input)
    made[numpy_index(indices, dims)] = 0
    return made


@operation(
    input="g if accumulate else _index_zero(g, indices, dims)",
    values="_index(g, indices, dims)",
    lists="indices",
    inplace=True,
    jvp="linear",
    name="_index_put",
    **_PRIVATE,
)
def index_put_array(input, indices, dims, values, accumulate=False):
    made = writable(input)
    if not accumulate:
        put_values(made, indices, dims, values)
        return made
    if values.dtype != made.dtype:
        put_values(made, indices, dims, values)  # raises
    try:
        shape = made[numpy_index(indices, dims)].shape  # checks the bounds too
        values = np.broadcast_to(values, shape)
    except IndexError as error:
        raise index_error(error, indices) from None
    except ValueError:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
            f"shape {list(shape)}"
        ) from None
    add_at(made.reshape(-1), flat_positions(made.shape, indices, dims).reshape(-1), values.reshape(-1))
    return made


def _split_indices(input: Tensor, indices: Any) -> tuple[list[Tensor], tuple[int, ...]]:
    """A tuple of index tensors as a list, and the dimensions they are for."""
    tensors, dims, dim = [], [], 0
    for number, one in enumerate(indices):
        if not isinstance(one, Tensor):
            raise TypeError(f"expected Tensor as element {number} in argument 0, but got {type(one).__name__}")
        if one._array.dtype == np.uint8:
            one = wrap(one._array.astype(bool))
        if one._array.dtype.kind not in "ib":
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        mask = one._array.dtype.kind == "b"
        if mask:
            check_mask(one._shape, input._shape, dim, number)
        tensors.append(one)
        dims.append(dim)
        dim += len(one._shape) if mask else 1
    if dim > len(input._shape):
        raise IndexError(f"too many indices for tensor of dimension {len(input._shape)} (got {dim})")
    return tensors, tuple(dims)


@public
@method
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with the values written (or added) at the indices."""
    return TENSORS._index_put(input, *_split_indices(input, indices), values, accumulate)


@public
@method
def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    return TENSORS._index_put_(input, *_split_indices(input, indices), values, accumulate)


# -- along one dimension ---------------------------------------------------------------------------------------------
def _check_vector(name: str, index: np.ndarray) -> np.ndarray:
    if index.dtype not in (np.int64, np.int32):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index, got {dtypes.from_numpy(index.dtype).name}")
    if index.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim}")
    return index.reshape(-1)


def _check_bounds(index: np.ndarray, length: int) -> None:
    if index.size and (index.min() < 0 or index.max() >= length):
        raise IndexError(
            f"index out of range in self: indices from {index.min()} to {index.max()} for a dimension of size {length}"
        )


@operation(tensors="index", input="index_select_backward(g, input_shape, dim, index)", jvp="linear")
def index_select(input, dim, index):
    place = wrap_dim(dim, input.ndim)
    index = _check_vector("index_select", index)
    _check_bounds(index, input.shape[place] if input.ndim else 1)
    return input.take(index, place) if input.ndim else input.reshape(1).take(index).reshape(())


@operation(tensors="index", grad_output="index_select(g, dim, index)", jvp="linear", **_PRIVATE)
def index_select_backward(grad_output, input_sizes, dim, index):
    made = np.zeros(input_sizes, grad_output.dtype)
    combine_along(np.add, made, dim, index, grad_output)
    return made


def combine_along(ufunc: np.ufunc, target: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray) -> None:
    """target[.., index, ..] = ufunc(.., source) along a dimension of a C-ordered array, for each index."""
    shape = target.shape or (1,)
    place = dim % len(shape)
    source = source.reshape(shape[:place] + (-1,) + shape[place + 1 :]) if source.size else source
    reduce_at(ufunc, target.reshape(-1), flat_positions(shape, [index.reshape(-1)], (place,)).reshape(-1), source.reshape(-1))


def _check_source(name: str, input: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray) -> tuple[int, np.ndarray]:
    place = wrap_dim(dim, input.ndim)
    index = _check_vector(name, index)
    if input.dtype != source.dtype:
        raise RuntimeError(
            f"{name}(): self ({type_name(dtypes.from_numpy(input.dtype).name)}) and source "
            f"({type_name(dtypes.from_numpy(source.dtype).name)}) must have the same scalar type"
        )
    if place < source.ndim and index.size != source.shape[place] or not source.ndim and index.size != 1:
        raise RuntimeError(
            f"{name}(): Number of indices ({index.size}) should be equal to source.size(dim): "
            f"({source.shape[place] if source.ndim else 1}), for dim: {place}"
        )
    if (
        source.ndim
        and input.ndim
        and (
            source.ndim != input.ndim
            or any(a != b for d, (a, b) in enumerate(zip(input.shape, source.shape, strict=True)) if d != place)
        )
    ):
        raise RuntimeError(
            f"{name}(): source tensor shape must match self tensor shape, excluding the specified dimension. Got "
            f"self.shape = {list(input.shape)} source.shape = {list(source.shape)}"
        )
    return place, index


def _index_add_source(F, g, dim, index, source, alpha):
    picked = F.reshape(F.index_select(g, dim, index), source.shape)
    return picked if alpha == 1 else picked * alpha


@operation(tensors="index", input="g", source=_index_add_source, inplace=True, jvp="linear")
def index_add(input, dim, index, source, *, alpha=1):
    place, index = _check_source("index_add_", input, dim, index, source)
    if index.size and (index.min() < 0 or index.max() >= (input.shape[place] if input.ndim else 1)):
        raise IndexError("index out of range in self")
    made = writable(input)
    combine_along(np.add, made, place, index, source if alpha == 1 else np.multiply(source, alpha, dtype=source.dtype))
    return made


def _index_copy_source(F, g, dim, index, source):
    return F.reshape(F.index_select(g, dim, index), source.shape)


@operation(tensors="index", input="index_fill(g, dim, index, 0)", source=_index_copy_source, inplace=True, jvp="linear")
def index_copy(input, dim, index, source):
    place = wrap_dim(dim, input.ndim)
    if index.dtype != np.int64:
        raise RuntimeError(
            f"index_copy_(): Expected a long tensor for index, but got {type_name(dtypes.from_numpy(index.dtype).name)}"
        )
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    index = index.reshape(-1)
    if source.dtype != input.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{type_name(dtypes.from_numpy(input.dtype).name)} and (source) "
            f"{type_name(dtypes.from_numpy(source.dtype).name)}"
        )
    if not source.ndim and index.size != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {index.size})")
    if source.ndim != input.ndim and source.ndim and input.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({source.ndim}), destination dimensionality ({input.ndim})"
        )
    if source.ndim and index.size != source.shape[place]:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) ({source.shape[place]})"
        )
    length = input.shape[place] if input.ndim else 1
    if index.size and (index.min() < -length or index.max() >= length):
        raise IndexError(
            f"index_copy_(): index {index[(index < -length) | (index >= length)][0]} is out of bounds for dimension "
            f"{place} with size {length}"
        )
    made = writable(input)
    whole = made if made.ndim else made.reshape(1)
    wanted = whole.shape[:place] + (index.size,) + whole.shape[place + 1 :]
    if source.size != np.prod(wanted) or (source.ndim and input.ndim and source.shape != wanted):
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{list(input.shape)} at dimension {place} and source slice shape: {list(source.shape)} at dimension 0."
        )
    whole[at_dim(place, index)] = source.reshape(wanted)
    return made


def _filled(input: np.ndarray, dim: int, index: np.ndarray, value: Any) -> np.ndarray:
    place = wrap_dim(dim, input.ndim)
    if index.dtype not in (np.int64, np.int32):
        raise IndexError(f"index_fill_(): Expected dtype int64 for index, got {dtypes.from_numpy(index.dtype).name}")
    if index.ndim > 1:
        raise IndexError(f"Index has to be a vector/scalar, but got dim: {index.ndim}")
    made = writable(input)
    whole = made if made.ndim else made.reshape(1)
    if isinstance(value, complex) and made.dtype.kind != "c":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    try:
        whole[at_dim(place, index.reshape(-1))] = value
    except IndexError as error:
        raise index_error(error, [index]) from None
    return made


@operation(
    tensors="index",
    input="index_fill(g, dim, index, 0)",
    inplace=True,
    name="_index_fill",
    node="IndexFillBackward0",
    **_PRIVATE,
)
def index_fill_number(input, dim, index, value):
    return _filled(input, dim, index, value)


@operation(tensors="index", **_PRIVATE)
def unique_index(index):
    """Each index once: a number written twice to one place counts once."""
    return np.unique(index)


@operation(
    tensors="index",
    input="index_fill(g, dim, index, 0)",
    value="sum(index_select(g, dim, unique_index(index)))",
    jvp="linear",
    inplace=True,
    name="_index_fill_tensor",
    node="IndexFillBackward1",
    **_PRIVATE,
)
def index_fill_tensor(input, dim, index, value):
    if value.ndim:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    return _filled(input, dim, index, value)


def _index_fill_form(value: Any) -> str:
    return "_index_fill_tensor" if isinstance(value, Tensor) else "_index_fill"


def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    return getattr(TENSORS, _index_fill_form(value))(input, dim, index, value)


@method
def index_fill_(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    return getattr(TENSORS, _index_fill_form(value) + "_")(self, dim, index, value)


install("index_fill", index_fill, raw=index_fill_number)


# -- where things are ------------------------------------------------------------------------------------------------
@public
@method
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """The indices of the elements that are not zero: a row for each, or a tuple of index tensors."""
    array = input._array
    if as_tuple:
        return tuple(wrap(one.astype(np.int64, copy=False)) for one in (array.reshape(1) if not array.ndim else array).nonzero())
    found = np.argwhere(array).astype(np.int64, copy=False) if array.ndim else np.empty((int(bool(array)), 0), np.int64)
    if out is not None:
        from .apply import write_out

        write_out("nonzero", out, found)
        return out
    return wrap(found)


@public
@method
def argwhere(input: Tensor) -> Tensor:
    return nonzero(input)


@public
@method
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """nonzero() with a fixed number of rows."""
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, but got {size}")
    found = nonzero(input)._array[:size]
    made = np.full((size, len(input._shape)), fill_value, np.int64)
    made[: len(found)] = found
    return wrap(made)


@public
def unravel_index(indices: Tensor, shape: Any) -> tuple:
    """The coordinates that flat indices stand for."""
    if not isinstance(indices, Tensor) or indices._array.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {getattr(indices, 'dtype', type(indices).__name__)}")
    sizes = (plain_int(shape),) if hasattr(shape, "__index__") else tuple(shape)
    for size in sizes:
        if not hasattr(size, "__index__"):
            raise ValueError(f"expected 'shape' sequence to contain only ints, but got {sizes}")
        if size < 0:
            raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    array = indices._array
    coordinates, rest = [], array
    for size in sizes[::-1]:
        coordinates.append(wrap(np.mod(rest, size).astype(array.dtype)))
        rest = rest // size
    return tuple(coordinates[::-1])
