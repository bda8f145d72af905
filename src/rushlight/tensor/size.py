"""Size: the tuple that a tensor's shape is shown as."""
from __future__ import annotations

from math import prod
from typing import Any


class Size(tuple):
    """A shape. A tuple that prints and slices as PyTorch's does."""

    __slots__ = ()

    def numel(self) -> int:
        return prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        return Size(item) if isinstance(index, slice) else item

    def __add__(self, other: Any) -> Size:  # type: ignore[override]
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        return Size(tuple.__add__(other, self))

    def __mul__(self, times: Any) -> Size:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple:
        return Size, (tuple(self),)
