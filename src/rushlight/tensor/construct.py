"""Tensors out of data: tensor(), as_tensor(), from_numpy(), the old-style constructors."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes
from .core import Tensor, fresh, wrap


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
        _check_array(data)
        array = data
    elif isinstance(data, np.generic):
        array = np.asarray(data)
        dtypes.from_numpy(array.dtype)
    elif _is_sequence(data):
        if not hasattr(data, "__array__"):
            return _nested(data, dtype)
        array = np.asarray(data)
        dtypes.from_numpy(array.dtype)
    else:
        return _numbers([data], dtype).reshape(())
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy(order="K") if copy else array


def _check_array(array: np.ndarray) -> None:
    """Refuse an array that no tensor can have."""
    dtypes.from_numpy(array.dtype)
    if any(stride < 0 for stride in array.strides):
        raise ValueError("At least one stride in the given numpy array is negative, as after array[::-1]; tensors have "
                         "none. Pass array.copy().")


_NO_SEQUENCES = (Tensor, str, bytes, dict, np.generic)


def _is_sequence(data: Any) -> bool:
    """Whether tensor() looks for numbers inside it. A tensor within a list counts as one number."""
    if isinstance(data, (list, tuple, range)):
        return True
    return hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, _NO_SEQUENCES)


def _nested(data: Any, dtype: np.dtype | None) -> np.ndarray:
    """Sequences of numbers, nested to any depth."""
    shape: list[int] = []
    first = data
    while _is_sequence(first):
        shape.append(len(first))
        if not shape[-1]:
            break
        first = first[0]
    leaves: list[Any] = []
    _flatten(data, shape, 0, leaves)
    if isinstance(first, str):
        raise ValueError(f"too many dimensions '{type(first).__name__}'")
    return _numbers(leaves, dtype).reshape(shape)


def _flatten(data: Any, shape: list[int], depth: int, leaves: list) -> None:
    if depth == len(shape):
        leaves.append(data)
        return
    if not _is_sequence(data):
        raise TypeError(f"not a sequence: {type(data).__name__} at dim {depth}, where the first entry is a sequence of "
                        f"length {shape[depth]}")
    if len(data) != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})")
    if isinstance(data, np.ndarray) and data.shape == tuple(shape[depth:]):
        leaves.extend(data.reshape(-1))
        return
    for one in data:
        _flatten(one, shape, depth + 1, leaves)


def _numbers(leaves: list[Any], dtype: np.dtype | None) -> np.ndarray:
    """A flat array of the numbers in `leaves`; what does not fit is refused as PyTorch refuses it."""
    kinds = {type(leaf) for leaf in leaves}
    wanted = dtype
    if wanted is None:
        wanted = dtypes.default_numpy() if not leaves else None
        for number in [leaves[0]] if len(kinds) == 1 and kinds <= _PLAIN else leaves:
            kind = _leaf_dtype(number)
            wanted = kind if wanted is None else dtypes.promote(wanted, kind)
    assert wanted is not None
    category = dtypes.category(wanted)
    if not kinds <= _PLAIN:
        leaves = [_plain(leaf, category) for leaf in leaves]
    if category == dtypes.INTEGER:
        return _integers(leaves, wanted)
    try:
        return np.array(leaves, wanted)
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None
    except TypeError:
        raise TypeError("must be real number, not complex") from None


_PLAIN = {bool, int, float, complex}


def _plain(leaf: Any, category: int) -> Any:
    """A leaf as a Python number."""
    if isinstance(leaf, (Tensor, np.ndarray, np.generic)):
        size = leaf._array.size if isinstance(leaf, Tensor) else leaf.size
        if size != 1:
            raise ValueError(f"only one element tensors can be converted to Python scalars, and this one has {size}")
        return leaf.item()
    if isinstance(leaf, (int, float, complex)):
        return leaf
    name = type(leaf).__name__
    raise TypeError(f"'{name}' object cannot be interpreted as an integer" if category == dtypes.INTEGER
                    else f"must be real number, not {name}")


def _leaf_dtype(leaf: Any) -> np.dtype:
    if isinstance(leaf, Tensor):
        return leaf._array.dtype
    if isinstance(leaf, (np.ndarray, np.generic)):
        return leaf.dtype
    if isinstance(leaf, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(leaf).__name__}'")
    if _is_sequence(leaf):
        return dtypes.bool_.numpy  # refused a moment later, as a number of the dtype that the others ask for
    if not isinstance(leaf, (bool, int, float, complex)):
        raise RuntimeError(f"Could not infer dtype of {type(leaf).__name__}")
    return dtypes.number_dtype(leaf)


def _integers(leaves: list[Any], dtype: np.dtype) -> np.ndarray:
    given = np.array(leaves, None if leaves else dtype)
    if given.dtype.kind == "c":
        raise TypeError("'complex' object cannot be interpreted as an integer")
    if given.dtype.kind == "O" or (given.dtype.kind == "u" and dtype != given.dtype):
        raise ValueError("Overflow when unpacking long long")
    if given.dtype.kind == "f" and all(abs(leaf) < 2**63 for leaf in leaves):  # not so with nan
        dtypes.check_number(min(leaves), dtype)
        given = np.array([int(leaf) for leaf in leaves])
    if given.size:
        for extreme in (given.min().item(), given.max().item()):
            dtypes.check_number(extreme, dtype)
    return given.astype(dtype)


def as_leaf(made: Tensor, requires_grad: bool) -> Tensor:
    """The new tensor, requiring grad if that was asked for."""
    if requires_grad:
        if dtypes.category(made._array.dtype) < dtypes.FLOATING:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients, and this one would "
                               f"be {made.dtype.name}")
        made.requires_grad_()
    return made


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
           pin_memory: bool = False) -> Tensor:
    """A new leaf tensor with a copy of the data."""
    check_place(device, pin_memory)
    if isinstance(data, Tensor):
        import warnings
        warnings.warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone(): tensor() "
                      "is for data that is no tensor yet.", UserWarning, stacklevel=2)
    elif isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    return as_leaf(fresh(to_array(data, _wanted("tensor", dtype))), requires_grad)


def _wanted(function: str, dtype: Any) -> np.dtype | None:
    if dtype is None or dtype.__class__ is dtypes.dtype or dtype in (float, int, bool, complex):
        return None if dtype is None else dtypes.to_numpy(dtype)
    raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """The data as a tensor: the same tensor or memory where that is possible."""
    check_place(device)
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)  # type: ignore[attr-defined]
    return fresh(to_array(data, _wanted("as_tensor", dtype), copy=False))


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None,
            requires_grad: bool | None = None) -> Tensor:
    """The object as a tensor: over its memory unless copy=True, or where that cannot be (with copy=False: an error)."""
    made = as_tensor(obj, dtype, device)
    shared = made is obj or (isinstance(obj, np.ndarray) and np.may_share_memory(made._array, obj))
    if copy is False and not shared:
        raise ValueError(f"can't alias {type(obj).__name__} as a tensor with these options without a copy")
    if copy and shared:
        made = made.clone()  # type: ignore[attr-defined]
    if requires_grad is None:
        return made
    if made.requires_grad and not requires_grad:
        return made.detach()
    return made if made.requires_grad else as_leaf(made, requires_grad)


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor over the array's own memory."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    _check_array(array)
    if not array.flags.writeable:
        import warnings
        warnings.warn("The given NumPy array is not writable: writing to this tensor raises an error. Copy the array if "
                      "you mean to write to it.", UserWarning, stacklevel=2)
    return fresh(array)


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A tensor over the memory of an object with a buffer: bytes, bytearray, array.array, mmap."""
    kind = dtypes.to_numpy(dtype)
    length, size = memoryview(buffer).nbytes, kind.itemsize
    if not length or not count:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) "
                         "minus 1")
    if count > 0 and offset + count * size > length:
        raise ValueError(f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be "
                         f"greater than actual buffer length ({length} bytes)")
    if count < 0 and (length - offset) % size:
        raise ValueError(f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of "
                         f"element size ({size})")
    return as_leaf(wrap(np.frombuffer(buffer, kind, count, offset)), requires_grad)


def scalar_tensor(value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    return tensor(value, dtype=dtype or dtypes.get_default_dtype(), device=device, requires_grad=requires_grad)


def from_dlpack(source: Any) -> Tensor:
    """A tensor over the memory of anything that speaks DLPack (a NumPy array, a PyTorch tensor, ...)."""
    if not hasattr(source, "__dlpack__"):
        raise TypeError(f"{type(source).__name__} has no __dlpack__: pass the object itself rather than its capsule")
    if hasattr(source, "__dlpack_device__") and int(source.__dlpack_device__()[0]) not in (1, 3, 11, 13):
        raise BufferError("the data is not in the memory of the CPU: copy it there first")
    return wrap(np.from_dlpack(source))


def legacy_tensor(*args: Any, of: np.dtype | None = None, **kwargs: Any) -> Tensor:
    """Tensor(2, 3), Tensor([1, 2]): sizes give uninitialised memory, a sequence its values in the default dtype.

    `of`: the dtype, for FloatTensor and its relatives.
    """
    device = kwargs.pop("device", None)
    check_place(device)
    if kwargs:
        raise TypeError("new() received an invalid combination of arguments: it takes no "
                        f"{', '.join(kwargs)}. Use tensor()")
    wanted = dtypes.default_numpy() if of is None else of
    if not args:
        return wrap(np.empty(0, wanted))
    if len(args) == 1:
        first = args[0]
        if isinstance(first, Tensor):
            if of is not None and first._array.dtype != of:
                raise TypeError(f"expected {dtypes.from_numpy(wanted)} (got {first.dtype})")
            return first.detach()
        if isinstance(first, tuple) and type(first).__name__ == "Size":
            return wrap(np.zeros(first, wanted))
        if not isinstance(first, (int, np.integer)) or isinstance(first, bool):
            if not _is_sequence(first):
                raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
            return wrap(to_array(first, wanted))
    return wrap(np.zeros(tuple(int(a) for a in args), wanted))


def typed_constructor(name: str, dtype: dtypes.dtype) -> Any:
    """FloatTensor, LongTensor, ...: the old-style constructors, which isinstance understands as well."""

    class Meta(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, Tensor) and value.dtype is dtype

        def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
            return legacy_tensor(*args, of=dtype.numpy, **kwargs)

    made = Meta(name, (), {"dtype": dtype, "is_cuda": False})
    made.__module__ = "torch"
    return made
