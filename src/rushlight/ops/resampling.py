"""Resampling: interpolation to other sizes, and sampling at the points of a grid."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor
from .arithmetic import no_derivative
from .convolution import Sizes
from .matrix import is_short
from .pooling import segment_sums
from .table import operation
from .unpack import type_name

_PRIVATE: dict[str, Any] = {"public": False, "method": False}
Taps = tuple[np.ndarray, np.ndarray | None]  # for each place of the result: where it reads, and with which weights


# -- interpolation ---------------------------------------------------------------------------------------------------
# Interpolation is done dimension by dimension. Each has taps: an array of places (count, taps) that rise from row to row,
# and weights of the same shape; None for the nearest neighbour, whose only weight is 1.
def _scale(size: int, count: int, align_corners: bool, factor: float | None, kind: Any) -> Any:
    """How far apart, in the source, neighbours of the result are; computed in the precision PyTorch uses, for its rounding."""
    if align_corners:
        return kind(size - 1) / kind(count - 1) if count > 1 else kind(0)
    return kind(1.0 / factor) if factor is not None and factor > 0 else kind(size) / kind(count)


def nearest_taps(size: int, count: int, factor: float | None, exact: bool) -> Taps:
    number = np.arange(count)
    if count == size:
        found = number
    elif count == 2 * size:
        found = number >> 1
    else:
        scale = _scale(size, count, False, factor, np.float32)
        middle = np.float32(0.5) if exact else np.float32(0)
        found = np.minimum(np.floor((number.astype(np.float32) + middle) * scale).astype(np.int64), size - 1)
    return found[:, None], None


def _source(size: int, count: int, align_corners: bool, factor: float | None, kind: Any, cubic: bool) -> tuple[Any, Any]:
    """The place before each point, and how far behind it the point lies."""
    number = np.arange(count).astype(kind)
    scale = _scale(size, count, align_corners, factor, kind)
    point = number * scale if align_corners else (number + kind(0.5)) * scale - kind(0.5)
    if not cubic:
        point = np.maximum(point, kind(0))
    low = np.minimum(np.floor(point).astype(np.int64), size - 1)
    return low, np.clip(point - low.astype(kind), 0, 1)


def linear_taps(size: int, count: int, align_corners: bool, factor: float | None, kind: Any) -> Taps:
    if size == count:
        low, share = np.arange(count), np.zeros(count, kind)
    else:
        low, share = _source(size, count, align_corners, factor, kind, False)
    high = np.minimum(low + 1, size - 1) if size != count else low
    return np.stack((low, high), 1), np.stack((1 - share, share), 1)


def _cubic(distance: np.ndarray, sharpness: float) -> np.ndarray:
    """The cubic convolution kernel."""
    x = np.abs(distance)
    near = ((sharpness + 2) * x - (sharpness + 3)) * x * x + 1
    far = ((sharpness * x - 5 * sharpness) * x + 8 * sharpness) * x - 4 * sharpness
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def cubic_taps(size: int, count: int, align_corners: bool, factor: float | None, kind: Any) -> Taps:
    low, share = _source(size, count, align_corners, factor, kind, True)
    around = np.arange(-1, 3)
    found = np.clip(low[:, None] + around, 0, size - 1)
    return found, _cubic(share[:, None] - around, -0.75).astype(kind)


def antialias_taps(size: int, count: int, align_corners: bool, factor: float | None, kind: Any, cubic: bool) -> Taps:
    """Where the result is smaller, the kernel is stretched to cover all that lies between its points."""
    scale = float(_scale(size, count, align_corners, factor, kind))
    stretch = max(scale, 1.0)
    reach = (2 if cubic else 1) * stretch
    center = scale * (np.arange(count) + 0.5)
    low = np.maximum((center - reach + 0.5).astype(np.int64), 0)
    high = np.minimum((center + reach + 0.5).astype(np.int64), size)
    place = low[:, None] + np.arange(int((high - low).max(initial=1)))
    distance = (place - center[:, None] + 0.5) / stretch
    weight = _cubic(distance, -0.5) if cubic else np.maximum(1 - np.abs(distance), 0)
    weight = np.where(place < high[:, None], weight, 0)
    return np.minimum(place, size - 1), (weight / weight.sum(1, keepdims=True)).astype(kind)


def _along(values: np.ndarray, ndim: int, axis: int) -> np.ndarray:
    """One number for each place of an axis, to multiply with."""
    return values.reshape(-1, *[1] * (ndim - axis - 1))


def _gathered(array: np.ndarray, taps: Taps, axis: int) -> np.ndarray:
    found, weights = taps
    if weights is None:
        return array.take(found[:, 0], axis)
    total: Any = None
    for column in range(found.shape[1]):
        part = array.take(found[:, column], axis) * _along(weights[:, column], array.ndim, axis).astype(array.dtype)
        total = part if total is None else np.add(total, part, out=total)
    return total


def _scattered(array: np.ndarray, taps: Taps, size: int, axis: int) -> np.ndarray:
    found, weights = taps
    made = np.zeros((*array.shape[:axis], size, *array.shape[axis + 1:]), array.dtype)
    for column in range(found.shape[1]):
        target = found[:, column]
        part = array if weights is None else array * _along(weights[:, column], array.ndim, axis).astype(array.dtype)
        # Equal targets are neighbours, since they rise: their numbers are summed as a stretch.
        starts = np.flatnonzero(np.diff(target, prepend=-1))
        ends = np.append(starts[1:], len(target))
        made[(slice(None),) * axis + (target[starts],)] += segment_sums(part, starts, ends, axis)
    return made


@operation(input="_resample_backward(g, taps, input_shape, name)", jvp="linear", node=lambda kept: f"{kept['name']}Backward0",
           **_PRIVATE)
def _resample(input, taps, name):
    """`taps` has an entry for each of the last dimensions; `name` is the operation's in PyTorch."""
    made = input.astype(np.float32) if is_short(input.dtype) else input
    for axis, one in enumerate(taps, input.ndim - len(taps)):
        made = _gathered(made, one, axis)
    return made.astype(input.dtype, copy=False)


@operation(grad_output="_resample(g, taps, name)", jvp="linear", node=lambda kept: f"{kept['name']}BackwardBackward0", **_PRIVATE)
def _resample_backward(grad_output, taps, shape, name):
    made = grad_output.astype(np.float32) if is_short(grad_output.dtype) else grad_output
    for axis, one in enumerate(taps, made.ndim - len(taps)):
        made = _scattered(made, one, shape[axis], axis)
    return made.astype(grad_output.dtype, copy=False)


# -- sampling at a grid ----------------------------------------------------------------------------------------------
def _reflected(x: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Points mirrored into a stretch as often as it takes, and the sign their slope gets."""
    span = high - low
    if span == 0:
        return np.zeros_like(x), np.zeros_like(x)
    away = np.abs(x - low)
    turns, rest = np.divmod(away, span)
    back = turns % 2 == 1
    return np.where(back, high - rest, low + rest), np.where((x < low) != back, -1, 1).astype(x.dtype)


def _unnormalised(x: np.ndarray, size: int, padding_mode: str, align_corners: bool, clip: bool = True
                  ) -> tuple[np.ndarray, np.ndarray]:
    """Grid coordinates, from -1 to 1, as places along a dimension, and the slope of that map."""
    kind = x.dtype.type
    if align_corners:
        place, slope = (x + 1) / 2 * kind(size - 1), np.full_like(x, (size - 1) / 2)
    else:
        place, slope = ((x + 1) * kind(size) - 1) / 2, np.full_like(x, size / 2)
    return _kept_inside(place, slope, size, padding_mode, align_corners) if clip else (place, slope)


def _kept_inside(place: np.ndarray, slope: np.ndarray, size: int, padding_mode: str, align_corners: bool
                 ) -> tuple[np.ndarray, np.ndarray]:
    if padding_mode == "reflection":
        place, sign = _reflected(place, 0, size - 1) if align_corners else _reflected(place, -0.5, size - 0.5)
        slope = slope * sign
    if padding_mode in ("border", "reflection"):
        # Nothing moves along the border itself; nan stands at 0.
        slope = np.where((place > 0) & (place < size - 1), slope, 0)
        place = np.clip(np.where(np.isnan(place), 0, place), 0, size - 1)
    else:
        place = np.where(np.isfinite(place), place, -100)  # far outside
    return place, slope


def _sampling(shape: Sizes, grid: np.ndarray, mode: str, padding_mode: str, align_corners: bool
              ) -> tuple[list[list[np.ndarray]], list[list[np.ndarray]], list[list[np.ndarray]]]:
    """For each dimension and each tap along it: the places read, their weights, and the weights' slopes in the grid."""
    indices, weights, slopes = [], [], []
    for axis, size in enumerate(shape):
        x = grid[..., len(shape) - 1 - axis]  # the grid's first coordinate is along the last dimension
        place, slope = _unnormalised(x, size, padding_mode, align_corners, mode != "bicubic")
        if mode == "nearest":
            indices.append([np.rint(place).astype(np.int64)])
            weights.append([np.ones_like(x)])
            slopes.append([np.zeros_like(x)])
        elif mode == "bilinear":
            low = np.floor(place)
            share = place - low
            indices.append([low.astype(np.int64), low.astype(np.int64) + 1])
            weights.append([1 - share, share])
            slopes.append([-slope, slope])
        else:
            place = np.where(np.isfinite(place), place, -100)
            low = np.floor(place)
            distances = [place - low - at for at in range(-1, 3)]
            taps = [_kept_inside(low + at, slope, size, padding_mode, align_corners)[0] for at in range(-1, 3)]
            indices.append([tap.astype(np.int64) for tap in taps])
            weights.append([_cubic(distance, -0.75) for distance in distances])
            slopes.append([_cubic_slope(distance, -0.75) * slope for distance in distances])
    return indices, weights, slopes


def _cubic_slope(distance: np.ndarray, sharpness: float) -> np.ndarray:
    x = np.abs(distance)
    near = (3 * (sharpness + 2) * x - 2 * (sharpness + 3)) * x
    far = (3 * sharpness * x - 10 * sharpness) * x + 8 * sharpness
    return np.where(x <= 1, near, np.where(x < 2, far, 0)) * np.sign(distance)


def _corners(shape: Sizes, indices: list[list[np.ndarray]]) -> Any:
    """Every choice of one tap for each dimension: the choice, the flat place, and whether it is inside."""
    for choice in product(*(range(len(taps)) for taps in indices)):
        flat: Any = 0
        inside: Any = True
        for taps, tap, size in zip(indices, choice, shape, strict=True):
            index = taps[tap]
            inside = inside & (index >= 0) & (index < size)
            flat = flat * size + np.clip(index, 0, size - 1)
        yield choice, flat, inside


def _weight_of(choice: Sizes, weights: list[list[np.ndarray]]) -> np.ndarray:
    total = weights[0][choice[0]]
    for axis in range(1, len(choice)):
        total = total * weights[axis][choice[axis]]
    return total


def _grid_gradients(F, needs, g, input, input_shape, grid, mode, padding_mode, align_corners):
    options = (mode, padding_mode, align_corners)
    return (F._grid_sample_input(g, grid, input_shape, *options) if needs[0] else None,
            F._grid_sample_grid(g, input, grid, *options) if needs[1] else None)


@operation(together=_grid_gradients, differentiable="input grid", name="_grid_sample",
           node=lambda kept: f"GridSampler{len(kept['input_shape']) - 2}DBackward0", **_PRIVATE)
def grid_sample(input, grid, mode, padding_mode, align_corners):
    shape = input.shape[2:]
    indices, weights, _ = _sampling(shape, grid, mode, padding_mode, align_corners)
    flat_input = input.reshape(*input.shape[:2], -1)
    total = np.zeros((*input.shape[:2], *grid.shape[1:-1]), input.dtype)
    for choice, flat, inside in _corners(shape, indices):
        total += _read(flat_input, flat, inside) * _weight_of(choice, weights)[:, None]
    return total


def _read(flat_input: np.ndarray, flat: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """(N, C, *points): what the input has at the places, zero outside."""
    count = len(flat_input)
    found = np.take_along_axis(flat_input, flat.reshape(count, 1, -1), 2).reshape(*flat_input.shape[:2], *flat.shape[1:])
    return np.where(inside[:, None], found, 0)


@operation(grad_output=no_derivative("grid_sampler_backward"), grid=no_derivative("grid_sampler_backward"),
           node="GridSamplerBackwardBackward0", **_PRIVATE)
def _grid_sample_input(grad_output, grid, shape, mode, padding_mode, align_corners):
    indices, weights, _ = _sampling(shape[2:], grid, mode, padding_mode, align_corners)
    rows, size = shape[0] * shape[1], int(np.prod(shape[2:]))
    made = np.zeros(rows * size, grad_output.dtype)
    base = np.arange(rows).reshape(*shape[:2], *[1] * (grid.ndim - 2)) * size
    for choice, flat, inside in _corners(shape[2:], indices):
        part = np.where(inside, _weight_of(choice, weights), 0)[:, None] * grad_output
        np.add.at(made, (base + flat[:, None]).reshape(-1), part.astype(made.dtype, copy=False).reshape(-1))
    return made.reshape(shape)


@operation(grad_output=no_derivative("grid_sampler_backward"), input=no_derivative("grid_sampler_backward"),
           grid=no_derivative("grid_sampler_backward"), node="GridSamplerBackwardBackward0", **_PRIVATE)
def _grid_sample_grid(grad_output, input, grid, mode, padding_mode, align_corners):
    shape = input.shape[2:]
    rank = len(shape)
    indices, weights, slopes = _sampling(shape, grid, mode, padding_mode, align_corners)
    flat_input = input.reshape(*input.shape[:2], -1)
    made = np.zeros(grid.shape, grid.dtype)
    for choice, flat, inside in _corners(shape, indices):
        seen = (_read(flat_input, flat, inside) * grad_output).sum(1)
        for axis in range(rank):
            mixed = [slopes[other] if other == axis else weights[other] for other in range(rank)]
            made[..., rank - 1 - axis] += seen * _weight_of(choice, mixed)
    return made


# -- affine grids ----------------------------------------------------------------------------------------------------
def _base_grid(size: Sizes, align_corners: bool, dtype: np.dtype) -> np.ndarray:
    """Homogeneous coordinates of every point: (points, rank + 1)."""
    axes = []
    for count in size[2:]:
        points = np.linspace(-1, 1, count, dtype=dtype) if count > 1 else np.zeros(count, dtype)
        axes.append(points if align_corners else points * (count - 1) / max(count, 1))
    grids = np.meshgrid(*axes, indexing="ij")[::-1]
    return np.stack([*grids, np.ones_like(grids[0])], -1).reshape(-1, len(size) - 1).astype(dtype, copy=False)


@operation(theta="_affine_grid_backward(g, size, align_corners)", jvp="linear", method=False)
def affine_grid_generator(theta, size, align_corners):
    rank = len(size) - 2
    made = np.matmul(_base_grid(size, align_corners, theta.dtype), theta.swapaxes(1, 2))
    return made.reshape(size[0], *size[2:], rank)


@operation(grad="affine_grid_generator(g, size, align_corners)", jvp="linear", **_PRIVATE)
def _affine_grid_backward(grad, size, align_corners):
    flat = grad.reshape(size[0], -1, len(size) - 2)
    return np.matmul(flat.swapaxes(1, 2), _base_grid(size, align_corners, grad.dtype))


def refuse_dtype(name: str, input: Tensor, kinds: str) -> None:
    if input._array.dtype.kind in kinds:
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(dtypes.from_numpy(input._array.dtype).name)}'")
