"""Dropout as modules."""

from __future__ import annotations

from collections.abc import Callable

from ..tensor import Tensor
from . import functional as F
from .module import Module


class _Dropout(Module):
    _function: Callable[..., Tensor]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return type(self)._function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Zeroes elements at random in training and scales the rest up."""

    _function = staticmethod(F.dropout)


class Dropout1d(_Dropout):
    """Zeroes whole channels of sequences."""

    _function = staticmethod(F.dropout1d)


class Dropout2d(_Dropout):
    """Zeroes whole channels of images."""

    _function = staticmethod(F.dropout2d)


class Dropout3d(_Dropout):
    """Zeroes whole channels of volumes."""

    _function = staticmethod(F.dropout3d)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean and variance, for SELU networks."""

    _function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """Alpha dropout of whole channels."""

    _function = staticmethod(F.feature_alpha_dropout)
