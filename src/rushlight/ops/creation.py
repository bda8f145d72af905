"""Factory functions: zeros, arange, eye, full_like, ... and Tensor.new_*."""
from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor
from ..tensor.construct import as_leaf, check_place, tensor
from ..tensor.core import fresh
from .apply import write_out
from .table import method, public
from .unpack import type_name


def sizes(args: tuple, name: str = "") -> tuple[int, ...]:
    """The shape meant by zeros(2, 3), zeros((2, 3)) or zeros(size). `name`: the function that was given it."""
    if len(args) == 1 and not isinstance(args[0], (int, np.integer, Tensor)):
        args = tuple(args[0])
    made = []
    for one in args:
        if isinstance(one, bool) or not hasattr(one, "__index__"):
            raise TypeError(f"a size must be an integer, not {type(one).__name__}: {one!r}")
        size = one.__index__()
        if size < 0:
            raise RuntimeError(f"zeros: Dimension size must be non-negative, got {list(args)}" if name == "zeros" else
                               f"Trying to create tensor with negative dimension {size}: {list(args)}")
        made.append(size)
    return tuple(made)


def one_size(name: str, position: int, size: Any) -> tuple[int, ...]:
    """The shape given as one argument, which must be a tuple or list."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"{name}(): argument 'size' (position {position}) must be tuple of ints, not "
                        f"{type(size).__name__}")
    return sizes(tuple(size))


def _finish(name: str, array: np.ndarray, out: Tensor | None, requires_grad: bool) -> Tensor:
    if out is not None:
        if isinstance(out, Tensor) and out._array.dtype != array.dtype:
            given = type_name(dtypes.from_numpy(array.dtype).name)
            raise RuntimeError(f"dtype {given} does not match dtype of out parameter ({type_name(out.dtype.name)})")
        write_out(name, out, array)
        return out
    return as_leaf(fresh(array), requires_grad)


def _dtype(dtype: Any, out: Tensor | None = None) -> np.dtype:
    if dtype is None:
        return dtypes.default_numpy() if out is None else out._array.dtype
    return dtypes.to_numpy(dtype)


def _sized(name: str, fill: Any) -> None:
    """Define a factory that takes sizes, its *_like and its new_* forms."""

    def factory(*size: Any, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None,
                requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None, names: Any = None,
                **named: Any) -> Tensor:
        if "size" in named:
            size = (named.pop("size"),)
        if named:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(named))}'")
        check_place(device, pin_memory, layout)
        return _finish(name, fill(sizes(size, name), _dtype(dtype, out)), out, requires_grad)

    def like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
             memory_format: Any = None, pin_memory: bool = False) -> Tensor:
        check_place(device, pin_memory, layout)
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}_like(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        wanted = input._array.dtype if dtype is None else dtypes.to_numpy(dtype)
        made = np.empty_like(input._array, wanted, subok=False)
        if made.size and 0 in input._array.strides:
            made = np.empty(input._shape, wanted)
        if name != "empty":
            made[...] = fill((), wanted)
        return _finish(f"{name}_like", made, None, requires_grad)

    def new(self: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
            layout: Any = None, pin_memory: bool = False, **named: Any) -> Tensor:
        if "size" in named:
            size = (named.pop("size"),)
        if named:
            raise TypeError(f"new_{name}() got an unexpected keyword argument '{next(iter(named))}'")
        check_place(device, pin_memory, layout)
        wanted = self._array.dtype if dtype is None else dtypes.to_numpy(dtype)
        return _finish(f"new_{name}", fill(sizes(size), wanted), None, requires_grad)

    for function, public_name in ((factory, name), (like, f"{name}_like")):
        function.__name__ = function.__qualname__ = public_name
        public(function)
    new.__name__ = new.__qualname__ = f"new_{name}"
    method(new)


_sized("zeros", np.zeros)
_sized("ones", np.ones)
_sized("empty", np.zeros)  # "uninitialised" is zeros here: nothing can come to depend on stale memory


def _fill_value(name: str, value: Any, wanted: np.dtype | None) -> Any:
    """The number to fill with, which the dtype must be able to hold."""
    if isinstance(value, Tensor) and not value._shape:
        value = value.item()
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        raise TypeError(f"{name}(): argument 'fill_value' (position 2) must be Number, not {type(value).__name__}")
    number = value.item() if isinstance(value, np.generic) else value
    dtypes.check_number(number, dtypes.number_dtype(number) if wanted is None else wanted)
    return number


def _filled(shape: tuple[int, ...], value: Any, wanted: np.dtype) -> np.ndarray:
    if wanted.kind in "iu" and value < 0:
        return np.full(shape, int(value)).astype(wanted)  # -1 becomes 255
    return np.full(shape, value.real if isinstance(value, complex) and wanted.kind != "c" else value, wanted)


@public
def full(size: Any, fill_value: Any, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
         device: Any = None, requires_grad: bool = False, pin_memory: bool = False, names: Any = None) -> Tensor:
    check_place(device, pin_memory, layout)
    wanted = None if dtype is None and out is None else _dtype(dtype, out)
    value = _fill_value("full", fill_value, wanted)
    made = _filled(one_size("full", 1, size), value, dtypes.number_dtype(value) if wanted is None else wanted)
    return _finish("full", made, out, requires_grad)


@public
def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
              requires_grad: bool = False, memory_format: Any = None, pin_memory: bool = False) -> Tensor:
    check_place(device, pin_memory, layout)
    wanted = input._array.dtype if dtype is None else dtypes.to_numpy(dtype)
    made = np.empty_like(input._array, wanted, subok=False)
    made[...] = _filled((), _fill_value("full_like", fill_value, wanted), wanted)
    return _finish("full_like", made, None, requires_grad)


@method
def new_full(self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None,
             requires_grad: bool = False, layout: Any = None, pin_memory: bool = False) -> Tensor:
    check_place(device, pin_memory, layout)
    wanted = self._array.dtype if dtype is None else dtypes.to_numpy(dtype)
    made = _filled(one_size("new_full", 1, size), _fill_value("new_full", fill_value, wanted), wanted)
    return _finish("new_full", made, None, requires_grad)


@method
def new_tensor(self: Tensor, data: Any, *, dtype: Any = None, device: Any = None,
               requires_grad: bool = False) -> Tensor:
    return tensor(data, dtype=self.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad)


@method
def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    from ..tensor.construct import legacy_tensor
    return legacy_tensor(*args, of=self._array.dtype, **kwargs)


@public
def empty_strided(size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                  requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    check_place(device, pin_memory, layout)
    shape, steps, wanted = sizes((size,)), tuple(stride), _dtype(dtype)
    if len(shape) != len(steps):
        raise RuntimeError(f"mismatch in length of strides and shape: {list(steps)} and {list(shape)}")
    room = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
    memory = np.zeros(room, wanted)
    return _finish("empty_strided", np.lib.stride_tricks.as_strided(
        memory, shape, [s * wanted.itemsize for s in steps]), None, requires_grad)


@method
def new_empty_strided(self: Tensor, size: Any, stride: Any, *, dtype: Any = None, device: Any = None,
                      requires_grad: bool = False, layout: Any = None, pin_memory: bool = False) -> Tensor:
    return empty_strided(size, stride, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)


@public
def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                   requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    check_place(device, pin_memory, layout)
    shape, order = sizes((size,)), tuple(physical_layout)
    if len(order) != len(shape):
        raise RuntimeError("Number of dimensions in size does not match the length of the physical_layout: "
                           f"{list(shape)} and {list(order)}")
    if len(set(order)) != len(order) or not all(0 <= one < len(shape) for one in order):
        raise RuntimeError("Duplicate dim not allowed, and every dimension must be there: physical_layout "
                           f"{list(order)} for size {list(shape)}")
    made = np.zeros([shape[i] for i in order], _dtype(dtype)).transpose(np.argsort(order) if order else ())
    return _finish("empty_permuted", made, None, requires_grad)


def _value(number: Any) -> Any:
    return number.item() if isinstance(number, (Tensor, np.generic)) else number


@public
def arange(start: Any = None, end: Any = None, step: Any = 1, *, out: Tensor | None = None, dtype: Any = None,
           layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    check_place(device, pin_memory, layout)
    if end is None:
        start, end = 0, start
    first, last, by = 0 if start is None else _value(start), _value(end), _value(step)
    for given in (first, last, by):
        if not isinstance(given, (int, float)):
            raise TypeError("arange() received an invalid combination of arguments: "
                            f"{type(given).__name__} is not a number")
    if dtype is None and out is None:
        whole = all(isinstance(v, int) for v in (first, last, by))
        wanted = np.dtype(np.int64) if whole else dtypes.default_numpy()
    else:
        wanted = _dtype(dtype, out)
    if by == 0:
        raise RuntimeError("step must be nonzero")
    if not all(np.isfinite(v) for v in (first, last)):
        raise RuntimeError(f"unsupported range: {first} -> {last}")
    if (last - first) * by < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign: "
                           f"arange from {first} to {last} by {by}")
    if wanted == np.int64:  # here alone PyTorch makes them integers before it counts
        first, last, by = int(first), int(last), int(by)
        if by == 0:
            raise ValueError("step must be nonzero, and as an integer it is 0")
    count = ceil((last - first) / by)
    if dtypes.category(wanted) == dtypes.FLOATING:
        made = (first + np.arange(count) * by).astype(wanted)
    else:
        made = (int(first) + np.arange(count, dtype=np.int64) * int(by)).astype(wanted)
    return _finish("arange", made, out, requires_grad)


@public
def range(start: Any = 0, end: Any = None, step: Any = 1, *, out: Tensor | None = None, dtype: Any = None,
          layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    check_place(device, False, layout)
    count = int((end - start) / step) + 1
    return _finish("range", (start + np.arange(count) * step).astype(_dtype(dtype, out)), out, requires_grad)


def _ends(name: str, start: Any, end: Any, steps: Any) -> tuple[Any, Any]:
    """Both ends as numbers, after the checks that linspace and logspace share."""
    for which, given in (("start", start), ("end", end)):
        if isinstance(given, Tensor) and given._shape:
            raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors, but got {which} with "
                               f"{len(given._shape)} dimension(s).")
    if not hasattr(steps, "__index__"):
        raise TypeError(f"{name}(): argument 'steps' must be int, not {type(steps).__name__}")
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    return _value(start), _value(end)


@public
def linspace(start: Any, end: Any, steps: Any, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
             device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    check_place(device, pin_memory, layout)
    first, last = _ends("linspace", start, end, steps)
    if dtype is None and out is None:
        is_complex = isinstance(first, complex) or isinstance(last, complex)
        wanted = dtypes.default_complex() if is_complex else dtypes.default_numpy()
    else:
        wanted = _dtype(dtype, out)
    return _finish("linspace", _even_steps(first, last, int(steps), wanted), out, requires_grad)


def _even_steps(first: Any, last: Any, steps: int, wanted: np.dtype) -> np.ndarray:
    """Counted from both ends, so that it is exact at both and symmetric."""
    whole = dtypes.category(wanted) < dtypes.FLOATING
    work = np.dtype(np.float64) if whole or wanted.itemsize < 4 else wanted
    if steps == 1:
        return np.full(1, first).astype(wanted)
    by = np.asarray((last - first) / max(steps - 1, 1), work)
    index = np.arange(steps, dtype=work)
    made = np.where(np.arange(steps) < steps // 2, np.asarray(first, work) + by * index,
                    np.asarray(last, work) - by * (work.type(steps - 1) - index))
    return made.astype(wanted)


@public
def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, out: Tensor | None = None, dtype: Any = None,
             layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    check_place(device, pin_memory, layout)
    first, last = _ends("logspace", start, end, steps)
    wanted = _dtype(dtype, out)
    work = wanted if dtypes.category(wanted) >= dtypes.FLOATING and wanted.itemsize >= 4 else np.dtype(np.float64)
    exponents = _even_steps(first, last, int(steps), work)
    with np.errstate(all="ignore"):
        made = np.power(np.asarray(base, np.float64), exponents)
        return _finish("logspace", made.astype(wanted), out, requires_grad)


@public
def eye(n: int, m: int | None = None, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
        device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    check_place(device, pin_memory, layout)
    for name, size in (("n", n), ("m", m)):
        if size is not None and size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    return _finish("eye", np.eye(n, m, dtype=_dtype(dtype, out)), out, requires_grad)
