"""Convolutions as modules."""

from __future__ import annotations

import math
from typing import Any

from ..tensor import Tensor
from . import functional as F
from . import init
from .functional_spatial import per_dimension
from .linear import empty_parameter
from .module import Module

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Weights, bias and window of a convolution; the subclass names its rank and direction."""

    _rank = 0
    _transposed = False
    padding: Any

    def _set_up(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
        output_padding: Any, groups: int, bias: bool, padding_mode: str, device: Any, dtype: Any,
    ) -> None:  # fmt: skip
        rank = self._rank
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(step != 1 for step in per_dimension(stride, rank)):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {set(_PADDING_MODES)}, but got padding_mode='{padding_mode}'"
            )
        if self._transposed and padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = per_dimension(kernel_size, rank)
        self.stride = per_dimension(stride, rank)
        self.padding = padding if isinstance(padding, str) else per_dimension(padding, rank)
        self.dilation = per_dimension(dilation, rank)
        self.transposed = self._transposed
        self.output_padding = per_dimension(output_padding, rank)
        self.groups = groups
        self.padding_mode = padding_mode
        channels = (in_channels, out_channels // groups) if self._transposed else (out_channels, in_channels // groups)
        self.weight = empty_parameter((*channels, *self.kernel_size), device, dtype)
        self.register_parameter("bias", empty_parameter((out_channels,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        rank = self._rank
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * rank:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * rank:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * rank:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._set_up(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, device,
            dtype,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        function = getattr(F, f"conv{self._rank}d")
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._sides(), mode=self.padding_mode)
            padding = 0
        return function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _sides(self) -> list[int]:
        """What F.pad takes, last dimension first."""
        sides: list[int] = []
        for axis in reversed(range(self._rank)):
            if self.padding == "same":
                total = self.dilation[axis] * (self.kernel_size[axis] - 1)
                sides += [total // 2, total - total // 2]
            else:
                pad = 0 if self.padding == "valid" else self.padding[axis]
                sides += [pad, pad]
        return sides


class Conv1d(_Conv):
    """Convolution of sequences."""

    _rank = 1


class Conv2d(_Conv):
    """Convolution of images."""

    _rank = 2


class Conv3d(_Conv):
    """Convolution of volumes."""

    _rank = 3


class _ConvTranspose(_ConvNd):
    _transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._set_up(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        extra = self.output_padding if output_size is None else self._padding_for(input, list(output_size))
        function = getattr(F, f"conv_transpose{self._rank}d")
        return function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )

    def _padding_for(self, input: Tensor, wanted: list[int]) -> tuple[int, ...]:
        """The output padding that gives the wanted size."""
        wanted = wanted[-self._rank :]
        sizes = input.shape[-self._rank :]
        extra = []
        for axis, (size, goal) in enumerate(zip(sizes, wanted, strict=True)):
            least = (size - 1) * self.stride[axis] - 2 * self.padding[axis]
            least += self.dilation[axis] * (self.kernel_size[axis] - 1) + 1
            most = least + self.stride[axis] - 1
            if not least <= goal <= most:
                raise ValueError(
                    f"requested an output size of {wanted}, but valid sizes range from {least} to {most} "
                    f"(for an input of {list(sizes)})"
                )
            extra.append(goal - least)
        return tuple(extra)


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution of sequences."""

    _rank = 1


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution of images."""

    _rank = 2


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution of volumes."""

    _rank = 3
