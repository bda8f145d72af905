"""Adding many values to places that may repeat, in the fastest way NumPy has: on flat arrays."""

from __future__ import annotations

import numpy as np


class Target(np.ndarray):
    """The first argument of an in-place operation whose kernel may write to it, rather than to a copy."""


# The operations whose kernels take their copy from writable(), and whose gradients do not need what is written over.
WRITE_THEMSELVES = frozenset(
    "_index_put index_add index_copy _index_fill _index_fill_tensor _scatter _scatter_value _scatter_combine "
    "_scatter_combine_value scatter_add put".split()
)


def writable(input: np.ndarray) -> np.ndarray:
    """A C-ordered copy that a kernel may write to; a Target itself."""
    return input.view(np.ndarray) if input.__class__ is Target else np.array(input, order="C")


def add_at(flat: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
    """flat[places] += values, counting repeated places each time. All three have one dimension."""
    reduce_at(np.add, flat, places, values)


def reduce_at(ufunc: np.ufunc, flat: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
    """The same for another operation than addition.

    On one-dimensional arrays of one dtype NumPy's ufunc.at takes about 3 ns an element, and with an index of more
    dimensions four times as much: so callers work out flat places first.
    """
    if values.dtype != flat.dtype:
        values = values.astype(flat.dtype)
    ufunc.at(flat, places, values)


def flat_places(shape: tuple[int, ...], dim: int, index: np.ndarray) -> np.ndarray:
    """For an index as gather() has it: where in a C-ordered array of `shape` each of its elements points to."""
    places: np.ndarray = index.astype(np.intp)
    inner = 1
    for size in shape[dim + 1 :]:
        inner *= size
    if inner != 1:
        places *= inner
    step = 1
    for d in range(len(shape) - 1, -1, -1):
        if d != dim and index.shape[d] != 1:
            places = places + (np.arange(index.shape[d]) * step).reshape((-1,) + (1,) * (len(shape) - d - 1))
        step *= shape[d]
    return places
