"""Pooling, padding and resampling as modules."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import functional as F
from ..ops.convolution import per_dimension
from .module import Module


class _MaxPool(Module):
    _rank = 0

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return getattr(F, f"max_pool{self._rank}d")(
            input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest of each window of sequences."""

    _rank = 1


class MaxPool2d(_MaxPool):
    """The largest of each window of images."""

    _rank = 2


class MaxPool3d(_MaxPool):
    """The largest of each window of volumes."""

    _rank = 3


class AvgPool1d(Module):
    """The mean of each window of sequences."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = per_dimension(kernel_size, 1, "kernel_size")
        self.stride = per_dimension(kernel_size if stride is None else stride, 1, "stride")
        self.padding = per_dimension(padding, 1, "padding")
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """The mean of each window of images."""

    _rank = 2

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, f"avg_pool{self._rank}d")(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool3d(AvgPool2d):
    """The mean of each window of volumes."""

    _rank = 3


class _AdaptivePool(Module):
    _function = ""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptivePool):
    """Means over bins, as many as asked for."""

    _function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptivePool):
    """Means over bins of images."""

    _function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptivePool):
    """Means over bins of volumes."""

    _function = "adaptive_avg_pool3d"


class AdaptiveMaxPool1d(_AdaptivePool):
    """Maxima over bins."""

    _function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptivePool):
    """Maxima over bins of images."""

    _function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptivePool):
    """Maxima over bins of volumes."""

    _function = "adaptive_max_pool3d"


class _Pad(Module):
    _rank = 0
    _mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self._rank) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Sequences with a constant at both ends."""

    _rank = 1


class ConstantPad2d(_ConstantPad):
    """Images in a frame of a constant."""

    _rank = 2


class ConstantPad3d(_ConstantPad):
    """Volumes in a shell of a constant."""

    _rank = 3


class ZeroPad1d(_Pad):
    """Sequences with zeros at both ends."""

    _rank = 1


class ZeroPad2d(_Pad):
    """Images in a frame of zeros."""

    _rank = 2


class ZeroPad3d(_Pad):
    """Volumes in a shell of zeros."""

    _rank = 3


class ReflectionPad1d(_Pad):
    """Sequences mirrored at both ends."""

    _rank, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Images mirrored at their edges."""

    _rank, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Volumes mirrored at their faces."""

    _rank, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Sequences with their end values repeated."""

    _rank, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Images with their edge values repeated."""

    _rank, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Volumes with their face values repeated."""

    _rank, _mode = 3, "replicate"


class CircularPad1d(_Pad):
    """Sequences that go round."""

    _rank, _mode = 1, "circular"


class CircularPad2d(_Pad):
    """Images that go round."""

    _rank, _mode = 2, "circular"


class CircularPad3d(_Pad):
    """Volumes that go round."""

    _rank, _mode = 3, "circular"


class PixelShuffle(Module):
    """Channels into finer pixels."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Pixels into more channels."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class Upsample(Module):
    """Resamples the spatial dimensions."""

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images enlarged by the nearest neighbour."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Images enlarged bilinearly, corners on corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class Unfold(Module):
    """The windows of images as columns."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )


class Fold(Unfold):
    """Images from columns of windows."""

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, " + super().extra_repr()
