"""Pooling: the largest or the mean of each window or bin, and the way back from the largest (max_unpool)."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor
from .convolution import Sizes, cropped, padded, places, window_counts
from .dimensions import at_dim, sizes_of, wrap_dim
from .matrix import is_short
from .scattering import add_at
from .table import TENSORS, operation, public
from .unpack import type_name

_PRIVATE: dict[str, Any] = {"public": False, "method": False}


def _refuse(name: str, input: np.ndarray, kinds: str) -> None:
    if input.dtype.kind in kinds:
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(dtypes.from_numpy(input.dtype).name)}'")


# -- sizes -----------------------------------------------------------------------------------------------------------
def _pooled_sizes(shape: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
                  ceil_mode: bool) -> Sizes:
    rank = len(kernel)
    if min(stride) == 0:
        raise RuntimeError("stride should not be zero")
    if min(kernel) <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got {kernel}")
    if min(stride) < 0:
        raise RuntimeError(f"stride should be greater than zero, but got {stride}")
    if min(dilation) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {dilation}")
    for pad, width, by in zip(padding, kernel, dilation, strict=True):
        if pad < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {pad}")
        if pad > (by * (width - 1) + 1) // 2:
            raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={pad}, "
                               f"kernel_size={width} and "
                               f"dilation={by}")
    spatial = shape[-rank:]
    if not ceil_mode:
        out = window_counts(spatial, kernel, stride, padding, dilation)
    else:
        counts = []
        for size, width, step, pad, by in zip(spatial, kernel, stride, padding, dilation, strict=True):
            count = -((by * (width - 1) + 1 - size - 2 * pad) // step) + 1
            # A window that would begin in the far padding is left out.
            counts.append(count - 1 if (count - 1) * step >= size + pad else count)
        out = tuple(counts)
    if min(out) < 1:
        channels = shape[-rank - 1]
        text = ["x".join(map(str, (channels, *sizes))) for sizes in (spatial, out)]
        raise RuntimeError(f"Given input size: ({text[0]}). Calculated output size: ({text[1]}). Output size is too "
                           "small")
    return out


def _beyond(spatial: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes) -> Sizes:
    """Padding at the far ends, where windows may hang over."""
    return tuple(max(pad, step * (count - 1) + by * (width - 1) + 1 - size - pad) for size, width, step, pad, by, count
                 in zip(spatial, kernel, stride, padding, dilation, out, strict=True))


def bins(size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the bins of adaptive pooling begin and end: as even as they can be, overlapping where they must."""
    number = np.arange(count)
    return number * size // count, -(-(number + 1) * size // count)


# -- the largest -----------------------------------------------------------------------------------------------------
def _running_max(best: np.ndarray, indices: np.ndarray, candidates: Iterable[tuple[np.ndarray, np.ndarray]],
                 watch: bool) -> tuple[np.ndarray, np.ndarray]:
    """The largest of several arrays, and the index that goes with it; the first of equals, but the last nan."""
    for values, position in candidates:
        larger = values > best
        if watch:
            larger |= values != values
        np.copyto(best, values, where=larger)
        np.copyto(indices, position, where=larger)
    return best, indices


def _lowest(dtype: np.dtype) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _flat(positions: list[np.ndarray], spatial: Sizes) -> np.ndarray:
    """Positions along each dimension as one index into the flattened plane."""
    flat: Any = 0
    for axis, (position, size) in enumerate(zip(positions, spatial, strict=True)):
        flat = flat * size + position.reshape(-1, *[1] * (len(spatial) - axis - 1))
    return flat


def _has_nan(array: np.ndarray) -> bool:
    return array.dtype.kind not in "iu" and bool(array.size) and bool(np.isnan(array.max()))


def _max_gradient(kind: str) -> Callable:
    def formula(F: Any, g0: Any, input: Any, result1: Any, kernel_size: Any) -> Any:
        return F._pool_scatter(g0, result1, tuple(input.shape), kind.format(len(kernel_size)))
    return formula


@operation(input=_max_gradient("MaxPool{}DWithIndices"), outputs=2, name="_max_pool",
           node=lambda kept: f"MaxPool{len(kept['kernel_size'])}DWithIndicesBackward0", **_PRIVATE)
def max_pool(input, kernel_size, stride, padding, dilation, ceil_mode):
    rank = len(kernel_size)
    _refuse(f"max_pool{rank}d", input, "bc")
    if not all(input.shape[-rank - 1:]):
        raise RuntimeError(f"Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with optional 0 dim batch size "
                           "for input, but "
                           f"got:{list(input.shape)}")
    out = _pooled_sizes(input.shape, kernel_size, stride, padding, dilation, ceil_mode)
    spatial, lead = input.shape[-rank:], input.shape[:-rank]
    lowest = _lowest(input.dtype)
    wide = padded(input, padding, _beyond(spatial, kernel_size, stride, padding, dilation, out), lowest)
    starts = [np.arange(count) * step - pad for count, step, pad in zip(out, stride, padding, strict=True)]
    # Where nothing is larger than the lowest number there is, the index is the first inside the padding.
    first = [start + -(start // by) * by * (start < 0) for start, by in zip(starts, dilation, strict=True)]
    indices = np.empty((*lead, *out), np.int64)
    indices[...] = _flat(first, spatial)
    best = np.full(indices.shape, lowest, input.dtype)

    def candidates() -> Iterable[tuple[np.ndarray, np.ndarray]]:
        base = _flat(starts, spatial)
        for place, where in places(kernel_size, stride, dilation, out):
            shift = [np.asarray(at * by) for at, by in zip(place, dilation, strict=True)]
            yield wide[where], base + _flat(shift, spatial)

    return _running_max(best, indices, candidates(), _has_nan(input))


@operation(input=_max_gradient("AdaptiveMaxPool{}D"), outputs=2, name="_adaptive_max_pool",
           node=lambda kept: f"AdaptiveMaxPool{len(kept['kernel_size'])}DBackward0", **_PRIVATE)
def adaptive_max_pool(input, kernel_size):
    """`kernel_size` is how many bins each dimension has."""
    out = kernel_size
    rank = len(out)
    _refuse(f"adaptive_max_pool{rank}d", input, "bciu")
    spatial = input.shape[-rank:]
    edges = [bins(size, count) for size, count in zip(spatial, out, strict=True)]
    indices = np.empty((*input.shape[:-rank], *out), np.int64)
    indices[...] = _flat([start for start, _ in edges], spatial)
    best = np.full(indices.shape, _lowest(input.dtype), input.dtype)

    def candidates() -> Iterable[tuple[np.ndarray, np.ndarray]]:
        widths = [int((end - start).max(initial=0)) for start, end in edges]
        plane = input.reshape(*input.shape[:-rank], prod(spatial))
        for place in product(*map(range, widths)):
            # A narrower bin has its last element again, which changes nothing.
            position = _flat([np.minimum(start + at, end - 1)
                              for at, (start, end) in zip(place, edges, strict=True)], spatial)
            yield plane[..., position], position

    return _running_max(best, indices, candidates(), _has_nan(input))


@operation(input=_max_gradient("FractionalMaxPool{}D"), outputs=2, tensors="samples", name="_fractional_max_pool",
           node=lambda kept: f"FractionalMaxPool{len(kept['kernel_size'])}DBackward0", **_PRIVATE)
def fractional_max_pool(input, kernel_size, output_size, samples):
    """Windows whose distances vary at random around what would fit; `samples` has a number for each dimension."""
    rank = len(kernel_size)
    _refuse(f"fractional_max_pool{rank}d", input, "bciu")
    spatial, lead = input.shape[-rank:], input.shape[:-rank]
    starts: Any = 0
    for axis, (size, width, count) in enumerate(zip(spatial, kernel_size, output_size, strict=True)):
        if count + width - 1 + (rank == 3) > size:  # PyTorch wants one more to spare in volumes
            raise RuntimeError(f"fractional_max_pool{rank}d(): pool size ({width}) is too large relative to input size "
                               f"({size}) for an output of {count}")
        sample = samples[..., rank - 1 - axis if rank == 2 else axis].reshape(*lead, 1)
        begin = np.full((*lead, count), size - width)
        if count > 1:
            gap = sample.dtype.type((size - width) / (count - 1))
            begin[..., :-1] = ((np.arange(count - 1) + sample) * gap).astype(np.int64) - (sample * gap).astype(np.int64)
        starts = starts * size + begin.reshape(*lead, *[1] * axis, count, *[1] * (rank - axis - 1))
    plane = input.reshape(*lead, prod(spatial))
    best = np.full(starts.shape, _lowest(input.dtype), input.dtype)

    def candidates() -> Iterable[tuple[np.ndarray, np.ndarray]]:
        for place in product(*map(range, kernel_size)):
            position = starts + _flat([np.asarray(at) for at in place], spatial)
            yield np.take_along_axis(plane, position.reshape(*lead, -1), -1).reshape(starts.shape), position

    return _running_max(best, starts.copy(), candidates(), _has_nan(input))


@operation(grad_output="_pool_gather(g, indices, name)", tensors="indices", jvp="linear",
           node=lambda kept: f"{kept['name']}BackwardBackward0", **_PRIVATE)
def _pool_scatter(grad_output, indices, shape, name):
    """Each number added to the element of its plane that its index names; `name` is whose gradient this is."""
    made = np.zeros(shape, np.float32 if is_short(grad_output.dtype) else grad_output.dtype)
    add_at(made.reshape(-1), _flat_indices(indices, shape, name), grad_output.reshape(-1))
    return made.astype(grad_output.dtype, copy=False)


@operation(input="_pool_scatter(g, indices, input_shape, name)", tensors="indices", jvp="linear",
           node=lambda kept: f"{kept['name']}BackwardBackward0", **_PRIVATE)
def _pool_gather(input, indices, name):
    """For each index the element of its plane."""
    return input.reshape(-1)[_flat_indices(indices, input.shape, name)].reshape(indices.shape)


def _flat_indices(indices: np.ndarray, shape: Sizes, name: str) -> np.ndarray:
    """Indices into each plane as indices into the whole array."""
    rank = 3 if "3D" in name else 2
    size = prod(shape[-rank:])
    planes = prod(shape[:-rank])
    return (indices.reshape(planes, indices.size // max(planes, 1)) + np.arange(planes)[:, None] * size).reshape(-1)


# -- the mean --------------------------------------------------------------------------------------------------------
def _divisor(spatial: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, out: Sizes, count_include_pad: bool,
             divisor_override: int | None) -> Any:
    """What each window's sum is divided by."""
    if divisor_override is not None:
        return divisor_override
    total: Any = 1
    for axis, (size, width, step, pad, count) in enumerate(zip(spatial, kernel, stride, padding, out, strict=True)):
        start = np.arange(count) * step - pad
        low, high = (-pad, size + pad) if count_include_pad else (0, size)
        length = np.minimum(start + width, high) - np.maximum(start, low)
        total = total * length.reshape(-1, *[1] * (len(out) - axis - 1))
    return total


_AVERAGE = "kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override"


@operation(input=f"_avg_pool_backward(g, input.shape, {_AVERAGE})", jvp="linear", name="_avg_pool",
           node=lambda kept: f"AvgPool{len(kept['kernel_size'])}DBackward0", **_PRIVATE)
def avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    rank = len(kernel_size)
    _refuse(f"avg_pool{rank}d", input, "bc")
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    ones = (1,) * rank
    out = _pooled_sizes(input.shape, kernel_size, stride, padding, ones, ceil_mode)
    if not all(input.shape[-rank - 1:]):
        raise RuntimeError(f"Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with optional 0 dim batch size "
                           "for input, but "
                           f"got:{list(input.shape)}")
    spatial = input.shape[-rank:]
    wide = padded(input, padding, _beyond(spatial, kernel_size, stride, padding, ones, out))
    total = np.zeros((*input.shape[:-rank], *out), np.float32 if is_short(input.dtype) else input.dtype)
    for _, where in places(kernel_size, stride, ones, out):
        total += wide[where]
    divisor = _divisor(spatial, kernel_size, stride, padding, out, count_include_pad, divisor_override)
    if input.dtype.kind in "iu":  # rounded toward zero
        return (np.sign(total) * np.sign(divisor) * (np.abs(total) // np.abs(divisor))).astype(input.dtype)
    return np.divide(total, divisor, dtype=total.dtype, casting="unsafe").astype(input.dtype, copy=False)


@operation(grad_output=f"_avg_pool(g, {_AVERAGE})", jvp="linear",
           node=lambda kept: f"AvgPool{len(kept['kernel_size'])}DBackwardBackward0", **_PRIVATE)
def _avg_pool_backward(grad_output, shape, kernel_size, stride, padding, ceil_mode, count_include_pad,
                       divisor_override):
    rank = len(kernel_size)
    ones, out, spatial = (1,) * rank, grad_output.shape[-rank:], tuple(shape[-rank:])
    divisor = _divisor(spatial, kernel_size, stride, padding, out, count_include_pad, divisor_override)
    wide = np.float32 if is_short(grad_output.dtype) else grad_output.dtype
    part = np.divide(grad_output, divisor, dtype=wide, casting="unsafe")
    after = _beyond(spatial, kernel_size, stride, padding, ones, out)
    made = np.zeros((*shape[:-rank], *map(sum, zip(padding, spatial, after, strict=True))), wide)
    for _, where in places(kernel_size, stride, ones, out):
        made[where] += part
    return cropped(made, padding, spatial).astype(grad_output.dtype, copy=False)


def segment_sums(array: np.ndarray, starts: np.ndarray, ends: np.ndarray, axis: int) -> np.ndarray:
    """Sums over stretches of an axis, none of them empty.

    The first of every stretch, plus the second, and so on: 1 ms where np.add.reduceat takes 6, on pairs of a million.
    """
    lengths = ends - starts
    made = array.take(starts, axis, mode="clip")
    for step in range(1, int(lengths.max(initial=0))):
        rows = np.flatnonzero(lengths > step)
        part = array.take(starts[rows] + step, axis, mode="clip")
        if len(rows) == len(starts):
            made += part
        else:
            made[at_dim(axis, rows)] += part
    return made


@operation(input="_adaptive_avg_pool_backward(g, input.shape, output_size)", jvp="linear", name="_adaptive_avg_pool",
           node=lambda kept: f"AdaptiveAvgPool{len(kept['output_size'])}DBackward0", **_PRIVATE)
def adaptive_avg_pool(input, output_size):
    rank = len(output_size)
    _refuse(f"adaptive_avg_pool{rank}d", input, "bciu")
    made = input.astype(np.float32) if is_short(input.dtype) else input
    for axis, count in enumerate(output_size, input.ndim - rank):
        size = made.shape[axis]
        if count != size:
            start, end = bins(size, count)
            length = (end - start).astype(made.dtype).reshape(-1, *[1] * (input.ndim - axis - 1))
            made = segment_sums(made, start, end, axis) / length
    return made.copy() if made is input else made.astype(input.dtype, copy=False)


@operation(grad_output="_adaptive_avg_pool(g, output_size)", jvp="linear",
           node=lambda kept: f"AdaptiveAvgPool{len(kept['output_size'])}DBackwardBackward0", **_PRIVATE)
def _adaptive_avg_pool_backward(grad_output, shape, output_size):
    made = grad_output.astype(np.float32) if is_short(grad_output.dtype) else grad_output
    ndim = made.ndim
    for axis, count in enumerate(output_size, ndim - len(output_size)):
        size = shape[axis]
        if count == size:
            continue
        if not count:
            made = np.zeros((*made.shape[:axis], size, *made.shape[axis + 1:]), made.dtype)
            continue
        start, end = bins(size, count)
        share = made / (end - start).astype(made.dtype).reshape(-1, *[1] * (ndim - axis - 1))
        # The bins that an element is in are a stretch too.
        position = np.arange(size)
        first, last = np.searchsorted(end, position, "right"), np.searchsorted(start, position, "right")
        made = segment_sums(share, first, last, axis)
    return made.copy() if made is grad_output else made.astype(grad_output.dtype, copy=False)


# -- the way back ----------------------------------------------------------------------------------------------------
@operation(input="_pool_gather(g, indices, 'MaxUnpool%dD' % rank)", tensors="indices", jvp="linear", name="_max_unpool",
           node=lambda kept: f"MaxUnpool{kept['rank']}DBackward0", **_PRIVATE)
def max_unpool(input, indices, output_size, rank):
    if indices.dtype != np.int64:
        raise RuntimeError("elements in indices should be type int64 but got: "
                           f"{type_name(dtypes.from_numpy(indices.dtype).name)}")
    if indices.shape != input.shape:
        raise RuntimeError(f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) "
                           "but got "
                           f"indices tensor with shape: {list(indices.shape)}")
    if not all(input.shape[-rank - 1:]):
        raise RuntimeError(f"max_unpooling{rank}d_forward_out_cpu(): Expected input to have non-zero size for "
                           "non-batch "
                           f"dimensions, but got {list(input.shape)}")
    if indices.size and (indices.min() < 0 or indices.max() >= prod(output_size)):
        wrong = next(int(one) for one in indices.reshape(-1) if not 0 <= one < prod(output_size))
        raise RuntimeError(f"Found an invalid max index: {wrong} (output volumes are of size {_by(output_size)}")
    made = np.zeros((*input.shape[:-rank], *output_size), input.dtype)
    made.reshape(-1)[_flat_indices(indices, made.shape, f"{rank}D")] = input.reshape(-1)
    return made


def _by(sizes: Sizes) -> str:
    return "x".join(map(str, sizes))


# -- as users call them ----------------------------------------------------------------------------------------------
_WORDS = {1: "one", 2: "two", 3: "three"}


def _option(name: str, option: str, value: Any, rank: int, omitted: bool = False) -> Sizes:
    given = (value,) if value.__class__ is int else sizes_of((value,))
    if len(given) == 1:
        return given * rank
    if len(given) != rank:
        either = "either be omitted, a single int" if omitted else "be either a single int" if option == "dilation" \
            else "either be a single int"
        raise RuntimeError(f"{name}: {option} must {either}, or a tuple of {_WORDS[rank]} ints")
    return given


def _step(name: str, stride: Any, kernel: Sizes, rank: int) -> Sizes:
    if stride is None or (isinstance(stride, (tuple, list)) and not stride):
        return kernel
    return _option(name, "stride", stride, rank, True)


def _check_rank(name: str, input: Any, rank: int) -> None:
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    count = len(input._shape)
    if count in (rank + 1, rank + 2):
        return
    if rank == 1 and not name.startswith("max"):
        raise RuntimeError(f"Expected 2 to 3 dimensions, but got {count}-dimensional tensor for argument #1 'self' "
                           "(while "
                           f"checking arguments for {name})")
    if rank == 1:
        raise RuntimeError(f"{name}: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, "
                           "but "
                           f"got:{list(input._shape)}")
    if name.startswith("adaptive"):
        raise RuntimeError(f"{name}(): Expected {rank + 1}D or {rank + 2}D tensor, but "
                           f"got{':' if 'max' in name else ''} "
                           f"{list(input._shape)}")
    if name == "avg_pool2d" and count < 3:
        wrap_dim(-3, count)
    raise RuntimeError(f"non-empty {rank + 1}D or {rank + 2}D (batch mode) tensor expected for input")


def _check_single(kernel: int, stride: int, padding: int, dilation: int, shape: Sizes, ceil_mode: bool) -> None:
    """max_pool1d has its own checks, in its own words."""
    for option, value in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {option} must be greater than zero, but got {value}")
    if padding < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding}")
    if padding > kernel // 2:
        raise RuntimeError(f"max_pool1d() padding should be at most half of kernel size, but got padding={padding} and "
                           f"kernel_size={kernel}")
    span = shape[-1] + 2 * padding - dilation * (kernel - 1) - 1
    out = (-(-span // stride) if ceil_mode else span // stride) + 1
    if out < 1:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {out}")


def max_pool_with_indices(rank: int, input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                          dilation: Any = 1, ceil_mode: bool = False) -> tuple[Tensor, Tensor]:
    """The largest of each window, and where in its plane it is."""
    name = f"max_pool{rank}d"
    kernel = _option(name, "kernel_size", kernel_size, rank)
    step = _step(name, stride, kernel, rank)
    pad, by = _option(name, "padding", padding, rank), _option(name, "dilation", dilation, rank)
    _check_rank(name, input, rank)
    if rank > 1:
        return TENSORS._max_pool(input, kernel, step, pad, by, ceil_mode)
    _check_single(kernel[0], step[0], pad[0], by[0], input._shape, ceil_mode)
    _refuse("max_pool1d_impl", input._array, "biu")
    # One dimension is two, of which the first is 1: so it is in PyTorch, and in its graph.
    lifted = TENSORS.unsqueeze(input, -2)
    return _squeezed(TENSORS._max_pool(lifted, (1, *kernel), (1, *step), (0, *pad), (1, *by), ceil_mode))


def _squeezed(pair: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    return TENSORS.squeeze(pair[0], -2), TENSORS.squeeze(pair[1], -2)


def average_pool(rank: int, input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: int | None = None) -> Tensor:
    """The mean of each window."""
    name = f"avg_pool{rank}d"
    kernel = _option(name, "kernel_size", kernel_size, rank)
    step, pad = _step(name, stride, kernel, rank), _option(name, "padding", padding, rank)
    _check_rank(name, input, rank)
    if rank > 1:
        return TENSORS._avg_pool(input, kernel, step, pad, ceil_mode, count_include_pad, divisor_override)
    lifted = TENSORS.unsqueeze(input, -2)
    made = TENSORS._avg_pool(lifted, (1, *kernel), (1, *step), (0, *pad), ceil_mode, count_include_pad, None)
    return TENSORS.squeeze(made, -2)


def _bin_counts(name: str, rank: int, input: Tensor, output_size: Any) -> Sizes:
    if rank > 1 and isinstance(output_size, (tuple, list)) and len(input._shape) <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    _check_rank(name, input, rank)
    spatial = input._shape[-rank:]
    if output_size is None or isinstance(output_size, int):
        wanted: list[Any] = [output_size] * rank
    else:
        wanted = list(output_size)
    if len(wanted) != rank:
        if rank == 1:
            raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(wanted)})")
        raise RuntimeError(f"{name}(): internal error: output_size.size() must be {rank}" if "max" in name
                           else f"{name}: output_size must be {rank}")
    counts = sizes_of((tuple(size if count is None else count for count, size in zip(wanted, spatial, strict=True)),))
    if min(counts) < 0:
        if "max" in name:
            raise RuntimeError(f"Trying to create tensor with negative dimension {min(counts)}: {list(counts)}")
        raise RuntimeError(f"{name}: elements of output_size must be greater than or equal to 0 but received "
                           f"{{{', '.join(map(str, counts))}}}")
    for axis in range(len(input._shape) - rank, len(input._shape)):
        if not input._shape[axis]:
            raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input "
                               "has sizes "
                               f"{list(input._shape)} with dimension {axis} being empty")
    return counts


def adaptive_average(rank: int, input: Tensor, output_size: Any) -> Tensor:
    """Means over bins, as many as asked for."""
    name = f"adaptive_avg_pool{rank}d"
    counts = _bin_counts(name, rank, input, output_size)
    if rank == 1:
        return TENSORS.squeeze(_adaptive_means(TENSORS.unsqueeze(input, -2), (1, *counts)), -2)
    return _adaptive_means(input, counts)


def _adaptive_means(input: Tensor, counts: Sizes) -> Tensor:
    if all(count == 1 for count in counts):  # PyTorch takes the plain mean here, and saves nothing
        return TENSORS.mean(input, tuple(range(-len(counts), 0)), True)
    return TENSORS._adaptive_avg_pool(input, counts)


def adaptive_max_with_indices(rank: int, input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """Maxima over bins, and where in their plane they are."""
    name = f"adaptive_max_pool{rank}d"
    counts = _bin_counts(name, rank, input, output_size)
    if rank == 1:
        return _squeezed(TENSORS._adaptive_max_pool(TENSORS.unsqueeze(input, -2), (1, *counts)))
    return TENSORS._adaptive_max_pool(input, counts)


@public
def max_pool1d_with_indices(input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
                            ceil_mode: bool = False) -> tuple[Tensor, Tensor]:
    return max_pool_with_indices(1, input, kernel_size, stride, padding, dilation, ceil_mode)


def _public_max_pool(rank: int) -> None:
    def function(input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
                 ceil_mode: bool = False) -> Tensor:
        return max_pool_with_indices(rank, input, kernel_size, stride, padding, dilation, ceil_mode)[0]

    function.__name__ = function.__qualname__ = f"max_pool{rank}d"
    public(function)


for _rank in (1, 2, 3):
    _public_max_pool(_rank)


@public
def avg_pool1d(input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Tensor:
    return average_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@public
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    return adaptive_average(1, input, output_size)


@public
def adaptive_max_pool1d(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    return adaptive_max_with_indices(1, input, output_size)
