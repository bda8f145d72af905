"""Tensors out of data: tensor(), as_tensor(), from_numpy(), the old-style constructors."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes
from .core import Tensor, wrap


class layout:
    """How a tensor's elements are stored; only `strided` is supported."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


strided = layout("strided")


class memory_format:
    """A hint on the order of dimensions in memory, accepted and ignored where it does not change values."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


def check_place(device: Any, pin_memory: Any = False, layout: Any = None) -> None:
    """Refuse what a factory function cannot give: another device, another layout."""
    if device is not None:
        from ..arrays.devices import require_cpu
        require_cpu(device)
    if layout is not None and layout is not strided:
        raise NotImplementedError(f"layout {layout!r} is not supported: Rushlight's tensors are strided")


def to_array(data: Any, dtype: np.dtype | None = None, copy: bool = True) -> np.ndarray:
    """An array of anything that tensor() accepts, with PyTorch's choice of dtype."""
    if isinstance(data, Tensor):
        array = data._array
    elif isinstance(data, np.ndarray):
        dtypes.from_numpy(data.dtype)
        array = data
    elif isinstance(data, np.generic):
        array = np.asarray(data)
        dtypes.from_numpy(array.dtype)
    elif isinstance(data, (bool, int, float, complex)):
        return _number(data, dtype)
    elif isinstance(data, (list, tuple, range)):
        return _nested(data, dtype)
    elif hasattr(data, "__array__") or hasattr(data, "__array_interface__") or hasattr(data, "__cuda_array_interface__"):
        array = np.asarray(data)
        dtypes.from_numpy(array.dtype)
    elif hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, (str, bytes, dict)):
        return _nested(list(data), dtype)
    else:
        if isinstance(data, (str, dict, set)) or data is None:
            if isinstance(data, str):
                raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
            raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


def _number(data: Any, dtype: np.dtype | None) -> np.ndarray:
    wanted = dtypes.number_dtype(data) if dtype is None else dtype
    try:
        return np.array(data, wanted)
    except OverflowError:
        raise RuntimeError(f"value cannot be converted to type {dtypes.from_numpy(wanted).name} without overflow") from None


def _nested(data: Any, dtype: np.dtype | None) -> np.ndarray:
    """Lists of numbers, tensors or arrays, nested to any depth."""
    shape = _nested_shape(data)
    leaves: list[Any] = []
    _flatten(data, shape, 0, leaves)
    if dtype is None:
        dtype = dtypes.default_numpy() if not leaves else None
        if dtype is None:
            kinds = {_leaf_dtype(leaf) for leaf in leaves}
            for kind in kinds:
                dtype = kind if dtype is None else dtypes.promote(dtype, kind)
    values = [leaf.item() if isinstance(leaf, (Tensor, np.ndarray, np.generic)) else leaf for leaf in leaves]
    try:
        return np.array(values, dtype).reshape(shape)
    except OverflowError:
        raise RuntimeError("Overflow when unpacking long: a number does not fit the dtype") from None


def _leaf_dtype(leaf: Any) -> np.dtype:
    if isinstance(leaf, Tensor):
        return leaf._array.dtype
    if isinstance(leaf, (np.ndarray, np.generic)):
        return leaf.dtype
    return dtypes.number_dtype(leaf)


def _nested_shape(data: Any) -> tuple[int, ...]:
    shape: list[int] = []
    while isinstance(data, (list, tuple, range)) or (isinstance(data, (Tensor, np.ndarray)) and len(data.shape)):
        if isinstance(data, (Tensor, np.ndarray)):
            shape.extend(data.shape)
            break
        shape.append(len(data))
        if not data:
            break
        data = data[0]
    return tuple(shape)


def _flatten(data: Any, shape: tuple[int, ...], depth: int, leaves: list) -> None:
    if depth == len(shape):
        if isinstance(data, (str, bytes, dict)) or data is None:
            raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
        if isinstance(data, (list, tuple)):
            raise ValueError(f"only one element tensors can be converted to Python scalars: expected a number at dim {depth} "
                             f"but got a sequence of length {len(data)}")
        if not isinstance(data, (bool, int, float, complex, np.generic)) and not (
                isinstance(data, (Tensor, np.ndarray)) and not len(data.shape)):
            raise TypeError(f"must be real number, not {type(data).__name__}")
        leaves.append(data)
        return
    if not hasattr(data, "__len__") or (isinstance(data, (Tensor, np.ndarray)) and not len(data.shape)):
        raise TypeError(f"expected a sequence of length {shape[depth]} at dim {depth}, not {type(data).__name__}: the nested "
                        "lists do not have one shape")
    if len(data) != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})")
    if isinstance(data, (Tensor, np.ndarray)):
        array = data._array if isinstance(data, Tensor) else data
        if array.shape != shape[depth:]:
            raise ValueError(f"expected shape {list(shape[depth:])} at dim {depth} (got {list(array.shape)})")
        leaves.extend(array.reshape(-1))
        return
    for one in data:
        _flatten(one, shape, depth + 1, leaves)


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A new leaf tensor with a copy of the data."""
    check_place(device, pin_memory)
    if isinstance(data, Tensor):
        import warnings
        warnings.warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                      "sourceTensor.detach().clone().requires_grad_(True), rather than tensor(sourceTensor).", UserWarning,
                      stacklevel=2)
    made = wrap(to_array(data, None if dtype is None else dtypes.to_numpy(dtype)))
    return made.requires_grad_() if requires_grad else made


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """The data as a tensor: the same tensor or memory where that is possible."""
    check_place(device)
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)  # type: ignore[attr-defined]
    wanted = None if dtype is None else dtypes.to_numpy(dtype)
    return wrap(to_array(data, wanted, copy=False))


asarray = as_tensor


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor over the array's own memory."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    dtypes.from_numpy(array.dtype)
    if any(stride < 0 for stride in array.strides):
        raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative strides are not "
                         "currently supported. (You can probably work around this by making a copy of your array with "
                         "array.copy().)")
    if not array.flags.writeable:
        import warnings
        warnings.warn("The given NumPy array is not writable: writing to this tensor raises an error. Copy the array if you "
                      "mean to write to it.", UserWarning, stacklevel=2)
    return wrap(array)


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    return wrap(np.frombuffer(buffer, dtypes.to_numpy(dtype), count, offset)).requires_grad_(requires_grad)


def scalar_tensor(value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    return tensor(value, dtype=dtype or dtypes.get_default_dtype(), device=device, requires_grad=requires_grad)


def from_dlpack(source: Any) -> Tensor:
    """A tensor over the memory of anything that speaks DLPack (a NumPy array, a PyTorch tensor, ...)."""
    if not hasattr(source, "__dlpack__"):
        raise TypeError(f"{type(source).__name__} has no __dlpack__: pass the object itself rather than its capsule")
    if hasattr(source, "__dlpack_device__") and int(source.__dlpack_device__()[0]) not in (1, 3, 11, 13):
        raise BufferError("the data is not in the memory of the CPU: copy it there first")
    return wrap(np.from_dlpack(source))


def legacy_tensor(*args: Any, dtype: np.dtype | None = None, **kwargs: Any) -> Tensor:
    """Tensor(2, 3), Tensor([1, 2]): sizes give uninitialised memory, a sequence gives its values as the default dtype."""
    device = kwargs.pop("device", None)
    check_place(device)
    if kwargs:
        raise TypeError(f"new() received an invalid keyword argument: {', '.join(kwargs)}")
    wanted = dtypes.default_numpy() if dtype is None else dtype
    if not args:
        return wrap(np.empty(0, wanted))
    if len(args) == 1:
        first = args[0]
        if isinstance(first, Tensor):
            if first._array.dtype != wanted:
                raise TypeError(f"expected {dtypes.from_numpy(wanted)} (got {first.dtype})")
            return first.detach()
        if isinstance(first, tuple) and type(first).__name__ == "Size":
            return wrap(np.zeros(first, wanted))
        if not isinstance(first, (int, np.integer)) or isinstance(first, bool):
            return wrap(to_array(first, wanted))
    return wrap(np.zeros(tuple(int(a) for a in args), wanted))


def typed_constructor(name: str, dtype: dtypes.dtype) -> Any:
    """FloatTensor, LongTensor, ...: the old-style constructors, which isinstance understands as well."""

    class Meta(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, Tensor) and value.dtype is dtype

        def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
            return legacy_tensor(*args, dtype=dtype.numpy, **kwargs)

    made = Meta(name, (), {"dtype": dtype, "is_cuda": False})
    made.__module__ = "torch"
    return made
