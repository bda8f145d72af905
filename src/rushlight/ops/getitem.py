"""tensor[index] and tensor[index] = value, with PyTorch's rules.

An index is read from left to right into a basic part (integers, slices, None), which gives a view, and an advanced part
(index tensors and masks), which is then applied to that view. Unlike NumPy, an integer never counts as advanced.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph.modes import state
from ..graph.versions import family_of
from ..tensor import Tensor, wrap
from .indexing import check_mask, index_by, put_values
from .shape import too_few_sizes
from .table import TENSORS, method, operation
from .unpack import type_name

_PRIVATE = {"public": False, "method": False}
_FULL = slice(None)


@operation(
    input="basic_index_backward(g, input_shape, index, name)",
    view=True,
    jvp="linear",
    node=lambda kept: kept["name"],
    **_PRIVATE,
)
def basic_index(input, index, name):
    """A view by integers, slices and None, in one step. `name` is that of PyTorch's node for the last of them."""
    return input[index]


@operation(grad_output="basic_index(g, index, name)", jvp="linear", **_PRIVATE)
def basic_index_backward(grad_output, input_sizes, index, name):
    made = np.zeros(input_sizes, grad_output.dtype)
    made[index] = grad_output
    return made


@method
def __getitem__(self: Tensor, index: Any) -> Tensor:
    kind = index.__class__
    if kind is int:
        check_index(index, 0, self._shape)
        return TENSORS.select(self, 0, index)
    if kind is slice:
        if not self._shape:
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        return TENSORS.slice(self, 0, *slice_bounds(index))
    view, advanced = _read(self, index)
    if not advanced:
        return view
    return index_by(view, [one for _, one in advanced], tuple([dim for dim, _ in advanced]))


@method
def __setitem__(self: Tensor, index: Any, value: Any) -> None:
    values = _value_tensor(self, value)
    if index is False:
        return
    if values._node is None and self._node is None and not _is_watched(self):
        _write_plain(self, index, values)
        return
    if index is Ellipsis:
        _copy_into(self, values)
        return
    if index.__class__ is int or index.__class__ is slice:
        _copy_into(__getitem__(self, index), values)
        return
    view, advanced = _read(self, index)
    if not advanced:
        _copy_into(view, values)
    else:
        TENSORS._index_put_(
            view, [one for _, one in advanced], tuple(dim for dim, _ in advanced), _without_leading_ones(values), False
        )


def _is_watched(self: Tensor) -> bool:
    """Whether a write to a tensor without history must still go the long way."""
    view = self._view
    return (
        state.forward_level >= 0
        or state.mutation_guard is not None
        or self._inference
        or (view is not None and view.base._node is not None)
    )


@method
def __iter__(self: Tensor) -> Any:
    if not self._shape:
        raise TypeError("iteration over a 0-d tensor")
    return iter(TENSORS.unbind(self, 0))


# -- reading an index ------------------------------------------------------------------------------------------------
def check_index(index: int, dim: int, shape: tuple) -> None:
    if not shape:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    if not -shape[dim] <= index < shape[dim]:
        raise IndexError(f"index {index} is out of bounds for dimension {dim} with size {shape[dim]}")


def slice_bounds(item: slice) -> tuple:
    """Start, stop and step, as plain integers or None."""
    start, stop, step = item.start, item.stop, item.step
    if start is not None and start.__class__ is not int:
        start = _bound(start)
    if stop is not None and stop.__class__ is not int:
        stop = _bound(stop)
    if step is None:
        return start, stop, 1
    step = _bound(step)
    if step <= 0:
        raise ValueError("step must be greater than zero" if step else "slice step cannot be zero")
    return start, stop, step


def _bound(value: Any) -> int:
    if not hasattr(value, "__index__"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    return value.__index__()


def _items(index: Any) -> tuple:
    """The index as a tuple. A list that holds more than numbers is read as a tuple, with PyTorch's warning."""
    if index.__class__ is tuple:
        return index
    if isinstance(index, tuple):
        return tuple(index)
    if (
        isinstance(index, list)
        and len(index) < 32
        and any(one is None or one is Ellipsis or isinstance(one, (slice, list, tuple, Tensor, np.ndarray)) for one in index)
    ):
        import warnings

        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated: use x[tuple(seq)] instead.",
            UserWarning,
            stacklevel=4,
        )
        return tuple(index)
    return (index,)


def _as_index(item: Any) -> Any:
    """One item of an index as an int, a slice, None, Ellipsis, a bool or a Tensor."""
    if item is None or item is Ellipsis or isinstance(item, (int, slice, Tensor)):
        return item
    if isinstance(item, np.bool_):
        return bool(item)
    if isinstance(item, np.integer):
        return int(item)
    if isinstance(item, np.ndarray):
        return wrap(item)
    if isinstance(item, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(item, (list, tuple, range)):
        array = np.asarray(item.tolist() if hasattr(item, "tolist") else [_plain(one) for one in item])
        return wrap(array.astype(np.int64) if not array.size else array)
    if hasattr(item, "__index__"):
        return item.__index__()
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        f"(got {type(item).__name__})"
    )


def _plain(one: Any) -> Any:
    if isinstance(one, Tensor):
        return one.tolist()
    if isinstance(one, str):
        raise TypeError("new(): invalid data type 'str'")
    return [_plain(member) for member in one] if isinstance(one, (list, tuple)) else one


def _read(self: Tensor, index: Any) -> tuple[Tensor, list]:
    """The view by the basic part of an index, and its advanced part: [(dimension of the view, index tensor), ...]."""
    basic, advanced, name, single = parse(self._shape, index)
    if name is None:
        return (self if advanced else TENSORS.alias(self)), advanced
    if single is not None:
        operation_name, arguments = single
        return getattr(TENSORS, operation_name)(self, *arguments), advanced
    return TENSORS.basic_index(self, basic, name), advanced


def parse(shape: tuple, index: Any) -> tuple:
    """The basic part for NumPy, the advanced part, the last basic step's node, and that step if it is the only one."""
    items = [_as_index(item) for item in _items(index)]
    specified = 0
    for item in items:
        if isinstance(item, Tensor):
            specified += len(item._shape) if _is_mask(item) else 1
        elif item is not None and item is not Ellipsis and not isinstance(item, bool):
            specified += 1
    count = len(shape)
    if specified > count:
        if not count and specified == 1 and not isinstance(items[0], Tensor):
            check_index(0, 0, shape)
        raise IndexError(f"too many indices for tensor of dimension {count}")
    basic: list[Any] = []
    advanced: list[tuple[int, Tensor]] = []
    name, steps = None, 0
    single: Any = None
    dim = place = 0  # in the tensor, and in the view
    for item in items:
        if isinstance(item, Tensor) and not item._shape and item._array.dtype.kind in "iu" and not _is_mask(item):
            item = int(item)
        if item is Ellipsis:
            skipped = count - specified
            specified = count  # a second Ellipsis stands for nothing
            basic += [_FULL] * skipped
            dim, place = dim + skipped, place + skipped
        elif item is None:
            basic.append(None)
            name, single, steps = "UnsqueezeBackward0", ("unsqueeze", (place,)), steps + 1
            place += 1
        elif isinstance(item, bool) or (isinstance(item, Tensor) and not item._shape and _is_mask(item)):
            basic.append(None)
            name, single, steps = "UnsqueezeBackward0", ("unsqueeze", (place,)), steps + 1
            advanced.append((place, wrap(np.asarray([bool(item)]))))
            place += 1
        elif isinstance(item, int):
            check_index(item, dim, shape)
            basic.append(item)
            name, single, steps = "SelectBackward0", ("select", (place, item)), steps + 1
            dim += 1
        elif isinstance(item, slice):
            start, stop, step = slice_bounds(item)
            if step != 1 or slice(start, stop).indices(shape[dim])[:2] != (0, shape[dim]):
                name, single, steps = "SliceBackward0", ("slice", (place, start, stop, step)), steps + 1
            basic.append(slice(start, stop, step))
            dim, place = dim + 1, place + 1
        else:
            width = _check_index_tensor(item, dim, shape, len(advanced))
            if item._array.dtype.kind == "u":
                item = wrap(item._array.astype(bool))
            basic += [_FULL] * width
            advanced.append((place, item))
            dim, place = dim + width, place + width
    return (*basic, ...), advanced, name, single if steps == 1 else None


def _is_mask(item: Tensor) -> bool:
    return item._array.dtype.kind == "b" or item._array.dtype == np.uint8


def _check_index_tensor(item: Tensor, dim: int, shape: tuple, number: int) -> int:
    """How many dimensions an index tensor takes."""
    if _is_mask(item):
        if item._array.dtype.kind != "b":
            import warnings

            warnings.warn(
                "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                UserWarning,
                stacklevel=6,
            )
        check_mask(item._shape, shape, dim, number)
        return len(item._shape)
    if item._array.dtype not in (np.int64, np.int32):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return 1


# -- writing ---------------------------------------------------------------------------------------------------------
def _value_tensor(self: Tensor, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (bool, int, float, complex)) and value.__class__.__module__ != "numpy":
        if isinstance(value, complex) and self._array.dtype.kind != "c":
            raise RuntimeError(f"value cannot be converted to type {_c_name(self)} without overflow")
        try:
            return wrap(np.asarray(value, self._array.dtype))
        except (OverflowError, ValueError):
            if isinstance(value, int):
                return wrap(np.asarray(value).astype(self._array.dtype))
            raise RuntimeError(f"value cannot be converted to type {_c_name(self)} without overflow") from None
    shown = type(value).__name__ if type(value).__module__ == "builtins" else f"{type(value).__module__}.{type(value).__name__}"
    raise TypeError(f"can't assign a {shown} to a torch.{type_name(self.dtype.name)}Tensor")


def _c_name(self: Tensor) -> str:
    return {"float32": "float", "float64": "double"}.get(self.dtype.name, self.dtype.name)


def _without_leading_ones(values: Tensor) -> Tensor:
    """Values may have more dimensions of size 1 in front than what they are written to."""
    shape = values._shape
    drop = 0
    while drop < len(shape) and shape[drop] == 1:
        drop += 1
    return TENSORS.reshape(values, shape[drop:]) if drop else values


def _check_broadcast(shape: tuple, values: Tensor) -> None:
    """Raise what expanding values to another shape raises, unless it can be done."""
    own = values._shape
    if len(own) > len(shape):
        raise RuntimeError(too_few_sizes(values._array, shape))
    for k in range(1, len(own) + 1):
        if own[-k] not in (1, shape[-k]):
            raise RuntimeError(
                f"The expanded size of the tensor ({shape[-k]}) must match the existing size ({own[-k]}) at "
                f"non-singleton dimension {len(shape) - k}.  Target sizes: {list(shape)}.  Tensor sizes: {list(own)}"
            )


def _copy_into(target: Tensor, values: Tensor) -> None:
    if values._shape != target._shape:
        if not values._shape:
            TENSORS.fill_(target, values)
            return
        values = _without_leading_ones(values)
        _check_broadcast(target._shape, values)
    TENSORS.copy_(target, values)


def _are_places(index: tuple, shape: tuple) -> bool:
    """Whether an index is one integer per dimension, all in bounds: the commonest write there is."""
    for one, size in zip(index, shape):
        if one.__class__ is not int or not -size <= one < size:
            return False
    return True


def _write_plain(self: Tensor, index: Any, values: Tensor) -> None:
    """The write where nothing has a history: straight into the array."""
    from .inplace import check_writable

    check_writable(self, False)
    array, source = self._array, values._array
    kind = index.__class__
    advanced: list = []
    if kind is int:
        check_index(index, 0, self._shape)
        target = array[index, ...]
    elif index is Ellipsis:
        target = array
    elif kind is tuple and len(index) == array.ndim and _are_places(index, array.shape):
        target = array[(*index, ...)]
    else:
        basic, advanced, _, _ = parse(self._shape, index)
        target = array[basic]
    if not advanced:
        if source.shape != target.shape:
            values = _without_leading_ones(values)
            _check_broadcast(target.shape, values)
            source = values._array
        if source.dtype.kind == "c" and array.dtype.kind != "c":
            import warnings

            warnings.warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=3)
            source = source.real
        target[...] = source
    else:
        put_values(
            target,
            [one._array for _, one in advanced],
            tuple(dim for dim, _ in advanced),
            _without_leading_ones(values)._array,
        )
    family_of(self).wrote()
