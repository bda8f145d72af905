"""Factory functions: zeros, arange, eye, full_like, ... and Tensor.new_*."""
from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor, wrap
from ..tensor.construct import check_place, tensor
from .apply import write_out
from .table import method, public


def sizes(args: tuple) -> tuple[int, ...]:
    """The shape meant by zeros(2, 3), zeros((2, 3)) or zeros(size)."""
    if len(args) == 1 and not isinstance(args[0], (int, np.integer, Tensor)):
        args = tuple(args[0])
    made = []
    for one in args:
        if isinstance(one, bool) or not hasattr(one, "__index__"):
            raise TypeError(f"a size must be an integer, not {type(one).__name__}: {one!r}")
        size = one.__index__()
        if size < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {size}: {list(args)}")
        made.append(size)
    return tuple(made)


def _finish(name: str, array: np.ndarray, out: Tensor | None, requires_grad: bool) -> Tensor:
    if out is not None:
        write_out(name, out, array)
        return out
    made = wrap(array)
    return made.requires_grad_() if requires_grad else made


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
        return _finish(name, fill(sizes(size), _dtype(dtype, out)), out, requires_grad)

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

    def new(self: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
            pin_memory: bool = False, **named: Any) -> Tensor:
        if "size" in named:
            size = (named.pop("size"),)
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


@public
def full(size: Any, fill_value: Any, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False, pin_memory: bool = False, names: Any = None) -> Tensor:
    check_place(device, pin_memory, layout)
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    wanted = dtypes.number_dtype(fill_value) if dtype is None and out is None else _dtype(dtype, out)
    return _finish("full", np.full(sizes((size,)), fill_value, wanted), out, requires_grad)


@public
def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
              requires_grad: bool = False, memory_format: Any = None, pin_memory: bool = False) -> Tensor:
    check_place(device, pin_memory, layout)
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    wanted = input._array.dtype if dtype is None else dtypes.to_numpy(dtype)
    return _finish("full_like", np.full_like(input._array, fill_value, wanted), None, requires_grad)


@method
def new_full(self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
             layout: Any = None, pin_memory: bool = False) -> Tensor:
    check_place(device, pin_memory, layout)
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    wanted = self._array.dtype if dtype is None else dtypes.to_numpy(dtype)
    return _finish("new_full", np.full(sizes((size,)), fill_value, wanted), None, requires_grad)


@method
def new_tensor(self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    return tensor(data, dtype=self.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad)


@method
def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    from ..tensor.construct import legacy_tensor
    return legacy_tensor(*args, dtype=self._array.dtype, **kwargs)


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
    if sorted(order) != list(range(len(shape))):
        raise RuntimeError(f"Duplicate dim not allowed or dimension out of range in physical_layout {list(order)} for size "
                           f"{list(shape)}")
    made = np.zeros([shape[i] for i in order], _dtype(dtype)).transpose(np.argsort(order) if order else ())
    return _finish("empty_permuted", made, None, requires_grad)


def _value(number: Any) -> Any:
    return number.item() if isinstance(number, Tensor) else number


@public
def arange(start: Any, end: Any = None, step: Any = 1, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
           device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    check_place(device, pin_memory, layout)
    if end is None:
        start, end = 0, start
    first, last, by = _value(start), _value(end), _value(step)
    if by == 0:
        raise RuntimeError("step must be nonzero")
    if (last - first) * by < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign: "
                           f"arange from {first} to {last} by {by}")
    if dtype is None and out is None:
        whole = all(isinstance(v, (int, np.integer)) for v in (first, last, by))
        wanted = np.dtype(np.int64) if whole else dtypes.default_numpy()
    else:
        wanted = _dtype(dtype, out)
    if not all(np.isfinite(v) for v in (first, last)):
        raise RuntimeError(f"unsupported range: {first} -> {last}")
    count = ceil((last - first) / by)
    if dtypes.category(wanted) == dtypes.FLOATING:
        made = (first + np.arange(count) * by).astype(wanted)
    else:
        made = (int(first) + np.arange(count, dtype=np.int64) * int(by)).astype(wanted)
    return _finish("arange", made, out, requires_grad)


@public
def range(start: Any = 0, end: Any = None, step: Any = 1, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
          device: Any = None, requires_grad: bool = False) -> Tensor:
    check_place(device, False, layout)
    count = int((end - start) / step) + 1
    return _finish("range", (start + np.arange(count) * step).astype(_dtype(dtype, out)), out, requires_grad)


@public
def linspace(start: Any, end: Any, steps: Any, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
             device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    check_place(device, pin_memory, layout)
    first, last = _value(start), _value(end)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if dtype is None and out is None:
        wanted = dtypes.default_complex() if isinstance(first, complex) or isinstance(last, complex) else dtypes.default_numpy()
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
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    wanted = _dtype(dtype, out)
    work = wanted if dtypes.category(wanted) >= dtypes.FLOATING and wanted.itemsize >= 4 else np.dtype(np.float64)
    exponents = _even_steps(_value(start), _value(end), int(steps), work)
    with np.errstate(all="ignore"):
        made = np.power(np.asarray(base, np.float64), exponents)
        return _finish("logspace", made.astype(wanted), out, requires_grad)


@public
def eye(n: int, m: int | None = None, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None,
        requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    check_place(device, pin_memory, layout)
    for name, size in (("n", n), ("m", m)):
        if size is not None and size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    return _finish("eye", np.eye(n, m, dtype=_dtype(dtype, out)), out, requires_grad)
