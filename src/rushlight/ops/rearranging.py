"""Elements in another order, several times, or on a diagonal: flip, roll, repeat, tril, diag, pixel_shuffle."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor, wrap
from .dimensions import plain_int, sizes_of, wrap_dim, wrap_dims
from .slicing import diagonal
from .table import TENSORS, method, operation, public

_PRIVATE = {"public": False, "method": False}


# -- turned and shifted ----------------------------------------------------------------------------------------------
@operation(input="_flip(g, dims)", jvp="linear", name="_flip", **_PRIVATE)
def flip_array(input, dims):
    places = wrap_dims(dims, input.ndim)
    turned = tuple(slice(None, None, -1) if d in places else slice(None) for d in range(input.ndim))
    return input[turned].copy()


@public
@method
def flip(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """The order of the elements reversed along dimensions."""
    return TENSORS._flip(input, sizes_of(order if dims is None else (dims,)))


@public
@method
def fliplr(input: Tensor) -> Tensor:
    if len(input._shape) < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return TENSORS._flip(input, (1,))


@public
@method
def flipud(input: Tensor) -> Tensor:
    if not input._shape:
        raise RuntimeError("Input must be >= 1-d.")
    return TENSORS._flip(input, (0,))


def _roll_formula(F, g, shifts, dims):
    return F.roll(g, tuple(-s for s in shifts) if isinstance(shifts, (tuple, list)) else -shifts, dims)


@operation(input=_roll_formula, jvp="linear")
def roll(input, shifts, dims=()):
    shifts = sizes_of((shifts,))
    dims = sizes_of((dims,))
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not dims and len(shifts) == 1:
        return np.roll(input, shifts[0])
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if not input.ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    return np.roll(input, shifts, tuple(wrap_dim(d, input.ndim) for d in dims))


@operation(input="rot90(g, -k, dims)", jvp="linear")
def rot90(input, k=1, dims=(0, 1)):
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == input.ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    return np.rot90(input, k, (wrap_dim(dims[0], input.ndim), wrap_dim(dims[1], input.ndim))).copy()


# -- repeated --------------------------------------------------------------------------------------------------------
def _repeat_formula(F, g, input_shape, repeats):
    leading = len(repeats) - len(input_shape)
    split: list[int] = []
    summed = []
    for i, times in enumerate(repeats):
        size = input_shape[i - leading] if i >= leading else 1
        summed.append(len(split))
        split += [times, size]
    total = F.sum(F.reshape(g, tuple(split)), tuple(summed), False)
    return F.reshape(total, input_shape)


@operation(input=_repeat_formula, jvp="linear", name="_repeat", **_PRIVATE)
def repeat_array(input, repeats):
    if len(repeats) < input.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if any(r < 0 for r in repeats):
        raise RuntimeError(f"Trying to create tensor with negative dimension: repeats {list(repeats)}")
    return np.tile(input, repeats) if repeats else input.copy()


@method
def repeat(self: Tensor, *times: Any, repeats: Any = None) -> Tensor:
    """The tensor several times over along each dimension."""
    return TENSORS._repeat(self, sizes_of(times if repeats is None else (repeats,)))


@public
@method
def tile(input: Tensor, *times: Any, dims: Any = None) -> Tensor:
    given = sizes_of(times if dims is None else (dims,))
    return TENSORS._repeat(input, (1,) * (len(input._shape) - len(given)) + given)


@public
@method
def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Each element several times in a row."""
    if repeats is None:  # input says how often each number from 0 on comes
        return wrap(np.repeat(np.arange(input._shape[0]), _checked_repeats(input._array, input._shape[0])))
    counts = repeats._array if isinstance(repeats, Tensor) else repeats
    if dim is None:
        input, dim = TENSORS.flatten(input), 0
    shape = input._shape
    place = wrap_dim(dim, len(shape))
    length = shape[place] if shape else 1
    if isinstance(counts, np.ndarray) and counts.size != 1:
        index = np.repeat(np.arange(length), _checked_repeats(counts, length))
        if output_size is not None and index.size != output_size:
            raise RuntimeError(f"allocated size does not match required size: {output_size} and {index.size}")
        return TENSORS.index_select(input, place, wrap(index))
    times = plain_int(counts.reshape(()).item() if isinstance(counts, np.ndarray) else counts)
    if times < 0:
        raise RuntimeError("Repeats must be non-negative")
    if not shape:
        input, shape = TENSORS.unsqueeze(input, 0), (1,)
    wide = TENSORS.expand(TENSORS.unsqueeze(input, place + 1), (*shape[: place + 1], times, *shape[place + 1 :]))
    return TENSORS.reshape(TENSORS.clone(wide), (*shape[:place], length * times, *shape[place + 1 :]))


def _checked_repeats(counts: np.ndarray, length: int) -> np.ndarray:
    if counts.dtype.kind not in "iu":
        raise RuntimeError("repeats has to be Long or Int tensor")
    if counts.ndim > 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if counts.size != length:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {counts.size} and "
            f"input.size(dim) = {length}"
        )
    if (counts < 0).any():
        raise RuntimeError("repeats can not be negative")
    return counts


# -- triangles and diagonals -----------------------------------------------------------------------------------------
def _triangle(input: np.ndarray, diagonal: int, name: str) -> np.ndarray:
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    mask = np.tri(input.shape[-2], input.shape[-1], diagonal if name == "tril" else diagonal - 1, bool)
    return np.where(mask if name == "tril" else ~mask, input, np.zeros((), input.dtype))


@operation(input="tril(g, diagonal)", jvp="linear", inplace=True)
def tril(input, diagonal=0):
    return _triangle(input, diagonal, "tril")


@operation(input="triu(g, diagonal)", jvp="linear", inplace=True)
def triu(input, diagonal=0):
    return _triangle(input, diagonal, "triu")


def _triangle_indices(lower: bool, row: int, col: int, offset: int, dtype: Any, device: Any) -> Tensor:
    if row < 0 or col < 0:
        raise RuntimeError(f"{'row' if row < 0 else 'col'} must be non-negative, got{row if row < 0 else col}")
    if device is not None:
        from ..arrays.devices import require_cpu

        require_cpu(device)
    mask = np.tri(row, col, offset if lower else offset - 1, bool)
    found = np.stack(np.nonzero(mask if lower else ~mask))
    return wrap(found.astype(np.int64 if dtype is None else dtypes.to_numpy(dtype)))


@public
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None) -> Tensor:
    return _triangle_indices(True, row, col, offset, dtype, device)


@public
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None) -> Tensor:
    return _triangle_indices(False, row, col, offset, dtype, device)


@operation(input="diagonal(g, offset, dim1, dim2)", jvp="linear")
def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    count = input.ndim + 1
    first, second = wrap_dim(dim1, count), wrap_dim(dim2, count)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    side = (input.shape[-1] if input.ndim else 1) + abs(offset)
    shape = list(input.shape[:-1])
    for d in sorted((first, second)):
        shape.insert(d, side)
    made = np.zeros(shape, input.dtype)
    diagonal(made, offset, first, second)[...] = input
    return made


@public
@method
def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """A vector as a diagonal matrix, or a matrix's diagonal as a vector."""
    count = len(input._shape)
    if count == 1:
        return TENSORS.diag_embed(input, diagonal, out=out)
    if count != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {count}D")
    return TENSORS.diagonal_copy(input, diagonal, out=out)


@public
@method
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    return TENSORS.diag_embed(TENSORS._view(input.contiguous(), (-1,)), offset)  # type: ignore[attr-defined]


def _trace_formula(F, g, input_shape):
    return F.diagonal_backward(F.expand(F.reshape(g, (1,)), (min(input_shape),)), input_shape, 0, 0, 1)


@operation(input=_trace_formula, jvp="linear")
def trace(input):
    if input.ndim != 2:
        raise RuntimeError("trace: expected a matrix, but got tensor with dim " + str(input.ndim))
    return input.trace(dtype=np.int64 if input.dtype.kind in "iub" else input.dtype)


# -- images ----------------------------------------------------------------------------------------------------------
def _check_image(name: str, input: np.ndarray, factor: int, factor_name: str) -> None:
    if input.ndim < 3:
        raise RuntimeError(f"{name} expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)")
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {factor_name}, but got {factor}")


@operation(input="pixel_unshuffle(g, upscale_factor)", jvp="linear", method=False)
def pixel_shuffle(input, upscale_factor):
    _check_image("pixel_shuffle", input, upscale_factor, "upscale_factor")
    *batch, channels, height, width = input.shape
    r = upscale_factor
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    parts = input.reshape(prod(batch), channels // (r * r), r, r, height, width).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(*batch, channels // (r * r), height * r, width * r)


@operation(input="pixel_shuffle(g, downscale_factor)", jvp="linear", method=False)
def pixel_unshuffle(input, downscale_factor):
    _check_image("pixel_unshuffle", input, downscale_factor, "downscale_factor")
    *batch, channels, height, width = input.shape
    r = downscale_factor
    if height % r or width % r:
        which, size = ("height", height) if height % r else ("width", width)
        raise RuntimeError(
            f"pixel_unshuffle expects {which} to be divisible by downscale_factor, but input.size(-"
            f"{2 if which == 'height' else 1})={size} is not divisible by {r}"
        )
    parts = input.reshape(prod(batch), channels, height // r, r, width // r, r).transpose(0, 1, 3, 5, 2, 4)
    return parts.reshape(*batch, channels * r * r, height // r, width // r)


@operation(input="channel_shuffle(g, input_shape[1] // groups)", jvp="linear", method=False)
def channel_shuffle(input, groups):
    if input.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    batch, channels, *rest = input.shape
    if channels % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups.")
    parts = input.reshape(batch, groups, channels // groups, *rest).swapaxes(1, 2)
    return parts.reshape(input.shape)
