"""Sizes and dimensions as users give them, brought to plain tuples and checked with PyTorch's errors."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np


def sizes_of(given: tuple) -> tuple:
    """The sizes meant by x.view(2, 3) or x.view((2, 3)), as plain integers."""
    if len(given) == 1:
        only = given[0]
        if only.__class__ is tuple:
            given = only
        elif only.__class__ is not int:
            given = (only,) if hasattr(only, "__index__") and not isinstance(only, (list, tuple)) else tuple(only)
    for one in given:
        if one.__class__ is not int:
            return tuple(plain_int(one) for one in given)
    return given


def plain_int(value: Any) -> int:
    """An integer, or a one-element integer tensor or array; anything else is a TypeError."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"expected an integer (a size or a dimension), but got {type(value).__name__}: {value!r}")
    return value.__index__()


def wrap_dim(dim: Any, ndim: int) -> int:
    """A dimension counted from 0; a 0-dim tensor has dimension 0 and -1 here, as in PyTorch."""
    if dim.__class__ is not int:
        dim = plain_int(dim)
    count = ndim or 1
    if not -count <= dim < count:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})")
    return dim + count if dim < 0 else dim


def wrap_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    """Several dimensions, each once."""
    wrapped = tuple(wrap_dim(dim, ndim) for dim in ((dims,) if hasattr(dims, "__index__") else dims))
    if len(set(wrapped)) != len(wrapped):
        repeated = next(dim for dim in wrapped if wrapped.count(dim) > 1)
        raise RuntimeError(f"dim {repeated} appears multiple times in the list of dims")
    return wrapped


def at_dim(dim: int, item: Any) -> tuple:
    """An index that applies `item` to one dimension. It ends in an Ellipsis, so that even one element stays a view."""
    return (slice(None),) * dim + (item, ...)


def is_expandable(shape: tuple, target: tuple) -> bool:
    """Whether `shape` broadcasts to `target`."""
    leading = len(target) - len(shape)
    return leading >= 0 and all(size in (1, target[leading + i]) for i, size in enumerate(shape))


def broadcast_shape(*shapes: tuple) -> tuple[int, ...]:
    """The shape that all of them broadcast to."""
    result: list[int] = []
    for shape in shapes:
        if len(shape) > len(result):
            result[:0] = [1] * (len(shape) - len(result))
        for i in range(1, len(shape) + 1):
            size = shape[-i]
            if size != 1 and size != result[-i]:
                if result[-i] != 1:
                    raise RuntimeError(
                        "Shape mismatch: objects cannot be broadcast to a single shape: "
                        + ", ".join(str(list(one)) for one in shapes)
                    )
                result[-i] = size
    return tuple(result)


def strided(array: np.ndarray, shape: tuple, strides: tuple, offset: int = 0) -> np.ndarray:
    """A view of the array's memory with other sizes and strides (in bytes), `offset` bytes after its start."""
    if array.flags.forc and offset >= 0:
        # The constructor takes 0.3 us; NumPy's own as_strided, nine times as much.
        try:
            return np.ndarray(shape, array.dtype, array, offset, strides)
        except ValueError:
            pass  # beyond this array, though not beyond the memory that it is a view of
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    if root.flags.forc:
        start = array.__array_interface__["data"][0] + offset - root.__array_interface__["data"][0]
        return np.ndarray(shape, array.dtype, root, start, strides)
    if offset:
        raise NotImplementedError(
            "a strided view that begins elsewhere than its source, of memory that NumPy does not own: clone() the tensor first"
        )
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def numel(shape: tuple) -> int:
    return prod(shape)


def has_overlap(array: np.ndarray) -> bool:
    """Whether the array was expanded: some elements lie at one place in memory."""
    return (
        bool(array.size) and 0 in array.strides and any(not s and n > 1 for s, n in zip(array.strides, array.shape, strict=True))
    )
