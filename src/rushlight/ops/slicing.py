"""Views of a part of a tensor: select, slice, diagonal, unfold, as_strided; and its division into several."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..tensor import Tensor
from .arithmetic import install
from .dimensions import at_dim, plain_int, sizes_of, strided, wrap_dim
from .quick import Quick, common_real, pieces
from .scattering import add_at
from .table import TABLE, TENSORS, method, operation, public

_PRIVATE = {"public": False, "method": False}


# -- one index, one range --------------------------------------------------------------------------------------------
@operation(input="select_backward(g, input_shape, dim, index)", view=True, jvp="linear")
def select(input, dim, index):
    if not input.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    place = wrap_dim(dim, input.ndim)
    length = input.shape[place]
    if not -length <= index < length:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {place}")
    return input[at_dim(place, index)]


@operation(grad_output="select(g, dim, index)", jvp="linear", **_PRIVATE)
def select_backward(grad_output, input_sizes, dim, index):
    made = np.zeros(input_sizes, grad_output.dtype)
    made[at_dim(dim % len(input_sizes), index)] = grad_output
    return made


@operation(input="slice_backward(g, input_shape, dim, start, end, step)", view=True, jvp="linear", name="slice", **_PRIVATE)
def slice_array(input, dim=0, start=None, end=None, step=1):
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return input[at_dim(wrap_dim(dim, input.ndim), slice(start, end, step))]


@operation(grad_output="slice(g, dim, start, end, step)", jvp="linear", **_PRIVATE)
def slice_backward(grad_output, input_sizes, dim, start, end, step):
    made = np.zeros(input_sizes, grad_output.dtype)
    made[at_dim(dim % len(input_sizes), slice(start, end, step))] = grad_output
    return made


def check_narrow(shape: tuple, dim: Any, start: Any, length: Any) -> tuple[int, int]:
    """The dimension and the start of a narrow(), counted from 0."""
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    place = wrap_dim(dim, len(shape))
    size = shape[place]
    if not -size <= start <= size:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-size}, {size}], but got {start})")
    begin = start + size if start < 0 else start
    if begin + length > size:
        raise RuntimeError(f"start ({begin}) + length ({length}) exceeds dimension size ({size}).")
    return place, begin


@public
@method
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` entries of a dimension, from `start` on."""
    if isinstance(start, Tensor):
        if start._array.dtype.kind not in "iu" or start._shape:
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = int(start)
    place, begin = check_narrow(input._shape, dim, start, length)
    return TENSORS.slice(input, place, begin, begin + length, 1)


# -- diagonals, windows ----------------------------------------------------------------------------------------------
@operation(input="diagonal_backward(g, input_shape, offset, dim1, dim2)", view=True, jvp="linear")
def diagonal(input, offset=0, dim1=0, dim2=1):
    first, second = wrap_dim(dim1, input.ndim), wrap_dim(dim2, input.ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = input.shape[first], input.shape[second]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    rest = [d for d in range(input.ndim) if d not in (first, second)]
    shape = (*(input.shape[d] for d in rest), length)
    strides = (*(input.strides[d] for d in rest), input.strides[first] + input.strides[second])
    start = (offset * input.strides[second] if offset >= 0 else -offset * input.strides[first]) if length else 0
    return strided(input, shape, strides, start) if input.size else np.empty(shape, input.dtype)


@operation(grad_output="diagonal(g, offset, dim1, dim2)", jvp="linear", **_PRIVATE)
def diagonal_backward(grad_output, input_sizes, offset, dim1, dim2):
    made = np.zeros(input_sizes, grad_output.dtype)
    diagonal(made, offset, dim1, dim2)[...] = grad_output
    return made


@operation(input="unfold_backward(g, input_shape, dimension, size, step)", view=True, jvp="linear", public=False)
def unfold(input, dimension, size, step):
    place = wrap_dim(dimension, input.ndim)
    length, pace = (input.shape[place], input.strides[place]) if input.ndim else (1, 0)
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {place} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    shape, strides = [*input.shape, size], [*input.strides, pace or input.itemsize]
    if input.ndim:
        shape[place], strides[place] = (length - size) // step + 1, pace * step
    return strided(input, tuple(shape), tuple(strides)) if input.size else np.empty(shape, input.dtype)


@operation(grad_output="unfold(g, dim, size, step)", jvp="linear", **_PRIVATE)
def unfold_backward(grad_output, input_sizes, dim, size, step):
    made = np.zeros(input_sizes, grad_output.dtype)
    if not input_sizes:
        return made + grad_output.sum()
    place = dim % len(input_sizes)
    windows = unfold(made, dim, size, step)
    if step >= size:  # no window meets another
        windows[...] = grad_output
    else:
        span = (grad_output.shape[place] - 1) * step + 1
        for k in range(size):
            made[at_dim(place, slice(k, k + span, step))] += grad_output[..., k]
    return made


# -- any strides -----------------------------------------------------------------------------------------------------
@operation(
    input="as_strided_backward(g, size, stride, offset, geometry)",
    view=True,
    jvp="linear",
    name="_as_strided",
    **_PRIVATE,
)
def as_strided_array(input, size, stride, offset, geometry):
    """`offset` counts elements from where the input begins; `geometry` is the input's own sizes and strides."""
    item = input.itemsize
    return strided(input, size, tuple(s * item for s in stride), offset * item)


def _positions(size: tuple, stride: tuple, offset: int = 0) -> np.ndarray:
    """Where in memory the elements of such a view lie, counted in elements."""
    places = np.full(size, offset, np.intp)
    for d, (length, step) in enumerate(zip(size, stride, strict=True)):
        places += (np.arange(length) * step).reshape((length,) + (1,) * (len(size) - d - 1))
    return places


def _memory(array: np.ndarray, geometry: tuple, size: tuple, stride: tuple, offset: int) -> tuple[int, np.ndarray]:
    """Memory that holds an array as `geometry` says and has room for the view: its first place, and the memory."""
    source, target = _positions(*geometry), _positions(size, stride, offset)
    low = min([int(p.min()) for p in (source, target) if p.size], default=0)
    memory = np.zeros(max([int(p.max()) for p in (source, target) if p.size], default=0) - low + 1, array.dtype)
    if array.shape == source.shape:
        memory[(source - low).reshape(-1)] = array.reshape(-1)
    return low, memory


@operation(grad_output="as_strided_again(g, size, stride, offset, geometry)", jvp="linear", **_PRIVATE)
def as_strided_backward(grad_output, size, stride, offset, geometry):
    """Each element back to its place in memory, and from there to the input's elements that lie there."""
    low, memory = _memory(np.empty((), grad_output.dtype), geometry, size, stride, offset)
    memory[:] = 0
    add_at(memory, (_positions(size, stride, offset) - low).reshape(-1), grad_output.reshape(-1))
    source = _positions(*geometry) - low
    if source.size and 0 in geometry[1]:  # an expanded input: its elements share what came to their place
        memory = memory / np.maximum(np.bincount(source.reshape(-1), minlength=memory.size), 1)
    return memory[source]


@operation(grad_grad="as_strided_backward(g, size, stride, offset, geometry)", jvp="linear", **_PRIVATE)
def as_strided_again(grad_grad, size, stride, offset, geometry):
    """The same view of an array that lies in memory in its own way: elements are found by where the input had them."""
    low, memory = _memory(grad_grad, geometry, size, stride, offset)
    return memory[_positions(size, stride, offset) - low]


@public
@method
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the memory behind the tensor with any sizes and strides."""
    sizes, strides = sizes_of((size,)), sizes_of((stride,))
    check_strided(input, sizes, strides, storage_offset)
    own: int = input.storage_offset()  # type: ignore[attr-defined]
    offset = own if storage_offset is None else storage_offset
    return TENSORS._as_strided(input, sizes, strides, offset - own, geometry_of(input._array))


def geometry_of(array: np.ndarray) -> tuple:
    return array.shape, tuple(s // array.itemsize for s in array.strides)


def check_strided(input: Tensor, sizes: tuple, strides: tuple, storage_offset: int | None) -> None:
    """Whether such a view stays inside the memory that the tensor and its base have."""
    if len(sizes) != len(strides):
        raise RuntimeError(f"mismatch in length of strides and shape: {list(sizes)} and {list(strides)}")
    if any(s < 0 for s in strides):
        raise RuntimeError("as_strided: Negative strides are not supported at the moment, got strides: " + str(list(strides)))
    base = input._array if input._family is None else input._family.array
    offset: int = input.storage_offset() if storage_offset is None else storage_offset  # type: ignore[attr-defined]
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    item = input._array.itemsize
    span = sum((n - 1) * s for n, s in zip(base.shape, base.strides, strict=True)) + base.itemsize if base.size else 0
    last = offset + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    if prod(sizes) and (last + 1) * item > span:
        raise RuntimeError(
            f"setStorage: sizes {list(sizes)}, strides {list(strides)}, storage offset {offset}, and itemsize {item} "
            f"requiring a storage size of {(last + 1) * item} are out of bounds for storage of size {span}"
        )


# -- several views ---------------------------------------------------------------------------------------------------
@operation(input="stack(gs, dim)", view="multi", outputs=None, jvp="linear", name="_unbind", **_PRIVATE)
def unbind_array(input, dim=0):
    if not input.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    before = (slice(None),) * wrap_dim(dim, input.ndim)
    return tuple(input[(*before, i, ...)] for i in range(input.shape[len(before)]))


_QUICK_UNBIND = Quick(TABLE["_unbind"])


def unbind(input: Tensor, dim: int = 0, *, axis: int | None = None) -> tuple:
    """The slices along a dimension, without it."""
    if axis is not None:
        dim = axis
    if common_real((input,)) is None:
        return TENSORS._unbind(input, dim)
    return pieces(_QUICK_UNBIND, input, unbind_array(input._array, dim), (dim,), (dim,))


install("unbind", unbind, raw=unbind_array)


def _split_array(input: np.ndarray, sizes: Any, dim: int) -> tuple:
    before = (slice(None),) * dim
    made, start = [], 0
    for size in sizes:
        made.append(input[(*before, slice(start, start + size))])
        start += size
    return tuple(made)


def _split_sizes(length: int, split_size: int) -> list[int]:
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    if split_size == 0:
        if length:
            raise RuntimeError("split_size can only be 0 if dimension size is 0, but got dimension size of " + str(length))
        return [0]
    pieces = max((length + split_size - 1) // split_size, 1)
    return [split_size] * (pieces - 1) + [length - split_size * (pieces - 1)]


def split_array(input, split_size, dim=0):
    if not input.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    place = wrap_dim(dim, input.ndim)
    return _split_array(input, _split_sizes(input.shape[place], split_size), place)


def split_with_sizes_array(input, split_sizes, dim=0):
    if not input.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    place = wrap_dim(dim, input.ndim)
    if any(size < 0 for size in split_sizes):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(split_sizes)}"
        )
    if sum(split_sizes) != input.shape[place]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {input.shape[place]} (input tensor's size at "
            f"dimension {dim}), but got split_sizes={list(split_sizes)}"
        )
    return _split_array(input, split_sizes, place)


_multiple = {"input": "cat(gs, dim)", "outputs": None, "jvp": "linear"}
operation(**_multiple, view="multi", name="_split", node="SplitBackward0", **_PRIVATE)(split_array)
operation(**_multiple, view="multi", name="_split_with_sizes", **_PRIVATE)(split_with_sizes_array)
_QUICK_SPLIT, _QUICK_SIZES = Quick(TABLE["_split"]), Quick(TABLE["_split_with_sizes"])


def _split(input: Tensor, size: int, dim: int) -> tuple:
    if common_real((input,)) is None:
        return TENSORS._split(input, size, dim)
    return pieces(_QUICK_SPLIT, input, split_array(input._array, size, dim), (size, dim), (dim,))


@public
@method
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple:
    """Pieces of the given sizes along a dimension."""
    sizes = tuple(plain_int(one) for one in split_sizes)
    if common_real((input,)) is None:
        return TENSORS._split_with_sizes(input, sizes, dim)
    return pieces(_QUICK_SIZES, input, split_with_sizes_array(input._array, sizes, dim), (sizes, dim), (dim,))


@public
@method
def split(tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None) -> tuple:
    """Pieces of one size, or of the sizes given, along a dimension."""
    sections = split_size if split_size_or_sections is None else split_size_or_sections
    if isinstance(sections, (list, tuple)):
        return split_with_sizes(tensor, sections, dim)
    return _split(tensor, plain_int(sections), dim)


def chunk_size(shape: tuple, chunks: int, dim: int) -> int:
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    return -(-shape[wrap_dim(dim, len(shape))] // chunks)


@public
@method
def chunk(input: Tensor, chunks: int, dim: int = 0, *, axis: int | None = None) -> tuple:
    """At most `chunks` pieces of one size, the last perhaps smaller."""
    if axis is not None:
        dim = axis
    size = chunk_size(input._shape, chunks, dim)
    if not size:  # every piece of nothing is empty, and there are as many as were asked for
        return split_with_sizes(input, (0,) * chunks, dim)
    return _split(input, size, dim)


@public
@method
def tensor_split(
    input: Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: Any = None
) -> tuple:
    """So many pieces, nearly equal, or pieces that end at the given indices."""
    given = next((one for one in (indices_or_sections, indices, sections) if one is not None), None)
    shape = input._shape
    if not shape:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    place = wrap_dim(dim, len(shape))
    length = shape[place]
    if isinstance(given, Tensor):
        if given._array.dtype.kind not in "iu" or len(given._shape) > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional "
                f"tensor of dtype long, but got {given.dtype} with {len(given._shape)} dims"
            )
        given = given.tolist()
    if isinstance(given, (list, tuple)):
        bounds = [0, *(plain_int(i) for i in given), length]
    else:
        pieces = plain_int(given)
        if pieces <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {pieces}")
        small, more = divmod(length, pieces)
        bounds = [i * small + min(i, more) for i in range(pieces + 1)]
    return tuple(TENSORS.slice(input, place, start, end, 1) for start, end in zip(bounds, bounds[1:], strict=False))


def _sides(name: str, least: int, dim: int) -> None:
    """hsplit, vsplit, dsplit: tensor_split along a fixed dimension, of equal pieces only."""

    def split_along(
        input: Tensor, indices_or_sections: Any = None, *more: Any, indices: Any = None, sections: Any = None
    ) -> tuple:
        given = next((one for one in (indices_or_sections, indices, sections) if one is not None), None)
        count = len(input._shape)
        if count < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension{'s' if least > 1 else ''}, but got "
                f"a tensor with {count} dimensions!"
            )
        place = 0 if name == "hsplit" and count == 1 else dim
        if more:
            given = (given, *more)
        if isinstance(given, int) and (given <= 0 or input._shape[place] % given):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {place}, but the size of the dimension "
                f"{input._shape[place]} is not divisible by the split_size {given}!"
            )
        return tensor_split(input, given, place)

    split_along.__name__ = split_along.__qualname__ = name
    public(method(split_along))


_sides("hsplit", 1, 1)
_sides("vsplit", 2, 0)
_sides("dsplit", 3, 2)


# -- writing a part into a copy --------------------------------------------------------------------------------------
def _select_scatter_self(F, g, dim, index):
    return F.select_scatter(g, F.constant_like(F.select(g, dim, index), 0), dim, index)


def _embed(name: str, made: np.ndarray, part: np.ndarray, src: np.ndarray) -> np.ndarray:
    """Write `src` into `part`, a view of `made`."""
    if part.shape != src.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = "
            f"{list(part.shape)}"
        )
    part[...] = src
    return made


@operation(input=_select_scatter_self, src="select(g, dim, index)", jvp="linear")
def select_scatter(input, src, dim, index):
    made = np.array(input, order="C")
    return _embed("select_scatter", made, select(made, dim, index), src)


def _slice_scatter_self(F, g, dim, start, end, step):
    return F.slice_scatter(g, F.constant_like(F.slice(g, dim, start, end, step), 0), dim, start, end, step)


@operation(input=_slice_scatter_self, src="slice(g, dim, start, end, step)", jvp="linear")
def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    made = np.array(input, order="C")
    return _embed("slice_scatter", made, slice_array(made, dim, start, end, step), src)


def _diagonal_scatter_self(F, g, offset, dim1, dim2):
    return F.diagonal_scatter(g, F.constant_like(F.diagonal(g, offset, dim1, dim2), 0), offset, dim1, dim2)


@operation(input=_diagonal_scatter_self, src="diagonal(g, offset, dim1, dim2)", jvp="linear")
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    made = np.array(input, order="C")
    return _embed("diagonal_scatter", made, diagonal(made, offset, dim1, dim2), src)


def _as_strided_scatter_self(F, g, size, stride, offset, geometry):
    zeros = F.constant_like(F.as_strided_again(g, size, stride, offset, geometry), 0)
    return F._as_strided_scatter(g, zeros, size, stride, offset, geometry)


@operation(
    input=_as_strided_scatter_self,
    src="as_strided_again(g, size, stride, offset, geometry)",
    jvp="linear",
    name="_as_strided_scatter",
    **_PRIVATE,
)
def as_strided_scatter_array(input, src, size, stride, offset, geometry):
    if src.shape != tuple(size):
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(size)}"
        )
    low, memory = _memory(input, geometry, size, stride, offset)
    memory[(_positions(size, stride, offset) - low).reshape(-1)] = src.reshape(-1)
    return memory[_positions(*geometry) - low]


@public
@method
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    sizes, strides = sizes_of((size,)), sizes_of((stride,))
    check_strided(input, sizes, strides, storage_offset)
    own: int = input.storage_offset()  # type: ignore[attr-defined]
    moved = 0 if storage_offset is None else storage_offset - own
    return TENSORS._as_strided_scatter(input, src, sizes, strides, moved, geometry_of(input._array))
