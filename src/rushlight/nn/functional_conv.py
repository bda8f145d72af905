"""Convolution, pooling, padding and resampling as functions."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor
from typing import Any

import rushlight

from ..ops.table import RAW, TENSORS
from ..tensor import Tensor, wrap
from .window_ops import output_sizes  # importing it also registers the operations


def per_dimension(value: Any, rank: int, name: str) -> tuple[int, ...]:
    """One number per spatial dimension."""
    if isinstance(value, int):
        return (value,) * rank
    value = tuple(int(one) for one in value)
    if len(value) == 1:
        return value * rank
    if len(value) != rank:
        raise RuntimeError(f"expected {name} to be a single integer value or a list of {rank} values, but got {value}")
    return value


def _batched(input: Tensor, rank: int, name: str) -> tuple[Tensor, bool]:
    if input.dim() not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input.shape)}"
        )
    return (input.unsqueeze(0), True) if input.dim() == rank + 1 else (input, False)


def _check_channels(input: Tensor, weight: Tensor, wanted: int, kind: str) -> None:
    if input.size(1) != wanted:
        raise RuntimeError(
            f"Given {kind}, weight of size {list(weight.shape)}, expected input{list(input.shape)} to have {wanted} "
            f"channels, but got {input.size(1)} channels instead"
        )


def _same_padding(
    input: Tensor, kernel: Any, stride: Any, dilation: Any, rank: int
) -> tuple[Tensor, tuple[int, ...]]:
    """Pad so that the output is as large as the input; what is uneven goes to the far end."""
    if any(step != 1 for step in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    needed = [by * (width - 1) for by, width in zip(dilation, kernel, strict=True)]
    extra = [total - 2 * (total // 2) for total in needed]
    if any(extra):
        input = TENSORS.constant_pad_nd(input, [side for more in reversed(extra) for side in (0, more)])
    return input, tuple(total // 2 for total in needed)


def _convolve(
    rank: int, input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    name = f"conv{rank}d"
    stride = per_dimension(stride, rank, "stride")
    dilation = per_dimension(dilation, rank, "dilation")
    batch, single = _batched(input, rank, name)
    _check_channels(batch, weight, weight.size(1) * groups, f"groups={groups}")
    if weight.size(0) % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size {list(weight.shape)} instead"
        )
    if padding == "same":
        batch, padding = _same_padding(batch, weight.shape[2:], stride, dilation, rank)
    else:
        padding = (0,) * rank if padding == "valid" else per_dimension(padding, rank, "padding")
    result = TENSORS.convolution_core(batch, weight, bias, stride, padding, dilation, groups)
    return result.squeeze(0) if single else result


def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    return _convolve(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    return _convolve(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    return _convolve(3, input, weight, bias, stride, padding, dilation, groups)


def _convolve_transposed(
    rank: int, input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: int,
    dilation: Any,
) -> Tensor:  # fmt: skip
    stride, padding = per_dimension(stride, rank, "stride"), per_dimension(padding, rank, "padding")
    extra, dilation = per_dimension(output_padding, rank, "output_padding"), per_dimension(dilation, rank, "dilation")
    batch, single = _batched(input, rank, f"conv_transpose{rank}d")
    _check_channels(batch, weight, weight.size(0), "transposed=1")
    if any(more >= step and more >= by for more, step, by in zip(extra, stride, dilation, strict=True)):
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {extra}")
    sizes = tuple(
        (size - 1) * step - 2 * pad + by * (width - 1) + more + 1
        for size, step, pad, by, width, more in zip(
            batch.shape[2:], stride, padding, dilation, weight.shape[2:], extra, strict=True
        )
    )
    shape = (batch.size(0), weight.size(1) * groups, *sizes)
    result = TENSORS.convolution_input_gradient(batch, weight, shape, stride, padding, dilation, groups)
    if bias is not None:
        result = result + bias.reshape(1, -1, *([1] * rank))
    return result.squeeze(0) if single else result


def conv_transpose1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Tensor:  # fmt: skip
    return _convolve_transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Tensor:  # fmt: skip
    return _convolve_transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Tensor:  # fmt: skip
    return _convolve_transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


def _pick_filters(input: Tensor, kernel: tuple[int, ...], channels: int) -> Tensor:
    """For every channel one filter per place of the kernel, which picks that place."""
    count = kernel[0] * kernel[1]
    filters = rushlight.eye(count, dtype=input.dtype).reshape(count, 1, *kernel)
    return filters.repeat(channels, 1, 1, 1)


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of images as columns: (N, C * places, windows)."""
    kernel = per_dimension(kernel_size, 2, "kernel_size")
    batch, single = _batched(input, 2, "unfold")
    channels = batch.size(1)
    columns = conv2d(
        batch, _pick_filters(batch, kernel, channels), None, stride, padding, dilation, groups=channels
    ).flatten(2)
    return columns.squeeze(0) if single else columns


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Images from columns of windows; where windows overlap they are added."""
    kernel, sizes = per_dimension(kernel_size, 2, "kernel_size"), per_dimension(output_size, 2, "output_size")
    by, pad_by = per_dimension(dilation, 2, "dilation"), per_dimension(padding, 2, "padding")
    step = per_dimension(stride, 2, "stride")
    if input.dim() not in (2, 3):
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(input.shape)}"
        )
    batch = input.unsqueeze(0) if input.dim() == 2 else input
    count = kernel[0] * kernel[1]
    if batch.size(1) % count:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={batch.size(1)} and kernel_size={kernel}."
        )
    channels, out = batch.size(1) // count, output_sizes(sizes, kernel, step, pad_by, by)
    if out[0] * out[1] != batch.size(2):
        raise RuntimeError(
            f"Given output_size={sizes}, kernel_size={kernel}, dilation={by}, padding={pad_by}, stride={step}, "
            "expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{out[0]} * {out[1]} = {out[0] * out[1]}, but got input.size(2)={batch.size(2)}."
        )
    images = TENSORS.convolution_input_gradient(
        batch.reshape(batch.size(0), batch.size(1), *out), _pick_filters(batch, kernel, channels),
        (batch.size(0), channels, *sizes), step, pad_by, by, channels,
    )  # fmt: skip
    return images.squeeze(0) if input.dim() == 2 else images


# ----------------------------------------------------------------------------------------------------- pooling
def _pooled_sizes(
    shape: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[int, ...]:
    if any(2 * pad > by * (width - 1) + 1 for pad, width, by in zip(padding, kernel, dilation, strict=True)):
        raise RuntimeError(
            f"pad should be at most half of effective kernel size, but got pad={max(padding)}, "
            f"kernel_size={min(kernel)} and dilation={min(dilation)}"
        )
    if not ceil_mode:
        out = output_sizes(shape, kernel, stride, padding, dilation)
    else:
        counts = []
        for size, width, step, pad, by in zip(shape, kernel, stride, padding, dilation, strict=True):
            count = ceil((size + 2 * pad - by * (width - 1) - 1) / step) + 1
            # A window that would begin in the far padding is left out.
            counts.append(count - 1 if (count - 1) * step >= size + pad else count)
        out = tuple(counts)
    if min(out) < 1:
        raise RuntimeError(
            f"Given input size: {tuple(shape)}. Calculated output size: {out}. Output size is too small"
        )
    return out


def _max_pool(
    rank: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    return_indices: bool,
) -> Any:  # fmt: skip
    kernel = per_dimension(kernel_size, rank, "kernel_size")
    step = kernel if stride is None or stride == [] else per_dimension(stride, rank, "stride")
    pad, by = per_dimension(padding, rank, "padding"), per_dimension(dilation, rank, "dilation")
    batch, single = _batched(input, rank, f"max_pool{rank}d")
    out = _pooled_sizes(batch.shape[2:], kernel, step, pad, by, ceil_mode)
    result = TENSORS.max_pool_core(batch, kernel, step, pad, by, out)
    result = result.squeeze(0) if single else result
    if not return_indices:
        return result
    indices = wrap(RAW.max_pool_core(batch._array, kernel, step, pad, by, out)[1])
    return result, indices.squeeze(0) if single else indices


def _pool_function(rank: int) -> Callable[..., Any]:
    def max_pool(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        return _max_pool(rank, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

    max_pool.__name__ = max_pool.__qualname__ = f"max_pool{rank}d"
    return max_pool


max_pool1d, max_pool2d, max_pool3d = _pool_function(1), _pool_function(2), _pool_function(3)


def _average_pool(
    rank: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:  # fmt: skip
    kernel = per_dimension(kernel_size, rank, "kernel_size")
    step = kernel if stride is None or stride == [] else per_dimension(stride, rank, "stride")
    pad = per_dimension(padding, rank, "padding")
    batch, single = _batched(input, rank, f"avg_pool{rank}d")
    out = _pooled_sizes(batch.shape[2:], kernel, step, pad, (1,) * rank, ceil_mode)
    total = TENSORS.window_sum(batch, kernel, step, pad, out)
    if divisor_override is not None:
        result = total / divisor_override
    else:
        counts = rushlight.ones(1, dtype=batch.dtype)
        for axis, size in enumerate(batch.shape[2:]):
            low, high = (-pad[axis], size + pad[axis]) if count_include_pad else (0, size)
            starts = [place * step[axis] - pad[axis] for place in range(out[axis])]
            lengths = [min(start + kernel[axis], high) - max(start, low) for start in starts]
            shape = [-1 if other == axis else 1 for other in range(rank)]
            counts = counts * rushlight.tensor(lengths, dtype=batch.dtype).reshape(shape)
        result = total / counts
    return result.squeeze(0) if single else result


def avg_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    return _average_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    return _average_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    return _average_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _adaptive(rank: int, input: Tensor, output_size: Any, reduce: Callable[[Tensor, int], Tensor]) -> Tensor:
    """Reduce every dimension in turn over bins that cover it as evenly as possible."""
    wanted = (output_size,) * rank if isinstance(output_size, int) or output_size is None else tuple(output_size)
    for axis, count in zip(range(-rank, 0), wanted, strict=True):
        size = input.size(axis)
        count = size if count is None else count
        if count == size:
            continue
        bins = [
            reduce(input.narrow(axis, start, end - start), axis)
            for start, end in ((floor(i * size / count), ceil((i + 1) * size / count)) for i in range(count))
        ]
        input = bins[0] if count == 1 else rushlight.cat(bins, axis)
    return input


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    return _adaptive(1, input, output_size, lambda part, axis: part.mean(axis, keepdim=True))


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    return _adaptive(2, input, output_size, lambda part, axis: part.mean(axis, keepdim=True))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    return _adaptive(3, input, output_size, lambda part, axis: part.mean(axis, keepdim=True))


def _adaptive_max(rank: int, input: Tensor, output_size: Any, return_indices: bool) -> Tensor:
    if return_indices:
        raise NotImplementedError(f"adaptive_max_pool{rank}d: return_indices=True is not supported.")
    return _adaptive(rank, input, output_size, lambda part, axis: part.max(axis, keepdim=True)[0])


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    return _adaptive_max(1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    return _adaptive_max(2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    return _adaptive_max(3, input, output_size, return_indices)


# ------------------------------------------------------------------------------------------ padding, resampling
def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    return TENSORS.pad(input, pad, mode, value)


def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    """Resample the spatial dimensions by the nearest neighbour, or linearly."""
    rank = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    linear = {1: "linear", 2: "bilinear", 3: "trilinear"}.get(rank)
    if mode not in ("nearest", "nearest-exact", linear) or antialias:
        raise NotImplementedError(
            f"interpolate: mode={mode!r}, antialias={antialias} is not supported for {input.dim()}D input; "
            "'nearest', 'nearest-exact' and linear interpolation are."
        )
    if align_corners is not None and mode.startswith("nearest"):
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    factors: tuple[Any, ...] = (None,) * rank
    if scale_factor is not None:
        factors = tuple(scale_factor) if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * rank
        sizes = tuple(floor(length * factor) for length, factor in zip(input.shape[2:], factors, strict=True))
        if recompute_scale_factor:
            factors = (None,) * rank
    else:
        sizes = (size,) * rank if isinstance(size, int) else tuple(size)
    for axis, (wanted, factor) in enumerate(zip(sizes, factors, strict=True), 2):
        input = _resample(input, axis, wanted, factor, mode, bool(align_corners))
    return input


def _resample(input: Tensor, axis: int, wanted: int, factor: float | None, mode: str, align_corners: bool) -> Tensor:
    length = input.size(axis)
    scale = length / wanted if factor is None else 1 / factor
    if mode.startswith("nearest"):
        shift = 0.5 if mode == "nearest-exact" else 0.0
        places = [min(floor((place + shift) * scale), length - 1) for place in range(wanted)]
        return input.index_select(axis, rushlight.tensor(places))
    if align_corners:
        spots = [place * (length - 1) / (wanted - 1) if wanted > 1 else 0.0 for place in range(wanted)]
    else:
        spots = [max((place + 0.5) * scale - 0.5, 0.0) for place in range(wanted)]
    low = [min(floor(spot), length - 1) for spot in spots]
    high = [min(place + 1, length - 1) for place in low]
    shape = [-1 if other == axis else 1 for other in range(input.dim())]
    shares = [spot - place for spot, place in zip(spots, low, strict=True)]
    share = rushlight.tensor(shares, dtype=input.dtype).reshape(shape)
    first, second = (input.index_select(axis, rushlight.tensor(places)) for places in (low, high))
    return first * (1 - share) + second * share


def upsample(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
             align_corners: bool | None = None) -> Tensor:  # fmt: skip
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


