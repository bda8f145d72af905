"""Parameter and Buffer: the tensors a module owns."""

from __future__ import annotations

from typing import Any

from ..tensor import Parameter, Tensor


class _BufferMeta(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor) and getattr(value, "_is_buffer", False)


class Buffer(metaclass=_BufferMeta):
    """Marks a tensor so that a Module registers it as a buffer when it is assigned as an attribute.

    The call gives back a plain tensor that remembers whether it belongs into the state dict.
    """

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        if data is None:
            import rushlight

            data = rushlight.empty(0)
        marked: Any = data.detach().requires_grad_(data.requires_grad)
        marked.persistent = persistent
        marked._is_buffer = True
        return marked


__all__ = ["Buffer", "Parameter"]
