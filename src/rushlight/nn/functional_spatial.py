"""nn.functional over space: convolution, pooling, padding, resampling, sampling at grids."""

from __future__ import annotations

from collections.abc import Callable
from math import floor
from typing import Any

import numpy as np

from ..ops import resampling
from ..ops.convolution import (  # noqa: F401 - nn.functional has them from here
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from ..ops.pooling import adaptive_average, adaptive_max_with_indices, average_pool, max_pool_with_indices
from ..ops.table import TENSORS
from ..tensor import Tensor


def per_dimension(value: Any, rank: int) -> tuple[Any, ...]:
    """What modules keep of an option: a tuple with an entry for each dimension."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * rank


def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    return TENSORS.pad(input, pad, mode, value)


# -- pooling ---------------------------------------------------------------------------------------------------------
def _named(function: Callable, name: str, doc: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _max_pool(rank: int, with_indices: bool) -> Callable[..., Any]:
    def function(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                 ceil_mode: bool = False, return_indices: bool = with_indices) -> Any:
        pair = max_pool_with_indices(rank, input, kernel_size, stride, padding, dilation, ceil_mode)
        return pair if return_indices else pair[0]

    return _named(function, f"max_pool{rank}d{'_with_indices' if with_indices else ''}", "The largest of each window.")


def _adaptive_max_pool(rank: int, with_indices: bool) -> Callable[..., Any]:
    def function(input: Tensor, output_size: Any, return_indices: bool = with_indices) -> Any:
        pair = adaptive_max_with_indices(rank, input, output_size)
        return pair if return_indices else pair[0]

    name = f"adaptive_max_pool{rank}d{'_with_indices' if with_indices else ''}"
    return _named(function, name, "The largest of each bin, of which there are as many as asked for.")


def _adaptive_avg_pool(rank: int) -> Callable[..., Tensor]:
    return _named(lambda input, output_size: adaptive_average(rank, input, output_size), f"adaptive_avg_pool{rank}d",
                  "The mean of each bin, of which there are as many as asked for.")


max_pool1d, max_pool2d, max_pool3d = (_max_pool(rank, False) for rank in (1, 2, 3))
max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = (
    _max_pool(rank, True) for rank in (1, 2, 3)
)
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive_max_pool(rank, False) for rank in (1, 2, 3))
adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices = (
    _adaptive_max_pool(rank, True) for rank in (1, 2, 3)
)
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive_avg_pool(rank) for rank in (1, 2, 3))


def avg_pool1d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Tensor:
    """The mean of each window."""
    return average_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def _avg_pool(rank: int) -> Callable[..., Tensor]:
    def function(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
        return average_pool(rank, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    return _named(function, f"avg_pool{rank}d", "The mean of each window.")


avg_pool2d, avg_pool3d = _avg_pool(2), _avg_pool(3)


def _lp_pool(rank: int) -> Callable[..., Tensor]:
    def function(
        input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Tensor:
        count = 1
        for width in per_dimension(kernel_size, rank):
            count *= width
        mean = average_pool(rank, TENSORS.pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
        return TENSORS.pow(TENSORS.sign(mean) * TENSORS.relu(TENSORS.abs(mean)) * count, 1.0 / norm_type)

    return _named(function, f"lp_pool{rank}d", "The p-norm of each window.")


lp_pool1d, lp_pool2d, lp_pool3d = (_lp_pool(rank) for rank in (1, 2, 3))


def _unpooled_size(rank: int, input: Tensor, kernel: tuple, stride: tuple, padding: tuple, output_size: Any) -> tuple:
    default = tuple((size - 1) * step + width - 2 * pad for size, step, width, pad
                    in zip(input.shape[-rank:], stride, kernel, padding, strict=True))
    if output_size is None:
        return default
    wanted = tuple(output_size)
    if len(wanted) == rank + 2:
        wanted = wanted[2:]
    if len(wanted) != rank:
        raise ValueError(f"output_size should be a sequence containing {rank} or {rank + 2} elements, but it has a "
                         "length of "
                         f"'{len(wanted)}'")
    for axis, (size, one, step) in enumerate(zip(default, wanted, stride, strict=True)):
        if not size - step < one < size + step:
            raise ValueError(f"invalid output_size \"{wanted}\" (dim {axis} must be between {size - step} and "
                             f"{size + step})")
    return wanted


def _max_unpool(rank: int) -> Callable[..., Tensor]:
    def function(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Tensor:
        kernel, pads = per_dimension(kernel_size, rank), per_dimension(padding, rank)
        step = kernel if stride is None else per_dimension(stride, rank)
        if input.dim() not in (rank + 1, rank + 2):
            raise RuntimeError(f"Input to max_unpooling{rank}d should be a {rank + 1}d or {rank + 2}d Tensor, but got "
                               "a tensor with "
                               f"{input.dim()} dimensions.")
        sizes = _unpooled_size(rank, input, kernel, step, pads, output_size)
        if rank > 1:
            return TENSORS._max_unpool(input, indices, sizes, rank)
        lifted = TENSORS._max_unpool(TENSORS.unsqueeze(input, -1), TENSORS.unsqueeze(indices, -1), (*sizes, 1), 2)
        return TENSORS.squeeze(lifted, -1)

    return _named(function, f"max_unpool{rank}d", "Zeros, with each number at the place its index names.")


max_unpool1d, max_unpool2d, max_unpool3d = (_max_unpool(rank) for rank in (1, 2, 3))


def _fractional_sizes(rank: int, input: Tensor, output_size: Any, output_ratio: Any) -> tuple[int, ...]:
    name = f"fractional_max_pool{rank}d"
    if output_size is not None:
        return per_dimension(output_size, rank)
    if output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    ratios = per_dimension(output_ratio, rank)
    return tuple(int(size * ratio) for size, ratio in zip(input.shape[-rank:], ratios, strict=True))


def _fractional_max_pool(rank: int, with_indices: bool) -> Callable[..., Any]:
    def function(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                 return_indices: bool = with_indices, _random_samples: Tensor | None = None) -> Any:
        sizes = _fractional_sizes(rank, input, output_size, output_ratio)
        samples = _random_samples
        if input.dim() not in (rank + 1, rank + 2):
            raise RuntimeError(f"fractional_max_pool{rank}d(): Expected {rank + 1}D or {rank + 2}D tensor, but got: "
                               f"{list(input.shape)}")
        if samples is None:
            count = 1 if input.dim() == rank + 1 else input.shape[0]
            samples = TENSORS.rand(count, input.shape[-rank - 1], rank, dtype=input.dtype)
        pair = TENSORS._fractional_max_pool(input, per_dimension(kernel_size, rank), sizes, samples)
        return pair if return_indices else pair[0]

    name = f"fractional_max_pool{rank}d{'_with_indices' if with_indices else ''}"
    return _named(function, name, "The largest of windows that lie at random.")


fractional_max_pool2d, fractional_max_pool3d = _fractional_max_pool(2, False), _fractional_max_pool(3, False)
fractional_max_pool2d_with_indices = _fractional_max_pool(2, True)
fractional_max_pool3d_with_indices = _fractional_max_pool(3, True)


# -- interpolation ---------------------------------------------------------------------------------------------------
_MODES = ("nearest", "linear", "bilinear", "bicubic", "trilinear", "lanczos", "area", "nearest-exact")
_NEEDS = {"linear": 3, "bilinear": 4, "trilinear": 5}
_SMOOTH = ("linear", "bilinear", "bicubic", "trilinear", "lanczos")
_NAMES = {"nearest": "UpsampleNearest", "nearest-exact": "UpsampleNearestExact", "linear": "UpsampleLinear",
          "bilinear": "UpsampleBilinear", "trilinear": "UpsampleTrilinear", "bicubic": "UpsampleBicubic",
          "lanczos": "UpsampleLanczos"}


def _target(input: Tensor, size: Any, scale_factor: Any, recompute: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """The sizes wanted, and the factors to reckon with where they were given."""
    spatial = tuple(input.shape[2:])
    rank = len(spatial)
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        sizes = per_dimension(size, rank)
        if len(sizes) != rank:
            raise ValueError("Input and output must have the same number of spatial dimensions, but got input with "
                             "spatial "
                             f"dimensions of {list(spatial)} and output size of {size}. Give one size for each.")
        for one in sizes:
            if not hasattr(one, "__index__"):
                raise TypeError("interpolate() received an invalid combination of arguments: sizes must be integers, "
                                f"not {size}")
        return tuple(int(one) for one in sizes), (None,) * rank
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    factors = per_dimension(scale_factor, rank)
    if len(factors) != rank:
        raise ValueError("Input and scale_factor must have the same number of spatial dimensions, but got input with "
                         "spatial "
                         f"dimensions of {list(spatial)} and scale_factor of shape {scale_factor}. Give one factor "
                         "for each.")
    sizes = tuple(floor(float(length) * float(factor)) for length, factor in zip(spatial, factors, strict=True))
    return sizes, (None,) * rank if recompute else tuple(float(factor) for factor in factors)


def _check_interpolation(input: Tensor, mode: str, align_corners: Any, antialias: bool) -> None:
    count = input.dim()
    if align_corners is not None and mode in ("nearest", "area", "nearest-exact"):
        raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | "
                         "bicubic | trilinear")
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and count == 4):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D "
                         "tensor as input")
    if count in (3, 4, 5) and mode in _NEEDS and _NEEDS[mode] != count:
        raise NotImplementedError(f"Got {count}D input, but {mode} mode needs {_NEEDS[mode]}D input")
    if count not in (3, 4, 5) or mode not in _MODES or (mode in ("bicubic", "lanczos") and count != 4):
        raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {count}D) for the "
                                  "modes: "
                                  f"{' | '.join(_MODES)} (got {mode})")


def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    """Resample the spatial dimensions to other sizes."""
    sizes, factors = _target(input, size, scale_factor, recompute_scale_factor)
    _check_interpolation(input, mode, align_corners, antialias)
    if mode == "lanczos" and (align_corners or not antialias):
        raise ValueError("Lanczos mode requires antialias=True" if not antialias
                         else "Lanczos mode does not support align_corners=True")
    spatial = tuple(input.shape[2:])
    rank = len(spatial)
    if mode == "area":
        return adaptive_average(rank, input, sizes)
    if min((*sizes, *spatial)) <= 0:
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input {spatial} output {sizes}")
    nearest = mode.startswith("nearest")
    array = input._array
    resampling.refuse_dtype(f"upsample_{mode.replace('-', '_')}{rank}d", input, "bc" if nearest else "biuc")
    if nearest and array.dtype.kind in "iu" and array.dtype != np.uint8:
        resampling.refuse_dtype(f"upsample_nearest{rank}d_channels_last", input, "iu")
    kind = np.float64 if array.dtype == np.float64 else np.float32
    align = bool(align_corners)
    taps = []
    for length, wanted, factor in zip(spatial, sizes, factors, strict=True):
        if nearest:
            taps.append(resampling.nearest_taps(length, wanted, factor, mode == "nearest-exact", rank == 2))
        elif antialias:
            taps.append(resampling.antialias_taps(length, wanted, align, factor, kind, mode))
        elif mode == "bicubic":
            taps.append(resampling.cubic_taps(length, wanted, align, factor, kind))
        else:
            taps.append(resampling.linear_taps(length, wanted, align, factor, kind))
    return TENSORS._resample(input, tuple(taps), f"{_NAMES[mode]}{rank}D{'Aa' if antialias else ''}")


def upsample(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
             align_corners: bool | None = None) -> Tensor:  # fmt: skip
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


# -- grids -----------------------------------------------------------------------------------------------------------
def _warn_corners(name: str) -> None:
    import warnings

    warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Pass "
                  f"align_corners to {name} to say which is meant.", UserWarning, stacklevel=3)


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:  # fmt: skip
    """The input at the points of a grid, whose coordinates run from -1 to 1 over each dimension."""
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError("nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but "
                         "got: "
                         f"'{mode}'")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
                         "'reflection', but got: "
                         f"'{padding_mode}'")
    if align_corners is None:
        _warn_corners("grid_sample")
    shapes = f"input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
    rank = input.dim() - 2
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, but got {shapes}")
    if rank not in (2, 3) or grid.dim() != rank + 2:
        raise RuntimeError("grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got "
                           f"{shapes}")
    if grid.shape[-1] != rank:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {rank} in last dimension, but got grid with "
                           "sizes "
                           f"{list(grid.shape)}")
    if not all(input.shape[2:]):
        empty = 2 + list(input.shape[2:]).index(0)
        raise RuntimeError("grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                           f"{list(input.shape)} with dimension {empty} being empty")
    if mode == "bicubic" and rank != 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if input.dtype != grid.dtype:
        raise RuntimeError(f"grid_sampler(): expected input and grid to have same dtype, but input has {input.dtype} "
                           "and grid has "
                           f"{grid.dtype}")
    resampling.refuse_dtype(f"grid_sampler_{rank}d_cpu_kernel_impl", input, "biuc")
    return TENSORS._grid_sample(input, grid, mode, padding_mode, bool(align_corners), (0,) * rank)


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The grid that samples through an affine map: for grid_sample."""
    sizes = tuple(int(one) for one in size)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(sizes) not in (4, 5):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
                                  "respectively. "
                                  f"Got size {sizes}.")
    rank = len(sizes) - 2
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (rank, rank + 1):
        raise ValueError(f"Expected a batch of {rank}D affine matrices of shape Nx{rank}x{rank + 1} for size {sizes}. "
                         "Got "
                         f"{theta.shape}.")
    if min(sizes) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {sizes}")
    if align_corners is None:
        _warn_corners("affine_grid")
    if theta.shape[0] != sizes[0]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{sizes[0]}, {rank + 1}] "
                           "but got: "
                           f"[{theta.shape[0]}, {rank + 1}].")
    return TENSORS.affine_grid_generator(theta, sizes, bool(align_corners))


# -- columns, pixels -------------------------------------------------------------------------------------------------
def _pairs(**options: Any) -> list[tuple[int, int]]:
    made = []
    for name, value in options.items():
        pair = per_dimension(value, 2)
        if len(pair) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(pair)}")
        made.append(pair)
    return made  # type: ignore[return-value]


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of images as columns."""
    return TENSORS.im2col(input, *_pairs(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride))


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Images from columns, adding up what overlaps."""
    pairs = _pairs(output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    return TENSORS.col2im(input, *pairs)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(..., C * r * r, H, W) as (..., C, H * r, W * r)."""
    return TENSORS.pixel_shuffle(input, upscale_factor)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(..., C, H * r, W * r) as (..., C * r * r, H, W)."""
    return TENSORS.pixel_unshuffle(input, downscale_factor)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    return TENSORS.channel_shuffle(input, groups)
