"""Operations that change a tensor's sizes in place, not its values: unsqueeze_, t_, resize_; and the memory behind it."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ..graph.modes import state
from ..graph.versions import bump, family_of
from ..tensor import Tensor
from .dimensions import sizes_of
from .inplace import check_writable
from .table import TENSORS, method, public


def _become(self: Tensor, view: Callable[[], Tensor]) -> Tensor:
    """Let a tensor be the view of itself that `view` makes, with its history."""
    differentiable = state.grad and self._node is not None
    check_writable(self, differentiable, values=False)
    others = [one for one in (reference() for reference in family_of(self).views or ()) if one is not None and one is not self]
    if self._view is None and any(one._view is not None and one._view.base is self for one in others):
        raise NotImplementedError(
            "changing the sizes of a tensor in place while other tensors are views of it is not supported: "
            "use the operation without the underscore"
        )
    made = view()
    self._set_array(made._array)
    if differentiable:
        self._node = made._node
    if self._view is not None:
        self._view = made._view
    made._view = None  # it goes now, and must not be taken for a view of a tensor of other sizes
    bump(self)
    return self


def _inplace(name: str, *further: str) -> None:
    def change(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return _become(self, lambda: getattr(TENSORS, name)(self, *args, **kwargs))

    change.__name__ = change.__qualname__ = name + "_"
    for one in (name, *further):
        setattr(Tensor, one + "_", change)


_inplace("unsqueeze")
_inplace("squeeze")
_inplace("t")
_inplace("transpose", "swapaxes", "swapdims")
_inplace("as_strided")


@method
def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Other sizes, keeping the memory and growing it where it is too small; new elements are not set."""
    if self._node is not None:
        raise RuntimeError("cannot resize variables that require grad")
    size = sizes_of(sizes)
    if any(one < 0 for one in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    array, count = self._array, prod(size)
    if size == array.shape:
        return self
    if self._view is not None:
        raise NotImplementedError("resize_() of a view is not supported: clone() it first")
    flat = array.reshape(-1)
    if count <= array.size:
        made = flat[:count].reshape(size)
    else:
        made = np.empty(size, array.dtype)
        made.reshape(-1)[: array.size] = flat
    self._set_array(made)
    bump(self)
    return self


@public
@method
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    return resize_(self, the_template._shape)


class Storage:
    """The memory that a tensor and the views of it share."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def data_ptr(self) -> int:
        return self._array.__array_interface__["data"][0]

    def nbytes(self) -> int:
        return self._array.nbytes

    size = __len__ = nbytes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and self.data_ptr() == other.data_ptr() and self.nbytes() == other.nbytes()

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.nbytes()))


@method
def untyped_storage(self: Tensor) -> Storage:
    """For programs that ask whether two tensors share memory."""
    return Storage(self._array if self._family is None else self._family.array)
