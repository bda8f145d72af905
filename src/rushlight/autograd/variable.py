"""Variable, the name tensors with gradients once had."""
from __future__ import annotations

from typing import Any

from ..tensor import Tensor


class _VariableMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """Calling it gives the tensor itself, with requires_grad as asked."""

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: Any = None) -> Any:
        made = data.detach()
        return made.requires_grad_() if requires_grad else made
