"""Convolution in one, two and three dimensions, its transpose, and the columns it works on: im2col and col2im.

A convolution is a product of matrices: the filters times the columns, which hold for every place of the kernel what the
windows have there. What is made of it is linear in the input and in the weight, and so are its gradients, so three
private entries, each other's gradients, serve every order.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor
from .dimensions import at_dim, sizes_of, strided
from .matrix import is_short
from .table import TENSORS, operation, public
from .unpack import type_name

_PRIVATE: dict[str, Any] = {"public": False, "method": False}
Sizes = tuple[int, ...]

# Samples are taken together until their columns reach this many numbers: then one product is large enough for BLAS, and
# the columns (of which a 3 x 3 kernel has nine times the input's numbers) are still in the cache when they are used.
_COLUMNS = 1 << 18


# -- windows ---------------------------------------------------------------------------------------------------------
def padded(array: np.ndarray, before: Sizes, after: Sizes, fill: Any = 0) -> np.ndarray:
    """The array with its last dimensions padded. The result is contiguous or the array itself."""
    if not any(before) and not any(after):
        return array
    count = array.ndim - len(before)
    spatial = array.shape[count:]
    made = np.full((*array.shape[:count], *map(sum, zip(before, spatial, after, strict=True))), fill, array.dtype)
    made[_inside(before, spatial)] = array
    return made


def _inside(before: Sizes, sizes: Sizes) -> Any:
    """The index of what lies inside the padding."""
    return (..., *(slice(low, low + size) for low, size in zip(before, sizes, strict=True)))


def cropped(array: np.ndarray, before: Sizes, sizes: Sizes) -> np.ndarray:
    """What lies inside the padding."""
    if array.shape[array.ndim - len(sizes):] == sizes:
        return array
    return np.ascontiguousarray(array[_inside(before, sizes)])


def windows(array: np.ndarray, kernel: Sizes, stride: Sizes, dilation: Sizes, out: Sizes) -> np.ndarray:
    """A view (N, C, *out, *kernel) of a padded array (N, C, ...)."""
    steps = array.strides[2:]
    strides = (*array.strides[:2], *(a * b for a, b in zip(steps, stride, strict=True)),
               *(a * b for a, b in zip(steps, dilation, strict=True)))
    return strided(array, (*array.shape[:2], *out, *kernel), strides)


def places(kernel: Sizes, stride: Sizes, dilation: Sizes, out: Sizes) -> Iterator[tuple[Sizes, Any]]:
    """Every place of the kernel, and the index that takes out of a padded array what the windows have there."""
    for place in product(*map(range, kernel)):
        yield place, (..., *(slice(at * by, at * by + step * (count - 1) + 1, step)
                             for at, by, step, count in zip(place, dilation, stride, out, strict=True)))


def window_counts(spatial: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    return tuple((size + 2 * pad - by * (width - 1) - 1) // step + 1
                 for size, width, step, pad, by in zip(spatial, kernel, stride, padding, dilation, strict=True))


def _columns(array: np.ndarray, kernel: Sizes, stride: Sizes, dilation: Sizes, out: Sizes,
             groups: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Some samples at a time: which, and their columns (groups, C / groups * kernel, N * out), good until the next."""
    rank, channels = len(kernel), array.shape[1]
    view = windows(array, kernel, stride, dilation, out)
    view = view.transpose(1, *range(2 + rank, 2 + 2 * rank), 0, *range(2, 2 + rank))
    rows = channels * prod(kernel)
    made = None
    for share in _shares(len(array), rows * prod(out)):
        chosen = view[at_dim(1 + rank, share)]
        if made is None or made.shape != chosen.shape:  # used again: fresh memory costs more than the copying does
            made = np.empty(chosen.shape, array.dtype)
        np.copyto(made, chosen)
        yield share, made.reshape(groups, rows // groups, chosen.size // max(rows, 1))


def _spread(target: np.ndarray, columns: np.ndarray, kernel: Sizes, stride: Sizes, dilation: Sizes, out: Sizes) -> None:
    """Add columns (C, *kernel, N, *out) to the places of a padded array (N, C, ...) that they are of."""
    channels_first = target.swapaxes(0, 1)
    for place, where in places(kernel, stride, dilation, out):
        at: Any = (slice(None), *place)
        channels_first[where] += columns[at]


def _shares(count: int, size: int) -> Iterator[slice]:
    """Slices of the samples, together with columns of about the wanted size."""
    step = max(_COLUMNS // max(size, 1), 1)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def _in_single(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Floats of 16 bits as float32: NumPy multiplies them without BLAS."""
    return tuple(one.astype(np.float32) if is_short(one.dtype) else one for one in arrays)


# -- the three products ----------------------------------------------------------------------------------------------
_WINDOW = "stride, padding, dilation, groups"


@operation(input=f"_convolution_input(g, conj(weight), input_shape, {_WINDOW})",
           weight=f"_convolution_weight(g, conj(input), weight_shape, {_WINDOW})",
           node="ConvolutionBackwardBackward0", **_PRIVATE)
def _convolution_forward(input, weight, out, stride, padding, dilation, groups):
    """The convolution itself."""
    dtype, filters, kernel = input.dtype, weight.shape[0], weight.shape[2:]
    input, weight = _in_single(input, weight)
    wide = padded(input, padding, padding)
    matrix = weight.reshape(groups, filters // groups, prod(weight.shape[1:]))
    made = np.empty((len(input), filters, *out), weight.dtype)
    for share, columns in _columns(wide, kernel, stride, dilation, out, groups):
        values = np.matmul(matrix, columns)
        made[share] = values.reshape(filters, -1, *out).swapaxes(0, 1)
    return made.astype(dtype, copy=False)


@operation(grad=f"_convolution_forward(g, conj(weight), grad_shape[2:], {_WINDOW})",
           weight=f"_convolution_weight(conj(grad), g, weight_shape, {_WINDOW})",
           node="ConvolutionBackwardBackward0", **_PRIVATE)
def _convolution_input(grad, weight, shape, stride, padding, dilation, groups):
    """Its adjoint in the input, which is also the transposed convolution."""
    dtype, filters, kernel, out = grad.dtype, weight.shape[0], weight.shape[2:], grad.shape[2:]
    grad, weight = _in_single(grad, weight)
    spatial = tuple(size + 2 * pad for size, pad in zip(shape[2:], padding, strict=True))
    made = np.zeros((*shape[:2], *spatial), weight.dtype)
    matrix = weight.reshape(groups, filters // groups, prod(weight.shape[1:])).swapaxes(1, 2)
    for share in _shares(len(grad), prod(weight.shape[1:]) * groups * prod(out)):
        rows = _rows(grad[share], groups)
        # One filter a group, as in depthwise convolution: NumPy's matmul takes nine times as long as its multiply.
        values = matrix * rows if rows.shape[1] == 1 else np.matmul(matrix, rows)
        _spread(made[share], values.reshape(shape[1], *kernel, -1, *out), kernel, stride, dilation, out)
    return cropped(made, padding, shape[2:]).astype(dtype, copy=False)


@operation(grad=f"_convolution_forward(conj(input), g, grad_shape[2:], {_WINDOW})",
           input=f"_convolution_input(conj(grad), g, input_shape, {_WINDOW})",
           node="ConvolutionBackwardBackward0", **_PRIVATE)
def _convolution_weight(grad, input, shape, stride, padding, dilation, groups):
    """Its adjoint in the weight."""
    dtype, kernel, out = input.dtype, shape[2:], grad.shape[2:]
    grad, input = _in_single(grad, input)
    wide = padded(input, padding, padding)
    made = np.zeros((groups, shape[0] // groups, prod(shape[1:])), input.dtype)
    for share, columns in _columns(wide, kernel, stride, dilation, out, groups):
        made += np.matmul(_rows(grad[share], groups), columns.swapaxes(1, 2))
    return made.reshape(shape).astype(dtype, copy=False)


def _rows(array: np.ndarray, groups: int) -> np.ndarray:
    """(N, C, ...) as (groups, C / groups, N * ...)."""
    channels = array.shape[1]
    return array.swapaxes(0, 1).reshape(groups, channels // groups, array.size // max(channels, 1))


# -- convolution -----------------------------------------------------------------------------------------------------
def _conj(F: Any, x: Any) -> Any:
    return F.conj(x) if F.is_complex(x) else x


def _gradients(F, needs, g, input, weight, stride, padding, dilation, transposed, groups):
    # One function for all three, as in PyTorch: so input and weight are both saved, whichever gradients are wanted.
    window = (stride, padding, dilation, groups)
    for_input = for_weight = for_bias = None
    if needs[0]:
        filters = _conj(F, weight)
        for_input = (F._convolution_forward(g, filters, tuple(input.shape[2:]), *window) if transposed
                     else F._convolution_input(g, filters, tuple(input.shape), *window))
    if needs[1]:
        values = _conj(F, input)
        for_weight = (F._convolution_weight(values, g, tuple(weight.shape), *window) if transposed
                      else F._convolution_weight(g, values, tuple(weight.shape), *window))
    if needs[2]:
        for_bias = F.sum(g, (0, *range(2, g.ndim)), False)
    return for_input, for_weight, for_bias


@operation(together=_gradients, differentiable="input weight bias", node="ConvolutionBackward0", method=False)
def convolution(input, weight, bias=None, stride=(1,), padding=(0,), dilation=(1,), transposed=False,
                output_padding=(0,), groups=1):
    _check(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    kernel, spatial = weight.shape[2:], input.shape[2:]
    window = (stride, padding, dilation, groups)
    if transposed:
        out = tuple((size - 1) * step - 2 * pad + by * (width - 1) + more + 1 for size, step, pad, by, width, more
                    in zip(spatial, stride, padding, dilation, kernel, output_padding, strict=True))
        if min(out) < 1:
            raise RuntimeError(f"Given input size per channel: {_times(spatial)}. Calculated output size per channel: "
                               f"{_times(out)}. Output size is too small")
        made = _convolution_input(input, weight, (len(input), weight.shape[1] * groups, *out), *window)
    else:
        made = _convolution_forward(input, weight, window_counts(spatial, kernel, stride, padding, dilation), *window)
    if bias is not None:
        made += bias.reshape(-1, *[1] * len(kernel))
    return made


def _times(sizes: Sizes) -> str:
    return f"({' x '.join(map(str, sizes))})"


def _check(input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, stride: Sizes, padding: Sizes,
           dilation: Sizes, transposed: bool, output_padding: Sizes, groups: int) -> None:
    if min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(output_padding) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if min(stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(dilation) <= 0:
        raise RuntimeError("non-positive dilation is not supported")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    sizes, filters, channels = list(weight.shape), weight.shape[0], input.shape[1]
    if input.ndim != weight.ndim:
        raise RuntimeError(f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight {sizes}, "
                           "but got "
                           f"{input.ndim}-dimensional input of size {list(input.shape)} instead")
    if filters < groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got "
                           "weight of "
                           f"size {sizes} instead")
    if filters % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but "
                           "got weight "
                           f"of size [{sizes}] instead")
    wanted = filters if transposed else weight.shape[1] * groups
    given = "transposed=1" if transposed else f"groups={groups}"
    if channels != wanted:
        raise RuntimeError(f"Given {given}, weight of size {sizes}, expected input{list(input.shape)} to have "
                           f"{wanted} channels, "
                           f"but got {channels} channels instead")
    made = weight.shape[1] * groups if transposed else filters
    if bias is not None and bias.shape != (made,):
        raise RuntimeError(f"Given {'transposed=1, ' if transposed else ''}weight of size {sizes}, expected bias to be "
                           f"1-dimensional with {made} elements, but got bias of size {list(bias.shape)} instead")
    _check_dtypes(input, weight, bias)
    if transposed:
        if any(more >= step and more >= by for more, step, by in zip(output_padding, stride, dilation, strict=True)):
            raise RuntimeError("output padding must be smaller than either stride or dilation, but got "
                               "output_padding: "
                               f"{output_padding} stride: {stride} dilation: {dilation}")
        return
    wide = tuple(size + 2 * pad for size, pad in zip(input.shape[2:], padding, strict=True))
    reach = tuple(by * (width - 1) + 1 for by, width in zip(dilation, weight.shape[2:], strict=True))
    if any(size < needed for size, needed in zip(wide, reach, strict=True)):
        raise RuntimeError(f"Calculated padded input size per channel: {_times(wide)}. Kernel size: {_times(reach)}. "
                           "Kernel size can't be greater than actual input size")
    if not all(input.shape[2:]):
        raise RuntimeError("Only zero batch or zero channel inputs are supported, but got input shape: "
                           f"{list(input.shape)}")


def _check_dtypes(input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> None:
    if input.dtype.kind == "b":
        raise NotImplementedError("\"slow_conv2d_cpu\" not implemented for 'Bool'")
    names = [type_name(dtypes.from_numpy(one.dtype).name) for one in (input, weight)]
    if names[0] != names[1]:
        raise RuntimeError(f"Input type (torch.{names[0]}Tensor) and weight type (torch.{names[1]}Tensor) should be "
                           "the same")
    if bias is not None and bias.dtype != input.dtype:
        known = {"float32": "float", "float64": "double"}
        first, second = (dtypes.from_numpy(one.dtype).name for one in (input, bias))
        raise RuntimeError(f"Input type ({known.get(first, first)}) and bias type ({known.get(second, second)}) "
                           "should be the "
                           "same")


# -- as users call it ------------------------------------------------------------------------------------------------
def per_dimension(value: Any, rank: int, name: str) -> Sizes:
    """An option that is one number for every dimension, or a number for each."""
    if value.__class__ is int:
        return (value,) * rank
    given = sizes_of((value,))
    if len(given) == 1:
        return given * rank
    if len(given) != rank:
        raise RuntimeError(f"expected {name} to be a single integer value or a list of {rank} values to match the "
                           "convolution "
                           f"dimensions, but got {name}={list(given)}")
    return given


def _check_call(name: str, rank: int, input: Any, weight: Any) -> None:
    for argument, value in (("input", input), ("weight", weight)):
        if not isinstance(value, Tensor):
            raise TypeError(f"{name}() received an invalid combination of arguments: '{argument}' must be Tensor, not "
                            f"{type(value).__name__}")
    if len(input._shape) not in (rank + 1, rank + 2):
        raise RuntimeError(f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input "
                           "of size: "
                           f"{list(input._shape)}")


def _same_padding(input: Tensor, kernel: Sizes, stride: Sizes, dilation: Sizes) -> tuple[Tensor, Sizes]:
    """Padding that keeps the sizes; where it is odd, the far end gets one more, before the convolution."""
    if any(step != 1 for step in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    totals = [by * (width - 1) for by, width in zip(dilation, kernel, strict=True)]
    if any(total % 2 for total in totals):
        pairs = [(0, total % 2) for total in reversed(totals)]
        input = TENSORS.constant_pad_nd(input, tuple(one for pair in pairs for one in pair), 0)
    return input, tuple(total // 2 for total in totals)


def _convolve(name: str, rank: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
              dilation: Any, groups: int, transposed: bool = False, output_padding: Any = 0) -> Tensor:
    _check_call(name, rank, input, weight)
    batched = len(input._shape) == rank + 2
    batch = input if batched else TENSORS.unsqueeze(input, 0)
    kernel = weight._shape[2:]
    rank = len(kernel)
    stride, dilation = per_dimension(stride, rank, "stride"), per_dimension(dilation, rank, "dilation")
    if isinstance(padding, str) and not transposed:
        if padding not in ("same", "valid"):
            raise RuntimeError(f"Invalid padding string: '{padding}'")
        if padding == "same":
            batch, padding = _same_padding(batch, kernel, stride, dilation)
        else:
            padding = (0,) * rank
    elif isinstance(padding, str):
        raise TypeError(f"{name}(): argument 'padding' must be tuple of ints, not str")
    padding = per_dimension(padding, rank, "padding")
    result = TENSORS.convolution(batch, weight, bias, stride, padding, dilation, transposed,
                                 per_dimension(output_padding, rank, "output_padding"), groups)
    return result if batched else TENSORS.squeeze(result, 0)


def _forward_function(rank: int) -> Callable[..., Tensor]:
    def function(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1) -> Tensor:
        return _convolve(name, rank, input, weight, bias, stride, padding, dilation, groups)

    name = function.__name__ = function.__qualname__ = f"conv{rank}d"
    function.__doc__ = f"Convolution (strictly, cross-correlation) over {rank} dimension{'s' if rank > 1 else ''}."
    return public(function)


def _transposed_function(rank: int) -> Callable[..., Tensor]:
    def function(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:
        return _convolve(name, rank, input, weight, bias, stride, padding, dilation, groups, True, output_padding)

    name = function.__name__ = function.__qualname__ = f"conv_transpose{rank}d"
    function.__doc__ = f"The adjoint of conv{rank}d, as an operation of its own."
    return public(function)


conv1d, conv2d, conv3d = (_forward_function(rank) for rank in (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = (_transposed_function(rank) for rank in (1, 2, 3))


# -- columns ---------------------------------------------------------------------------------------------------------
def _check_columns(given: dict[str, Sizes]) -> None:
    for option in ("kernel_size", "dilation", "stride"):
        if min(given[option]) <= 0:
            raise RuntimeError(f"{option.removesuffix('_size')} should be greater than zero, but got {option}: "
                               f"{given[option]}")
    if min(given["padding"]) < 0:
        raise RuntimeError(f"padding should be non-negative, but got padding: {given['padding']}")


@operation(input="col2im(g, input_shape[-2:], kernel_size, dilation, padding, stride)", node="Im2ColBackward0",
           jvp="linear", **_PRIVATE)
def im2col(input, kernel_size, dilation, padding, stride):
    _check_columns({"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride})
    shape = input.shape
    if not (len(shape) in (3, 4) and all(shape[-3:])):
        raise RuntimeError("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
                           "dimensions for "
                           f"input, but got: {list(shape)}")
    if input.dtype.kind in "iu":
        raise NotImplementedError("\"im2col_out_cpu\" not implemented for "
                                  f"'{type_name(dtypes.from_numpy(input.dtype).name)}'")
    batch = input.reshape(1 if len(shape) == 3 else shape[0], *shape[-3:])
    out = window_counts(shape[-2:], kernel_size, stride, padding, dilation)
    if min(out) < 1:
        raise RuntimeError(f"Given input with spatial size {shape[-2:]}, kernel_size={kernel_size}, "
                           f"dilation={dilation}, "
                           f"padding={padding}, stride={stride}, calculated shape of the array of sliding blocks as "
                           f"{out}, "
                           "but its components must be at least one.")
    view = windows(padded(batch, padding, padding), kernel_size, stride, dilation, out)
    columns = view.transpose(0, 1, 4, 5, 2, 3).reshape(len(batch), shape[-3] * prod(kernel_size), prod(out))
    return np.ascontiguousarray(columns if len(shape) == 4 else columns[0])


@operation(input="im2col(g, kernel_size, dilation, padding, stride)", node="Col2ImBackward0", jvp="linear", **_PRIVATE)
def col2im(input, output_size, kernel_size, dilation, padding, stride):
    _check_columns({"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride})
    shape = input.shape
    if not (len(shape) in (2, 3) and all(shape[-2:])):
        raise RuntimeError("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
                           "dimensions "
                           f"for input, but got: {list(shape)}")
    if shape[-2] % prod(kernel_size):
        raise RuntimeError("Expected size of input's dimension 1 to be divisible by the product of kernel_size, but "
                           "got "
                           f"input.size(1)={shape[-2]} and kernel_size={kernel_size}.")
    out = window_counts(output_size, kernel_size, stride, padding, dilation)
    if shape[-1] != prod(out) or min(out) < 1:
        raise RuntimeError(f"Given output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, "
                           f"padding={padding}, stride={stride}, expected size of input's dimension 2 to match the "
                           "calculated "
                           f"number of sliding blocks {out[0]} * {out[1]} = {prod(out)}, but got "
                           f"input.size(2)={shape[-1]}.")
    channels, count = shape[-2] // prod(kernel_size), 1 if len(shape) == 2 else shape[0]
    columns = input.reshape(count, channels, *kernel_size, *out).transpose(1, 2, 3, 0, 4, 5)
    made = np.zeros((count, channels, *(n + 2 * pad for n, pad in zip(output_size, padding, strict=True))), input.dtype)
    _spread(made, columns, kernel_size, stride, dilation, out)
    made = cropped(made, padding, tuple(output_size))
    return made if len(shape) == 3 else made[0]
