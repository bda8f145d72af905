"""The *_copy forms of view operations, and the unsafe_* divisions: the same elements in memory of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from .dimensions import sizes_of
from .shape import (
    alias,
    expand_array,
    permute_array,
    squeeze_all,
    squeeze_dim,
    squeeze_dims,
    t,
    transpose,
    unsqueeze,
    view_dtype,
    view_sizes,
)
from .slicing import (
    as_strided_array,
    check_narrow,
    check_strided,
    chunk_size,
    diagonal,
    geometry_of,
    select,
    slice_array,
    split_array,
    split_with_sizes_array,
    unbind_array,
    unfold,
)
from .table import TABLE, TENSORS, operation, public


def _copy(source: str, kernel: Callable, name: str | None = None, node: str | None = None, **options: Any) -> None:
    """Register the copying form of the view operation `source`, with its gradient."""
    op = TABLE[source]
    operation(
        **op.formulas,
        outputs=op.outputs,
        jvp="linear",
        name=name or f"{source}_copy",
        node=node or op.node_name({}) + "_copy",
        method=False,
        tensors="" if op.formulas else "input",
        **options,
    )(kernel)


def _all(pieces: tuple) -> tuple:
    return tuple(piece.copy() for piece in pieces)


_PRIVATE: dict[str, Any] = {"public": False}
_copy("alias", lambda input: alias(input).copy())
_copy("t", lambda input: t(input).copy())
_copy("transpose", lambda input, dim0, dim1: transpose(input, dim0, dim1).copy())
_copy("unsqueeze", lambda input, dim: unsqueeze(input, dim).copy())
_copy("select", lambda input, dim, index: select(input, dim, index).copy())
_copy("slice", lambda input, dim=0, start=None, end=None, step=1: slice_array(input, dim, start, end, step).copy())
_copy("diagonal", lambda input, offset=0, dim1=0, dim2=1: diagonal(input, offset, dim1, dim2).copy())
_copy("unfold", lambda input, dimension, size, step: unfold(input, dimension, size, step).copy())
_copy("_unbind", lambda input, dim=0: _all(unbind_array(input, dim)), name="unbind_copy")
_copy("_split", lambda input, split_size, dim=0: _all(split_array(input, split_size, dim)), name="split_copy")
_copy(
    "_split_with_sizes",
    lambda input, split_sizes, dim=0: _all(split_with_sizes_array(input, split_sizes, dim)),
    name="split_with_sizes_copy",
)
_copy(
    "_split",
    lambda input, split_size, dim=0: _all(split_array(input, split_size, dim)),
    name="unsafe_split",
    node="UnsafeSplitBackward0",
)
_copy(
    "_split_with_sizes",
    lambda input, split_sizes, dim=0: _all(split_with_sizes_array(input, split_sizes, dim)),
    name="unsafe_split_with_sizes",
    node="UnsafeSplitWithSizesBackward0",
)
_copy("_view", lambda input, size: view_sizes(input, size).copy(), **_PRIVATE)
_copy("_view_dtype", lambda input, dtype: view_dtype(input, dtype).copy(), **_PRIVATE)
_copy("_expand", lambda input, size: expand_array(input, size).copy(), **_PRIVATE)
_copy("_permute", lambda input, dims: permute_array(input, dims).copy(), **_PRIVATE)
_copy("_squeeze", lambda input: squeeze_all(input).copy(), **_PRIVATE)
_copy("_squeeze_dim", lambda input, dim: squeeze_dim(input, dim).copy(), **_PRIVATE)
_copy("_squeeze_dims", lambda input, dim: squeeze_dims(input, dim).copy(), **_PRIVATE)
_copy(
    "_as_strided",
    lambda input, size, stride, offset, geometry: as_strided_array(input, size, stride, offset, geometry).copy(),
    **_PRIVATE,
)


@operation(input="slice_backward(g, input_shape, dim, start, start + length, 1)", jvp="linear")
def narrow_copy(input, dim, start, length):
    place, begin = check_narrow(input.shape, dim, start, length)
    return slice_array(input, place, begin, begin + length).copy()


@public
def view_copy(input: Tensor, size: Any = None, *, dtype: Any = None) -> Tensor:
    if dtype is not None or not isinstance(size, (tuple, list)):
        return TENSORS._view_dtype_copy(input, size if dtype is None else dtype)
    return TENSORS._view_copy(input, sizes_of((size,)))


@public
def expand_copy(input: Tensor, size: Any, *, implicit: bool = False) -> Tensor:
    return TENSORS._expand_copy(input, sizes_of((size,)))


@public
def permute_copy(input: Tensor, dims: Any) -> Tensor:
    return TENSORS._permute_copy(input, sizes_of((dims,)))


@public
def squeeze_copy(input: Tensor, dim: Any = None) -> Tensor:
    if dim is None:
        return TENSORS._squeeze_copy(input)
    return (
        TENSORS._squeeze_dims_copy(input, tuple(dim)) if isinstance(dim, (tuple, list)) else TENSORS._squeeze_dim_copy(input, dim)
    )


@public
def as_strided_copy(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    sizes, strides = sizes_of((size,)), sizes_of((stride,))
    check_strided(input, sizes, strides, storage_offset)
    own: int = input.storage_offset()  # type: ignore[attr-defined]
    moved = 0 if storage_offset is None else storage_offset - own
    return TENSORS._as_strided_copy(input, sizes, strides, moved, geometry_of(input._array))


@public
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple:
    size = chunk_size(input._shape, chunks, dim)
    return TENSORS.unsafe_split(input, size, dim) if size else TENSORS.unsafe_split_with_sizes(input, (0,) * chunks, dim)


for _name in ("unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk", "narrow_copy"):
    setattr(Tensor, _name, getattr(TENSORS, _name))
