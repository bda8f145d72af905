"""Normalisation layers."""

from __future__ import annotations

from typing import Any

import rushlight

from ..tensor import Tensor
from . import functional as F
from . import init
from .linear import empty_parameter
from .module import Module


def _add_affine(module: Module, weight: bool, bias: bool, shape: tuple[int, ...], device: Any, dtype: Any) -> None:
    """Register ``weight`` and ``bias`` of this shape, or None in their places."""
    for name, wanted in (("weight", weight), ("bias", bias)):
        module.register_parameter(name, empty_parameter(shape, device, dtype) if wanted else None)


def _reset_affine(module: Any) -> None:
    if module.weight is not None:
        init.ones_(module.weight)
    if getattr(module, "bias", None) is not None:
        init.zeros_(module.bias)


def _as_shape(normalized_shape: Any) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(Module):
    """Normalises each sample over its last dimensions."""

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        _add_affine(self, elementwise_affine, elementwise_affine and bias, self.normalized_shape, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides each sample by the root of its mean square over the last dimensions."""

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        parameter = empty_parameter(self.normalized_shape, device, dtype) if elementwise_affine else None
        self.register_parameter("weight", parameter)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Normalises groups of channels of each sample."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        _add_affine(self, affine, affine and bias, (num_channels,), device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """Divides by a power of the mean square of neighbouring channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class _RunningNorm(Module):
    """Batch and instance norms: channels, optional affine parameters, optional running statistics."""

    _version = 2
    # The numbers of dimensions an input may have, and how the error says so.
    _dimensions: tuple[int, ...] = ()
    _dimensions_text = ""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        _add_affine(self, affine, affine and bias, (num_features,), device, dtype)
        if track_running_stats:
            self.register_buffer("running_mean", rushlight.zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", rushlight.ones(num_features, device=device, dtype=dtype))
            self.register_buffer(
                "num_batches_tracked", rushlight.tensor(0, dtype=rushlight.long, device=device)
            )
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        _reset_affine(self)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self._dimensions:
            raise ValueError(f"expected {self._dimensions_text} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *lists: Any) -> None:
        # States older than version 2 do not count batches.
        key = prefix + "num_batches_tracked"
        if local_metadata.get("version", None) in (None, 1) and self.track_running_stats and key not in state_dict:
            counted = self.num_batches_tracked
            state_dict[key] = rushlight.tensor(0, dtype=rushlight.long) if counted is None else counted
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *lists)


class _BatchNorm(_RunningNorm):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        average = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the plain average of all batches
                average = 1.0 / float(self.num_batches_tracked)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        # Statistics that are not to be tracked are not handed on, so that nobody updates them.
        keep = not self.training or self.track_running_stats
        return F.batch_norm(
            input, self.running_mean if keep else None, self.running_var if keep else None, self.weight, self.bias,
            by_batch, average, self.eps,
        )  # fmt: skip


class BatchNorm1d(_BatchNorm):
    """Normalises the channels of (N, C) or (N, C, L) over the batch."""

    _dimensions = (2, 3)
    _dimensions_text = "2D or 3D"


class BatchNorm2d(_BatchNorm):
    """Normalises the channels of (N, C, H, W) over the batch."""

    _dimensions = (4,)
    _dimensions_text = "4D"


class BatchNorm3d(_BatchNorm):
    """Normalises the channels of (N, C, D, H, W) over the batch."""

    _dimensions = (5,)
    _dimensions_text = "5D"


class _InstanceNorm(_RunningNorm):
    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        single = input.dim() == self._dimensions[0]
        batch = input.unsqueeze(0) if single else input
        if batch.size(1) != self.num_features and self.affine:
            raise ValueError(
                f"expected input's size at dim={0 if single else 1} to match num_features ({self.num_features}), "
                f"but got: {batch.size(1)}."
            )
        result = F.instance_norm(
            batch, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats, 0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip
        return result.squeeze(0) if single else result


class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each sequence."""

    _dimensions = (2, 3)
    _dimensions_text = "2D or 3D"


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each image."""

    _dimensions = (3, 4)
    _dimensions_text = "3D or 4D"


class InstanceNorm3d(_InstanceNorm):
    """Normalises each channel of each volume."""

    _dimensions = (4, 5)
    _dimensions_text = "4D or 5D"
