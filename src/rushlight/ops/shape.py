"""Views that keep every element: view, reshape, expand, permute, squeeze and their kin; clone; sizes and strides."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Size, Tensor
from ..tensor.construct import channels_last, channels_last_3d, contiguous_format
from .arithmetic import install
from .dimensions import has_overlap, is_expandable, plain_int, sizes_of, strided, wrap_dim, wrap_dims
from .dimensions import numel as count_elements
from .fit import sum_to, summed_dimensions
from .table import TENSORS, method, operation, public
from .unpack import type_name

_PRIVATE = {"public": False, "method": False}


def publish_as(function: Any, *names: str) -> None:
    """Further names of a composition, as a function and as a method."""
    for name in names:
        install(name, function)


# -- copies ----------------------------------------------------------------------------------------------------------
@operation(input="g", jvp="linear")
def clone(input, *, memory_format=None):
    if memory_format is channels_last or memory_format is channels_last_3d:
        if input.ndim != (4 if memory_format is channels_last else 5):
            raise RuntimeError(f"required rank {4 if memory_format is channels_last else 5} tensor to use {memory_format} format")
        return np.moveaxis(np.moveaxis(input, 1, -1).copy(), -1, 1)
    if memory_format is contiguous_format or has_overlap(input):
        return input.copy()
    return input.copy(order="K")


@operation(tensors="input", name="constant_like", **_PRIVATE)
def constant_like(input, value):
    """An array like the input, filled with one number: for formulas, which have no other way to a constant."""
    return np.full(input.shape, value, input.dtype)


@method
def contiguous(self: Tensor, memory_format: Any = contiguous_format) -> Tensor:
    """The tensor itself if it lies in memory in the usual order, else a copy that does."""
    if self.is_contiguous(memory_format=memory_format):  # type: ignore[attr-defined]
        return self
    return TENSORS.clone(self, memory_format=memory_format)


# -- other sizes -----------------------------------------------------------------------------------------------------
def checked_reshape(input: np.ndarray, size: tuple) -> np.ndarray:
    """NumPy's reshape with PyTorch's complaints."""
    try:
        return input.reshape(size)
    except (ValueError, TypeError) as error:
        if size.count(-1) > 1:
            raise RuntimeError("only one dimension can be inferred") from None
        for one in size:
            if one < -1:
                raise RuntimeError(f"invalid shape dimension {one} at index {size.index(one)} of shape {list(size)}") from None
        if -1 in size and 0 in size and not input.size:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(size)} because the unspecified dimension "
                "size -1 can be any value and is ambiguous"
            ) from None
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {input.size}") from error


@operation(input="reshape(g, input_shape)", view=True, jvp="linear", name="_view", **_PRIVATE)
def view_sizes(input, size):
    made = checked_reshape(input, size)
    if not input.flags.c_contiguous and input.size and not np.may_share_memory(made, input):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans "
            f"across two contiguous subspaces): size {list(size)} of a tensor with sizes {list(input.shape)}. "
            "Use .reshape(...) instead."
        )
    return made


@operation(input="reshape(g, input_shape)", view=True, jvp="linear", name="_reshape_alias", **_PRIVATE)
def reshape_alias(input, size):
    return input.reshape(size)


@operation(input="reshape(g, input_shape)", jvp="linear", name="_unsafe_view", **_PRIVATE)
def unsafe_view(input, size):
    return checked_reshape(input, size)


@operation(tensors="input", view=True, name="_view_dtype", node="ViewBackward1", **_PRIVATE)
def view_dtype(input, dtype):
    wanted = dtypes.to_numpy(dtype)
    if wanted.itemsize != input.itemsize:
        if not input.ndim:
            raise RuntimeError(
                "self.dim() cannot be 0 to view "
                f"{dtypes.from_numpy(input.dtype)} as {dtypes.from_numpy(wanted)} (different element sizes)"
            )
        if input.shape[-1] > 1 and input.strides[-1] != input.itemsize:
            raise RuntimeError(
                "self.stride(-1) must be 1 to view "
                f"{dtypes.from_numpy(input.dtype)} as {dtypes.from_numpy(wanted)} (different element sizes), "
                f"but got {input.strides[-1] // input.itemsize}"
            )
        if input.shape[-1] * input.itemsize % wanted.itemsize:
            raise RuntimeError(
                f"self.size(-1) must be divisible by {wanted.itemsize // input.itemsize} to view "
                f"{dtypes.from_numpy(input.dtype)} as {dtypes.from_numpy(wanted)} (different element sizes), but "
                f"got {input.shape[-1]}"
            )
    return input.view(wanted)


@method
def view(self: Tensor, *shape: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """The same memory with other sizes, or read as another dtype."""
    if dtype is None and len(shape) == 1 and shape[0].__class__ is dtypes.dtype:
        dtype = shape[0]
    if dtype is not None:
        return TENSORS._view_dtype(self, dtype)
    if not shape and size is None:
        raise TypeError('view() missing 1 required positional arguments: "dtype"')
    return TENSORS._view(self, sizes_of(shape if size is None else (size,)))


def reshape_array(input: np.ndarray, shape: Any) -> np.ndarray:
    return input.reshape(shape)


def reshape(input: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """The same elements with other sizes: a view where the memory allows it, else a copy."""
    array = input._array
    size = sizes_of(sizes if shape is None else (shape,))
    if array.flags.c_contiguous:
        return TENSORS._view(input, size)
    if not array.size or np.may_share_memory(checked_reshape(array, size), array):
        return TENSORS._reshape_alias(input, size)
    return TENSORS._unsafe_view(TENSORS.clone(input, memory_format=contiguous_format), size)


install("reshape", reshape, raw=reshape_array)


@method
def view_as(self: Tensor, other: Tensor) -> Tensor:
    return TENSORS._view(self, other._shape)


@method
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    return TENSORS.reshape(self, other._shape)


@public
@method
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """One dimension in place of those from start_dim to end_dim."""
    shape = input._shape
    start, end = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return TENSORS.reshape(input, (1,))
    if start == end:
        return input
    return TENSORS.reshape(input, (*shape[:start], count_elements(shape[start : end + 1]), *shape[end + 1 :]))


@public
@method
def ravel(input: Tensor) -> Tensor:
    return TENSORS._view(input.contiguous(), (-1,))  # type: ignore[attr-defined]


@public
@method
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Several dimensions in place of one."""
    shape = input._shape
    place = wrap_dim(dim, len(shape))
    wanted = sizes_of((sizes,))
    if not wanted:
        raise RuntimeError("unflatten: sizes must be non-empty")
    known = count_elements(tuple(s for s in wanted if s != -1))
    length = shape[place] if shape else 1
    if wanted.count(-1) == 1 and known and length % known == 0:
        wanted = tuple(length // known if s == -1 else s for s in wanted)
    if -1 in wanted or count_elements(wanted) != length:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(wanted)} don't multiply up to the size of dim {dim} ({length}) in the input tensor"
        )
    return TENSORS._view(input, (*shape[:place], *wanted, *shape[place + 1 :]))


def too_few_sizes(array: np.ndarray, size: tuple) -> str:
    """What is said of an array that has more dimensions than it should be expanded to."""
    kind = type_name(dtypes.from_numpy(array.dtype).name)
    return (
        f"expand(torch.{kind}Tensor{{{list(array.shape)}}}, size={list(size)}): the number of sizes provided "
        f"({len(size)}) must be greater or equal to the number of dimensions in the tensor ({array.ndim})"
    )


# -- broadcasting ----------------------------------------------------------------------------------------------------
@operation(input="sum_to_size(g, input_shape)", view=True, jvp="linear", name="_expand", **_PRIVATE)
def expand_array(input, size):
    shape = input.shape
    leading = len(size) - len(shape)
    if leading < 0:
        raise RuntimeError(too_few_sizes(input, size))
    strides = [0] * leading
    final = list(size)
    broadcast = False
    for i, (length, step) in enumerate(zip(shape, input.strides, strict=True), leading):
        wanted = final[i]
        if wanted == -1:
            final[i] = wanted = length
        if wanted == length:
            strides.append(step)
        elif length == 1 and wanted >= 0:
            strides.append(0)
            broadcast = True
        else:
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({length}) at "
                f"non-singleton dimension {i}.  Target sizes: {list(size)}.  Tensor sizes: {list(shape)}"
            )
    for wanted in final[:leading]:
        if wanted < 0:
            raise RuntimeError(f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, non-existing dimension 0")
        broadcast = broadcast or wanted != 1
    if not broadcast:
        return input.reshape(final)
    if not input.size:
        return np.broadcast_to(input, final)
    return strided(input, tuple(final), tuple(strides))


def expand(self: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """A view in which dimensions of size 1 are repeated."""
    return TENSORS._expand(self, sizes_of(sizes if size is None else (size,)))


install("expand", expand, "method", raw=expand_array)
vars(TENSORS)["expand"] = expand  # for formulas: it is no function of the package


@method
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    return TENSORS._expand(self, other._shape)


@public
@method
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    return TENSORS._expand(input, sizes_of((size,)))


def sum_to_size_array(input: np.ndarray, size: Any) -> np.ndarray:
    return sum_to(input, tuple(size))


def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sum down to sizes that broadcast to the tensor's own."""
    target = sizes_of(size)
    if not target:
        return TENSORS.sum(self)
    if target == self._shape:
        return self
    if not is_expandable(target, self._shape):
        raise RuntimeError(f"size {{{list(target)}}} is not expandable to size {{{list(self._shape)}}}.")
    leading, ones = summed_dimensions(self._shape, target)
    total = TENSORS.sum(self, (*range(leading), *ones), True)
    return TENSORS._view(total, target) if leading else total


install("sum_to_size", sum_to_size, "method", raw=sum_to_size_array)
vars(TENSORS)["sum_to_size"] = sum_to_size


# -- other orders of dimensions --------------------------------------------------------------------------------------
def _permute_formula(F, g, dims):
    count = len(dims)
    inverse = [0] * count
    for i, dim in enumerate(dims):
        inverse[dim % count] = i
    return F.permute(g, tuple(inverse))


@operation(input=_permute_formula, view=True, jvp="linear", name="_permute", **_PRIVATE)
def permute_array(input, dims):
    try:
        return input.transpose(dims)
    except ValueError:
        if len(dims) != input.ndim:
            raise RuntimeError(
                "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
                f"desired ordering of dimensions i.e. input.dim() = {input.ndim} is not equal to len(dims) = "
                f"{len(dims)}"
            ) from None
        for dim in dims:
            wrap_dim(dim, input.ndim)
        raise RuntimeError("permute(): duplicate dims are not allowed.") from None


def permute(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    return TENSORS._permute(input, sizes_of(order if dims is None else (dims,)))


install("permute", permute, raw=permute_array)


@operation(input="transpose(g, dim0, dim1)", view=True, jvp="linear", aliases="swapaxes swapdims", inplace=False)
def transpose(input, dim0, dim1):
    count = input.ndim
    if dim0.__class__ is int and dim1.__class__ is int and -count <= dim0 < count and -count <= dim1 < count:
        return input.swapaxes(dim0, dim1)
    first, second = wrap_dim(dim0, count), wrap_dim(dim1, count)
    return input.swapaxes(first, second) if count else input[...]


@operation(input="t(g)", view=True, jvp="linear")
def t(input):
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return input.T


def _property(name: str) -> Any:
    def register(function: Any) -> Any:
        setattr(Tensor, name, property(function))
        return function

    return register


@_property("T")
def _reversed_dimensions(self: Tensor) -> Tensor:
    return TENSORS._permute(self, tuple(range(len(self._shape) - 1, -1, -1)))


@_property("mT")
def _matrix_transpose(self: Tensor) -> Tensor:
    if len(self._shape) < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {len(self._shape)}-D tensor.")
    return TENSORS.transpose(self, -2, -1)


@public
@method
def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged, and conjugated."""
    if len(input._shape) < 2:
        raise RuntimeError(
            f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {len(input._shape)}-D tensor."
        )
    turned = TENSORS.transpose(input, -2, -1)
    return TENSORS.conj(turned) if input._array.dtype.kind == "c" else turned


@_property("mH")
def _matrix_adjoint(self: Tensor) -> Tensor:
    return adjoint(self)


@_property("H")
def _conjugate_transpose(self: Tensor) -> Tensor:
    if len(self._shape) not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {len(self._shape)}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" if len(self._shape) > 2 else "")
        )
    return adjoint(self) if self._shape else self


@public
@method
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Move dimensions to other places; the others keep their order."""
    count = len(input._shape)
    sources = (source,) if hasattr(source, "__index__") else tuple(source)
    destinations = (destination,) if hasattr(destination, "__index__") else tuple(destination)
    if len(sources) != len(destinations):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: source (" + str(list(sources)) + " dims) should contain "
            "the same number of dims as destination (" + str(list(destinations)) + " dims)"
        )
    moved, places = [wrap_dim(d, count) for d in sources], [wrap_dim(d, count) for d in destinations]
    for name, dims, given in (("source", moved, sources), ("destination", places, destinations)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    if not count:
        return TENSORS.alias(input)
    rest = iter([d for d in range(count) if d not in moved])
    return TENSORS._permute(input, tuple(moved[places.index(d)] if d in places else next(rest) for d in range(count)))


publish_as(movedim, "moveaxis")


# -- dimensions of size 1 --------------------------------------------------------------------------------------------
@operation(input="reshape(g, input_shape)", view=True, jvp="linear", name="_squeeze", node="SqueezeBackward0", **_PRIVATE)
def squeeze_all(input):
    return input.reshape([size for size in input.shape if size != 1])


@operation(input="reshape(g, input_shape)", view=True, jvp="linear", name="_squeeze_dim", node="SqueezeBackward1", **_PRIVATE)
def squeeze_dim(input, dim):
    place = wrap_dim(dim, input.ndim)
    shape = input.shape
    return input.reshape(shape[:place] + shape[place + 1 :]) if shape and shape[place] == 1 else input[...]


@operation(input="reshape(g, input_shape)", view=True, jvp="linear", name="_squeeze_dims", node="SqueezeBackward2", **_PRIVATE)
def squeeze_dims(input, dim):
    places = wrap_dims(dim, input.ndim)
    return input.reshape([size for i, size in enumerate(input.shape) if size != 1 or i not in places])


def squeeze(input: Tensor, dim: Any = None, *, axis: Any = None) -> Tensor:
    """Without the dimensions of size 1: all, or those given."""
    if axis is not None:
        dim = axis
    if dim is None:
        return TENSORS._squeeze(input)
    return (
        TENSORS._squeeze_dims(input, tuple(dim))
        if isinstance(dim, (tuple, list))
        else TENSORS._squeeze_dim(input, plain_int(dim))
    )


install("squeeze", squeeze, raw=squeeze_dim)


@operation(input="squeeze(g, dim)", view=True, jvp="linear")
def unsqueeze(input, dim):
    shape = input.shape
    place = wrap_dim(dim, len(shape) + 1)
    return input.reshape(shape[:place] + (1,) + shape[place:])


@operation(input="g", view=True, jvp="linear", method=False)
def alias(input):
    return input[...]


# -- what it is ------------------------------------------------------------------------------------------------------
@method
def size(self: Tensor, dim: Any = None) -> Any:
    if dim is None:
        return Size(self._shape)
    place = wrap_dim(dim, len(self._shape))
    if not self._shape:
        raise IndexError("Dimension specified as " + str(dim) + " but tensor has no dimensions")
    return self._shape[place]


@method
def dim(self: Tensor) -> int:
    return len(self._shape)


install("ndimension", dim, "method")


@public
@method
def numel(input: Tensor) -> int:
    return input._array.size


install("nelement", numel, "method")


@method
def stride(self: Tensor, dim: Any = None) -> Any:
    """Strides in elements."""
    array = self._array
    if array.size:
        strides = tuple(s // array.itemsize for s in array.strides)
    else:  # NumPy lets the strides of nothing be 0; PyTorch counts as if every size were at least 1
        strides = tuple(prod(max(size, 1) for size in array.shape[i + 1:]) for i in range(array.ndim))
    return strides if dim is None else strides[wrap_dim(dim, array.ndim)]


@method
def storage_offset(self: Tensor) -> int:
    """Where the tensor begins in the memory it shares with its base, in elements."""
    family = self._family
    if family is None or not self._array.size:
        return 0
    return (self._array.__array_interface__["data"][0] - family.array.__array_interface__["data"][0]) // self._array.itemsize


@method
def is_contiguous(self: Tensor, memory_format: Any = contiguous_format) -> bool:
    array = self._array
    if memory_format is channels_last or memory_format is channels_last_3d:
        return array.ndim == (4 if memory_format is channels_last else 5) and np.moveaxis(array, 1, -1).flags.c_contiguous
    return bool(array.flags.c_contiguous)


@method
def data_ptr(self: Tensor) -> int:
    return self._array.__array_interface__["data"][0] if self._array.size else 0


@method
def element_size(self: Tensor) -> int:
    return self._array.itemsize


@method
def is_same_size(self: Tensor, other: Tensor) -> bool:
    return self._shape == other._shape


@method
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both are the same place in the same memory, read the same way."""
    return (
        self._shape == tensor._shape
        and self._array.strides == tensor._array.strides
        and self._array.__array_interface__["data"][0] == tensor._array.__array_interface__["data"][0]
    )
