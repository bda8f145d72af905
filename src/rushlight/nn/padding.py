"""Padding as modules."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import functional as F
from .module import Module


class _Pad(Module):
    """Pads the last dimensions; the subclass says how many, and in which way."""

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


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad):
    """Sequences with zeros at both ends."""

    _rank = 1


class ZeroPad2d(_ZeroPad):
    """Images in a frame of zeros."""

    _rank = 2


class ZeroPad3d(_ZeroPad):
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
