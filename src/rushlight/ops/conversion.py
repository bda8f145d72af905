"""Changing dtype and device, and handing a tensor's memory to others: to(), float(), numpy(), DLPack."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor
from .table import TENSORS, method, public

_PYTHON_TYPES = (float, int, bool, complex)  # before the methods of these names take them over below


@method
def to(self: Tensor, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False, non_blocking: bool = False,
       memory_format: Any = None) -> Tensor:
    """The tensor with another dtype or on another device; itself where nothing changes."""
    switches = [argument for argument in args if argument is True or argument is False]  # non_blocking, then copy
    copy = copy or len(switches) > 1 and switches[1]
    for argument in args:
        if isinstance(argument, Tensor):
            dtype = argument.dtype
        elif argument.__class__ is dtypes.dtype or argument in _PYTHON_TYPES:
            dtype = argument
        elif argument is not True and argument is not False and argument is not None:
            device = argument
    if device is not None:
        from ..arrays.devices import require_cpu
        require_cpu(device)
    return _converted(self, self._array.dtype if dtype is None else dtypes.to_numpy(dtype), copy)


def _converted(tensor: Tensor, wanted: np.dtype, copy: bool = False) -> Tensor:
    if wanted == tensor._array.dtype:
        return TENSORS.clone(tensor) if copy else tensor
    if tensor._array.dtype.kind == "c" and wanted.kind != "c":
        import warnings
        warnings.warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=4)
    return TENSORS.cast(tensor, wanted)


@method
def type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    if dtype is None:
        from .unpack import type_name
        return f"torch.{type_name(self.dtype.name)}Tensor"
    if isinstance(dtype, str):
        from .unpack import type_name
        for known in dtypes.ALL:
            if dtype in (f"torch.{type_name(known.name)}Tensor", f"torch.{known.name}"):
                return _converted(self, known.numpy)
        raise ValueError(f"invalid type: '{dtype}'")
    return _converted(self, dtypes.to_numpy(getattr(dtype, "dtype", dtype)))


@method
def type_as(self: Tensor, other: Tensor) -> Tensor:
    if not isinstance(other, Tensor):
        raise TypeError(f"type_as(): argument 'other' (position 1) must be Tensor, not {other.__class__.__name__}")
    return _converted(self, other._array.dtype)


def _short(name: str, target: dtypes.dtype) -> None:
    def convert(self: Tensor, memory_format: Any = None) -> Tensor:
        return _converted(self, target.numpy)

    convert.__name__ = convert.__qualname__ = name
    method(convert)


for _name, _target in (("float", dtypes.float32), ("double", dtypes.float64), ("half", dtypes.float16),
                       ("bfloat16", dtypes.bfloat16), ("long", dtypes.int64), ("int", dtypes.int32),
                       ("short", dtypes.int16), ("char", dtypes.int8),
                       ("byte", dtypes.uint8), ("bool", dtypes.bool_), ("cfloat", dtypes.complex64),
                       ("cdouble", dtypes.complex128)):
    _short(_name, _target)


@method
def chalf(self: Tensor, memory_format: Any = None) -> Tensor:
    raise NotImplementedError("Tensor.chalf: NumPy has no complex numbers of half precision; use cfloat() instead")


@method
def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    return self


@method
def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    from ..arrays.devices import require_cpu
    require_cpu("cuda")
    return self


@method
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    raise RuntimeError("Cannot access accelerator device when none is available: pinned memory serves copies to a GPU")


@method
def is_pinned(self: Tensor, device: Any = None) -> bool:
    return False


@method
def get_device(self: Tensor) -> int:
    return -1


@method
def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The tensor's memory as an array."""
    if self._node is not None and not force:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    return self._array


@method
def is_floating_point(self: Tensor) -> bool:
    return dtypes.category(self._array.dtype) == dtypes.FLOATING


@method
def is_complex(self: Tensor) -> bool:
    return self._array.dtype.kind == "c"


@public
@method
def is_nonzero(input: Tensor) -> Any:
    return input.__bool__()


@method
def is_signed(self: Tensor) -> bool:
    return self.dtype.is_signed


@method
def __dlpack__(self: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
               copy: Any = None) -> Any:
    if self._node is not None:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    return self._array.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)


@method
def __dlpack_device__(self: Tensor) -> tuple:
    return self._array.__dlpack_device__()


@method
def __format__(self: Tensor, spec: str) -> str:
    if not self._shape:
        from ..tensor.printing import format_number
        return format_number(self.item(), spec)
    return object.__format__(self, spec) if spec else str(self)


@method
def share_memory_(self: Tensor) -> Tensor:
    raise NotImplementedError("share_memory_(): tensors in memory shared between processes are not supported. Send the "
                              "tensor itself (it is pickled), or use multiprocessing.shared_memory with from_numpy().")
