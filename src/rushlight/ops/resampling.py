"""Resampling: interpolation to other sizes, and sampling at the points of a grid."""
from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.polynomial import polynomial

from ..arrays import dtypes
from ..tensor import Tensor
from .convolution import Sizes
from .dimensions import at_dim
from .matrix import is_short
from .pooling import segment_sums
from .scattering import add_at
from .table import operation
from .unpack import type_name

_PRIVATE: dict[str, Any] = {"public": False, "method": False}
Taps = tuple[np.ndarray, np.ndarray | None]  # for each place of the result: where it reads, and with which weights


# -- interpolation ---------------------------------------------------------------------------------------------------
# Interpolation is done dimension by dimension. Each has taps: an array of places (count, taps) that rise from row to
# row, and weights of the same shape; None for the nearest neighbour, whose only weight is 1.
def _scale(size: int, count: int, align_corners: bool, factor: float | None, kind: Any) -> Any:
    """How far apart, in the source, neighbours of the result are; in the precision PyTorch uses, for its rounding."""
    if align_corners:
        return kind(size - 1) / kind(count - 1) if count > 1 else kind(0)
    return kind(1.0 / factor) if factor is not None and factor > 0 else kind(size) / kind(count)


def nearest_taps(size: int, count: int, factor: float | None, exact: bool, image: bool) -> Taps:
    number = np.arange(count)
    if image and not exact and count in (size, 2 * size):  # here PyTorch goes by the sizes, whatever the factor
        return (number // (count // size))[:, None], None
    scale = _scale(size, count, False, factor, np.float32)
    middle = np.float32(0.5) if exact else np.float32(0)
    found = np.minimum(np.floor((number.astype(np.float32) + middle) * scale).astype(np.int64), size - 1)
    return found[:, None], None


def _source(size: int, count: int, align_corners: bool, factor: float | None, kind: Any,
            cubic: bool) -> tuple[Any, Any]:
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


def _cubic_derivative(distance: np.ndarray, sharpness: float, degree: int) -> np.ndarray:
    """The cubic convolution kernel's derivative of a degree, as a function of the distance."""
    x = np.abs(distance)
    pieces = [1, 0, -(sharpness + 3), sharpness + 2], [-4 * sharpness, 8 * sharpness, -5 * sharpness, sharpness]
    near, far = (polynomial.polyval(x, polynomial.polyder(piece, degree)) for piece in pieces)
    made = np.where(x <= 1, near, np.where(x < 2, far, 0)).astype(distance.dtype)
    return made * np.sign(distance) if degree % 2 else made


def cubic_taps(size: int, count: int, align_corners: bool, factor: float | None, kind: Any) -> Taps:
    low, share = _source(size, count, align_corners, factor, kind, True)
    around = np.arange(-1, 3)
    found = np.clip(low[:, None] + around, 0, size - 1)
    return found, _cubic_derivative(share[:, None] - around, -0.75, 0)


def _filter(mode: str, distance: np.ndarray) -> np.ndarray:
    if mode == "bicubic":
        return _cubic_derivative(distance, -0.5, 0)
    if mode == "lanczos":
        return np.where(np.abs(distance) < 3, np.sinc(distance) * np.sinc(distance / 3), 0)
    return np.maximum(1 - np.abs(distance), 0)


def antialias_taps(size: int, count: int, align_corners: bool, factor: float | None, kind: Any, mode: str) -> Taps:
    """Where the result is smaller, the kernel is stretched to cover all that lies between its points."""
    scale = float(_scale(size, count, align_corners, factor, kind))
    stretch = max(scale, 1.0)
    reach = {"bilinear": 1, "bicubic": 2, "lanczos": 3}[mode] * stretch
    center = scale * (np.arange(count) + 0.5)
    low = np.maximum((center - reach + 0.5).astype(np.int64), 0)
    high = np.minimum((center + reach + 0.5).astype(np.int64), size)
    place = low[:, None] + np.arange(int((high - low).max(initial=1)))
    distance = (place - center[:, None] + 0.5) / stretch
    weight = np.where(place < high[:, None], _filter(mode, distance), 0)
    return np.minimum(place, size - 1), (weight / weight.sum(1, keepdims=True)).astype(kind)


def _along(values: np.ndarray, ndim: int, axis: int) -> np.ndarray:
    """One number for each place of an axis, to multiply with."""
    return values.reshape(-1, *[1] * (ndim - axis - 1))


def _gathered(array: np.ndarray, taps: Taps, axis: int) -> np.ndarray:
    found, weights = taps
    if weights is None:
        return array.take(found[:, 0], axis, mode="clip")
    total: Any = None
    for column in range(found.shape[1]):
        part = array.take(found[:, column], axis, mode="clip")
        part *= _along(weights[:, column], array.ndim, axis).astype(array.dtype)
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
        sums = segment_sums(part, starts, ends, axis)
        if len(starts) == size:  # all of them, in order
            made += sums
        else:
            made[at_dim(axis, target[starts])] += sums
    return made


@operation(input="_resample_backward(g, taps, input_shape, name)", jvp="linear",
           node=lambda kept: f"{kept['name']}Backward0", **_PRIVATE)
def _resample(input, taps, name):
    """`taps` has an entry for each of the last dimensions; `name` is the operation's in PyTorch."""
    made = input.astype(np.float32) if is_short(input.dtype) else input
    for axis, one in enumerate(taps, input.ndim - len(taps)):
        made = _gathered(made, one, axis)
    return made.astype(input.dtype, copy=False)


@operation(grad_output="_resample(g, taps, name)", jvp="linear",
           node=lambda kept: f"{kept['name']}BackwardBackward0", **_PRIVATE)
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


def _unnormalised(x: np.ndarray, size: int, align_corners: bool) -> tuple[np.ndarray, np.ndarray]:
    """Grid coordinates, from -1 to 1, as places along a dimension, and the slope of that map."""
    kind = x.dtype.type
    if align_corners:
        return (x + 1) / 2 * kind(size - 1), np.full_like(x, (size - 1) / 2)
    return ((x + 1) * kind(size) - 1) / 2, np.full_like(x, size / 2)


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


def _sampling(shape: Sizes, grid: np.ndarray, mode: str, padding_mode: str, align_corners: bool, order: Sizes
              ) -> tuple[list[list[np.ndarray]], list[list[np.ndarray]]]:
    """For each dimension and each tap along it: the places read, and their weights, or a derivative of those."""
    indices, weights = [], []
    for axis, (size, degree) in enumerate(zip(shape, order, strict=True)):
        x = grid[..., len(shape) - 1 - axis]  # the grid's first coordinate is along the last dimension
        place, slope = _unnormalised(x, size, align_corners)
        if mode != "bicubic":
            place, slope = _kept_inside(place, slope, size, padding_mode, align_corners)
        if mode == "nearest":
            indices.append([np.rint(place).astype(np.int64)])
            weights.append([np.full_like(x, degree == 0)])
            continue
        if mode == "bicubic":
            place = np.where(np.isfinite(place), place, -100)
        low = np.floor(place)
        share = place - low
        if mode == "bilinear":
            first = low.astype(np.int64)
            indices.append([first, first + 1])
            parts = [1 - share, share] if degree == 0 else [-slope, slope] if degree == 1 else [np.zeros_like(x)] * 2
        else:
            indices.append([_kept_inside(low + at, slope, size, padding_mode, align_corners)[0].astype(np.int64)
                            for at in range(-1, 3)])
            parts = [_cubic_derivative(share - at, -0.75, degree) * slope ** degree for at in range(-1, 3)]
        weights.append(parts)
    return indices, weights


def _corners(shape: Sizes, indices: list[list[np.ndarray]], weights: list[list[np.ndarray]]) -> Any:
    """Every choice of one tap for each dimension: the flat place, whether it is inside, and the weight."""
    for choice in product(*(range(len(taps)) for taps in indices)):
        flat: Any = 0
        inside: Any = True
        weight: Any = 1
        for axis, (tap, size) in enumerate(zip(choice, shape, strict=True)):
            index = indices[axis][tap]
            inside = inside & (index >= 0) & (index < size)
            flat = flat * size + np.clip(index, 0, size - 1)
            weight = weight * weights[axis][tap]
        yield flat, inside, weight


# What is sampled is linear in the input, with weights that depend on the grid; its derivatives in the grid are the same
# with derivatives of the weights. `order` says which: how often in each dimension. So one entry, and its adjoint in the
# input, have their gradients of every order.
def _grid_slopes(F: Any, g: Any, input: Any, grid: Any, options: tuple, order: Sizes) -> Any:
    """The gradient in the grid of the sum of `g` times what is sampled from `input`."""
    parts = [F.sum(g * F._grid_sample(input, grid, *options, _raised(order, axis)), 1, False)
             for axis in range(len(order))]
    return F.stack(parts[::-1], -1)


def _raised(order: Sizes, axis: int) -> Sizes:
    return tuple(degree + (number == axis) for number, degree in enumerate(order))


def _grid_gradients(F, needs, g, input, input_shape, grid, mode, padding_mode, align_corners, order):
    options = (mode, padding_mode, align_corners)
    return (F._grid_sample_input(g, grid, input_shape, *options, order) if needs[0] else None,
            _grid_slopes(F, g, input, grid, options, order) if needs[1] else None)


def _grid_input_gradients(F, needs, g, grad_output, grid, mode, padding_mode, align_corners, order):
    options = (mode, padding_mode, align_corners)
    return (F._grid_sample(g, grid, *options, order) if needs[0] else None,
            _grid_slopes(F, grad_output, g, grid, options, order) if needs[1] else None)


def _grid_name(kept: dict) -> str:
    order = kept["order"]
    return f"GridSampler{len(order)}DBackward{'Backward' if any(order) else ''}0"


@operation(together=_grid_gradients, differentiable="input grid", node=_grid_name, **_PRIVATE)
def _grid_sample(input, grid, mode, padding_mode, align_corners, order):
    shape = input.shape[2:]
    flat_input = input.reshape(*input.shape[:2], prod(shape))
    total = np.zeros((*input.shape[:2], *grid.shape[1:-1]), input.dtype)
    for flat, inside, weight in _corners(shape, *_sampling(shape, grid, mode, padding_mode, align_corners, order)):
        found = np.take_along_axis(flat_input, flat.reshape(len(flat), 1, flat[:1].size), 2).reshape(total.shape)
        total += np.where(inside[:, None], found, 0) * weight[:, None]
    return total


@operation(together=_grid_input_gradients, differentiable="grad_output grid",
           node=lambda kept: f"GridSampler{len(kept['order'])}DBackwardBackward0", **_PRIVATE)
def _grid_sample_input(grad_output, grid, shape, mode, padding_mode, align_corners, order):
    """The adjoint in the input."""
    spatial = shape[2:]
    rows, size = shape[0] * shape[1], prod(spatial)
    made = np.zeros(rows * size, grad_output.dtype)
    base = np.arange(rows).reshape(*shape[:2], *[1] * (grid.ndim - 2)) * size
    for flat, inside, weight in _corners(spatial, *_sampling(spatial, grid, mode, padding_mode, align_corners, order)):
        part = np.where(inside, weight, 0)[:, None] * grad_output
        add_at(made, (base + flat[:, None]).reshape(-1), part.reshape(-1))
    return made.reshape(shape)


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
        raise NotImplementedError(f"\"{name}\" not implemented for "
                                  f"'{type_name(dtypes.from_numpy(input._array.dtype).name)}'")
