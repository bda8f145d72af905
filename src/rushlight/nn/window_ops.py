"""Operations over sliding windows, for convolution and pooling: in any number of dimensions, each with its adjoint."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ..ops.table import operation

_PRIVATE: dict[str, Any] = {"public": False, "method": False}
Sizes = tuple[int, ...]


def _padded(array: np.ndarray, padding: Sizes, fill: float = 0, after: Sizes | None = None) -> np.ndarray:
    """The array with its last dimensions padded; ``after`` may add more at the far ends."""
    after = padding if after is None else after
    if not any(padding) and not any(after):
        return array
    widths = [(0, 0)] * (array.ndim - len(padding)) + list(zip(padding, after, strict=True))
    return np.pad(array, widths, constant_values=fill)


def _windows(array: np.ndarray, kernel: Sizes, stride: Sizes, dilation: Sizes, out: Sizes) -> np.ndarray:
    """A view of shape (N, C, *out, *kernel)."""
    steps = array.strides
    strides = (
        *steps[:2],
        *(step * by for step, by in zip(steps[2:], stride, strict=True)),
        *(step * by for step, by in zip(steps[2:], dilation, strict=True)),
    )
    return np.lib.stride_tricks.as_strided(array, (*array.shape[:2], *out, *kernel), strides, writeable=False)


def _places(kernel: Sizes, stride: Sizes, dilation: Sizes, out: Sizes) -> Any:
    """For every place in the kernel: the place, and where the windows have it in the padded array."""
    for place in product(*map(range, kernel)):
        yield place, tuple(
            slice(at * by, at * by + step * (count - 1) + 1, step)
            for at, by, step, count in zip(place, dilation, stride, out, strict=True)
        )


def output_sizes(shape: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    return tuple(
        (size + 2 * pad - by * (width - 1) - 1) // step + 1
        for size, width, step, pad, by in zip(shape, kernel, stride, padding, dilation, strict=True)
    )


# ------------------------------------------------------------------------------------------------- convolution
def _convolution_gradients(
    F: Any, needs: Any, g: Any, input: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Any:
    window = (stride, padding, dilation, groups)
    return (
        F.convolution_input_gradient(g, weight, tuple(input.shape), *window) if needs[0] else None,
        F.convolution_weight_gradient(g, input, tuple(weight.shape), *window) if needs[1] else None,
        F.sum(g, (0, *range(2, len(g.shape))), False) if needs[2] else None,
    )


@operation(
    differentiable="input weight bias", together=_convolution_gradients, node="ConvolutionBackward0",
    name="convolution_core", **_PRIVATE,
)  # fmt: skip
def convolution_core(input, weight, bias=None, stride=(), padding=(), dilation=(), groups=1):  # type: ignore[no-untyped-def]
    kernel, spatial = weight.shape[2:], input.shape[2:]
    out = output_sizes(spatial, kernel, stride, padding, dilation)
    if min(out) < 1:
        raise RuntimeError(
            f"Calculated padded input size per channel: {_sides(spatial, padding)}. Kernel size: {_sides(kernel)}. "
            "Kernel size can't be greater than actual input size"
        )
    rank = len(kernel)
    windows = _windows(_padded(input, padding), kernel, stride, dilation, out)
    parts = []
    for chunk, filters in zip(np.split(windows, groups, 1), np.split(weight, groups), strict=True):
        axes = ([1, *range(2 + rank, 2 + 2 * rank)], [1, *range(2, 2 + rank)])
        parts.append(np.tensordot(chunk, filters, axes))  # (N, *out, filters)
    made = np.moveaxis(parts[0] if groups == 1 else np.concatenate(parts, -1), -1, 1)
    if bias is not None:
        made = made + bias.reshape(1, -1, *([1] * rank))
    return np.ascontiguousarray(made)


def _sides(sizes: Any, padding: Any = None) -> str:
    padding = (0,) * len(sizes) if padding is None else padding
    return "(" + " x ".join(str(size + 2 * pad) for size, pad in zip(sizes, padding, strict=True)) + ")"


@operation(
    grad="convolution_core(g, weight, None, stride, padding, dilation, groups)",
    weight="convolution_weight_gradient(grad, g, weight_shape, stride, padding, dilation, groups)",
    node="ConvolutionBackward0",
    **_PRIVATE,
)
def convolution_input_gradient(grad, weight, shape, stride, padding, dilation, groups):  # type: ignore[no-untyped-def]
    """The adjoint of a convolution in its input; also the transposed convolution."""
    kernel, out = weight.shape[2:], grad.shape[2:]
    rank = len(kernel)
    sides = tuple(size + 2 * pad for size, pad in zip(shape[2:], padding, strict=True))
    made = np.zeros((*shape[:2], *sides), grad.dtype)
    width = shape[1] // groups
    chunks = zip(np.split(grad, groups, 1), np.split(weight, groups), strict=True)
    for number, (chunk, filters) in enumerate(chunks):
        columns = np.tensordot(chunk, filters, ([1], [0]))  # (N, *out, C, *kernel)
        columns = np.moveaxis(columns, rank + 1, 1)
        target = made[:, number * width : (number + 1) * width]
        for place, where in _places(kernel, stride, dilation, out):
            target[(slice(None), slice(None), *where)] += columns[(..., *place)]
    inner = tuple(slice(pad, pad + size) for pad, size in zip(padding, shape[2:], strict=True))
    return np.ascontiguousarray(made[(slice(None), slice(None), *inner)])


@operation(
    grad="convolution_core(input, g, None, stride, padding, dilation, groups)",
    input="convolution_input_gradient(grad, g, input_shape, stride, padding, dilation, groups)",
    node="ConvolutionBackward0",
    **_PRIVATE,
)
def convolution_weight_gradient(grad, input, shape, stride, padding, dilation, groups):  # type: ignore[no-untyped-def]
    """The adjoint of a convolution in its weight."""
    kernel, out = shape[2:], grad.shape[2:]
    windows = _windows(_padded(input, padding), kernel, stride, dilation, out)
    axes = [0, *range(2, 2 + len(kernel))]
    chunks = zip(np.split(grad, groups, 1), np.split(windows, groups, 1), strict=True)
    parts = [np.tensordot(chunk, seen, (axes, axes)) for chunk, seen in chunks]
    return parts[0] if groups == 1 else np.concatenate(parts)


# ----------------------------------------------------------------------------------------------------- pooling
def _beyond(shape: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes) -> Sizes:
    """Padding at the far ends, so that the last windows (which ceil_mode may let hang over) fit."""
    return tuple(
        max(pad, step * (count - 1) + by * (width - 1) + 1 - size - pad)
        for size, width, step, pad, by, count in zip(shape, kernel, stride, padding, dilation, out, strict=True)
    )


@operation(input="pool_scatter(g, indices, input_shape)", extra="indices", name="max_pool_core",
           node=lambda kept: f"MaxPool{len(kept['input_shape']) - 2}DWithIndicesBackward0", **_PRIVATE)  # fmt: skip
def max_pool_core(input, kernel, stride, padding, dilation, out):  # type: ignore[no-untyped-def]
    spatial = input.shape[2:]
    after = _beyond(spatial, kernel, stride, padding, dilation, out)
    lowest = -np.inf if input.dtype.kind == "f" else np.iinfo(input.dtype).min
    windows = _windows(_padded(input, padding, lowest, after), kernel, stride, dilation, out)
    flat = windows.reshape(*windows.shape[: 2 + len(out)], -1)
    chosen = flat.argmax(-1)
    made = np.take_along_axis(flat, chosen[..., None], -1)[..., 0]
    # The chosen place of each window, as an index into the flattened sample.
    indices = np.zeros_like(chosen)
    for axis, place in enumerate(np.unravel_index(chosen, kernel)):
        starts = np.arange(out[axis]) * stride[axis] - padding[axis]
        starts = starts.reshape([-1 if other == axis else 1 for other in range(len(out))])
        indices = indices * spatial[axis] + place * dilation[axis] + starts
    return made, indices


@operation(grad="pool_gather(g, indices)", tensors="indices", **_PRIVATE)
def pool_scatter(grad, indices, shape):  # type: ignore[no-untyped-def]
    """Add each number to the place its index names."""
    rows, size = shape[0] * shape[1], int(np.prod(shape[2:]))
    flat = (indices.reshape(rows, -1) + np.arange(rows)[:, None] * size).reshape(-1)
    made = np.bincount(flat, grad.reshape(-1), rows * size)
    return made.reshape(shape).astype(grad.dtype)


@operation(input="pool_scatter(g, indices, input_shape)", tensors="indices", **_PRIVATE)
def pool_gather(input, indices):  # type: ignore[no-untyped-def]
    """The numbers at the places the indices name."""
    rows = input.shape[0] * input.shape[1]
    taken = np.take_along_axis(input.reshape(rows, -1), indices.reshape(rows, -1), 1)
    return taken.reshape(indices.shape)


@operation(input="window_spread(g, input_shape, kernel, stride, padding, out)", name="window_sum", **_PRIVATE)
def window_sum(input, kernel, stride, padding, out):  # type: ignore[no-untyped-def]
    ones = (1,) * len(kernel)
    after = _beyond(input.shape[2:], kernel, stride, padding, ones, out)
    windows = _windows(_padded(input, padding, 0, after), kernel, stride, ones, out)
    return windows.sum(tuple(range(-len(kernel), 0)), dtype=input.dtype)


@operation(grad="window_sum(g, kernel, stride, padding, out)", name="window_spread", **_PRIVATE)
def window_spread(grad, shape, kernel, stride, padding, out):  # type: ignore[no-untyped-def]
    """The adjoint of ``window_sum``."""
    ones = (1,) * len(kernel)
    after = _beyond(shape[2:], kernel, stride, padding, ones, out)
    sides = (size + pad + more for size, pad, more in zip(shape[2:], padding, after, strict=True))
    made = np.zeros((*shape[:2], *sides), grad.dtype)
    for _, where in _places(kernel, stride, ones, out):
        made[(slice(None), slice(None), *where)] += grad
    inner = tuple(slice(pad, pad + size) for pad, size in zip(padding, shape[2:], strict=True))
    return made[(slice(None), slice(None), *inner)]
