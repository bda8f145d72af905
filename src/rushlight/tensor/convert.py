"""Tensors into other things: text, copies, pickles."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes
from ..graph.node import LEAF
from .core import Parameter, Tensor, wrap


def tensor_repr(tensor: Tensor) -> str:
    from .printing import format_tensor
    grad_fn = tensor.grad_fn
    extras = []
    if tensor._tangent is not None and tensor._tangent[1] is not None:
        extras.append(f"tangent={tensor._tangent[1]!r}")
    prefix = "tensor(" if type(tensor) in (Tensor, Parameter) else f"{type(tensor).__name__}("
    return format_tensor(tensor._array, dtype_name=tensor.dtype.name,
                         default_float_name=dtypes.get_default_dtype().name, requires_grad=tensor.requires_grad,
                         grad_fn_name=None if grad_fn is None else grad_fn.name(),
                         class_prefix=prefix, extra_suffixes=extras)


def deepcopy_tensor(tensor: Tensor, memo: dict) -> Tensor:
    from copy import deepcopy
    if not tensor.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at "
                           "the moment. Copy tensor.detach(), or clone() to stay in the graph.")
    if id(tensor) in memo:
        return memo[id(tensor)]
    made = _rebuild(type(tensor), _deepcopy_array(tensor._array, memo), tensor._node is LEAF, None)
    memo[id(tensor)] = made
    if tensor._grad is not None:
        made._grad = deepcopy(tensor._grad, memo)
    made.__dict__.update({name: deepcopy(value, memo) for name, value in tensor.__dict__.items()
                          if not name.startswith("_") or name == "_is_buffer"})
    return made


def _deepcopy_array(array: np.ndarray, memo: dict) -> np.ndarray:
    """A copy of the array; views of one memory become views of one copy of it."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if owner.base is not None or not (owner.flags.c_contiguous or owner.flags.f_contiguous):
        return array.copy(order="K")
    key = ("rushlight memory", id(owner))
    copied, _ = memo.setdefault(key, (None, None))
    if copied is None:
        copied = owner.copy(order="K")
        memo[key] = copied, owner  # the owner as well, so that its id stays its own
    if array is owner:
        return copied
    offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return np.ndarray(array.shape, array.dtype, copied, offset, array.strides)


def reduce_tensor(tensor: Tensor) -> tuple:
    if not tensor.is_leaf:
        raise RuntimeError("only leaf tensors can be pickled: this one was computed, and a graph cannot be saved. "
                           "Pickle tensor.detach() instead.")
    extra = {k: v for k, v in tensor.__dict__.items() if not k.startswith("_")} or None
    if tensor._array.dtype.kind == "V":
        return _rebuild_bfloat16, (type(tensor), tensor._array.view(np.uint16), tensor._node is LEAF, extra)
    array = np.ascontiguousarray(tensor._array).reshape(tensor._shape)
    return _rebuild, (type(tensor), array, tensor._node is LEAF, extra)


def _rebuild_bfloat16(cls: type, bits: np.ndarray, requires_grad: bool, extra: dict | None) -> Tensor:
    return _rebuild(cls, bits.view(dtypes.bfloat16.numpy), requires_grad, extra)


def _rebuild(cls: type, array: np.ndarray, requires_grad: bool, extra: dict | None) -> Tensor:
    made: Any = wrap(array)
    if issubclass(cls, Parameter):
        made = cls(made, requires_grad)
    elif cls is not Tensor:
        blank: Any = object.__new__(cls)
        blank._node = blank._family = None
        blank._set_array(array)
        made = blank
    if requires_grad and made._node is None:
        made._node = LEAF
    if extra:
        made.__dict__.update(extra)
    return made
