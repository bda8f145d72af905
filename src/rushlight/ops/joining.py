"""Joining tensors: cat, stack and their kin; broadcasting several to one shape; products of several."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Size, Tensor, wrap
from .arithmetic import install
from .dimensions import broadcast_shape, sizes_of, wrap_dim
from .quick import Quick, common_real, edges_from, tensor_over
from .table import TABLE, TENSORS, method, operation, public

_PRIVATE = {"public": False, "method": False}


def common_dtype(arrays: list[np.ndarray]) -> np.dtype:
    """The dtype that joined arrays meet at."""
    first = arrays[0].dtype
    if all(a.dtype is first for a in arrays):
        return first
    return dtypes.result_type([a.dtype for a in arrays if a.ndim], [a.dtype for a in arrays if not a.ndim], [])


def cast_all(arrays: list[np.ndarray]) -> list[np.ndarray]:
    wanted = common_dtype(arrays)
    return [a if a.dtype == wanted else a.astype(wanted) for a in arrays]


def _is_legacy_empty(shape: tuple) -> bool:
    # A tensor of sizes (0,) joins anything: PyTorch keeps this old rule.
    return shape == (0,)


def _cat_formula(F, g, tensors_shape, dim):
    ndim = g.ndim
    place = dim % ndim if ndim else 0
    pieces: list = []
    start = 0
    for shape in tensors_shape:
        if _is_legacy_empty(shape) and (ndim != 1 or place):
            pieces.append(None)
            continue
        pieces.append(F.slice(g, place, start, start + shape[place], 1))
        start += shape[place]
    return (pieces,)


@operation(together=_cat_formula, differentiable="tensors", lists="tensors", jvp="linear", name="_cat", **_PRIVATE)
def cat_arrays(tensors, dim=0):
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for i, one in enumerate(tensors):
        if not one.shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    arrays = cast_all(tensors)
    joined = [a for a in arrays if not _is_legacy_empty(a.shape)]
    if not joined:
        wrap_dim(dim, 1)
        return arrays[0].copy()
    shape = joined[0].shape
    place = wrap_dim(dim, len(shape))
    try:
        return np.concatenate(joined, place)
    except ValueError:
        for i, one in enumerate(arrays):
            if _is_legacy_empty(one.shape):
                continue
            if one.ndim != len(shape):
                raise RuntimeError(f"Tensors must have same number of dimensions: got {len(shape)} and {one.ndim}") from None
            for d in range(len(shape)):
                if d != place and one.shape[d] != shape[d]:
                    raise RuntimeError(
                        f"Sizes of tensors must match except in dimension {place}. Expected size {shape[d]} but got "
                        f"size {one.shape[d]} for tensor number {i} in the list: cat got shapes {list(shape)} and "
                        f"{list(one.shape)}."
                    ) from None
        raise


@operation(
    together=lambda F, g, dim: (F.unbind(g, dim),),
    differentiable="tensors",
    lists="tensors",
    jvp="linear",
    name="_stack",
    **_PRIVATE,
)
def stack_arrays(tensors, dim=0):
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    arrays = cast_all(tensors)
    shape = arrays[0].shape
    place = wrap_dim(dim, len(shape) + 1)
    for i, one in enumerate(arrays):
        if one.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and {list(one.shape)} at entry {i}"
            )
    widened = (*shape[:place], 1, *shape[place:])
    return np.concatenate([a.reshape(widened) for a in arrays], place)


_QUICK_CAT, _QUICK_STACK = Quick(TABLE["_cat"]), Quick(TABLE["_stack"])


def _join(quick: Quick, tensors: Any, dim: int, out: Tensor | None) -> Tensor:
    """cat and stack: the short path where the tensors are alike, else the long one."""
    if out is None:
        real = common_real(tensors)
        # cat: a tensor of no elements may be one that takes part in name only.
        if real is not None and (quick is _QUICK_STACK or all(one._shape and one._array.size for one in tensors)):
            result = tensor_over(quick.op.kernel([one._array for one in tensors], dim), real)
            edges = edges_from(tensors)
            if edges is not None:
                kept = (dim,) if quick is _QUICK_STACK else (dim, [one._shape for one in tensors])
                result._node = quick.node(kept, edges)
            return result
    if isinstance(tensors, Tensor):
        name = quick.op.name[1:]
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    return quick.op.function(tensors, dim, out=out)  # type: ignore[misc]


def cat(tensors: Any, dim: int = 0, *, axis: int | None = None, out: Tensor | None = None) -> Tensor:
    """Tensors one after the other along a dimension they have."""
    return _join(_QUICK_CAT, tensors, dim if axis is None else axis, out)


def stack(tensors: Any, dim: int = 0, *, axis: int | None = None, out: Tensor | None = None) -> Tensor:
    """Tensors side by side along a new dimension."""
    return _join(_QUICK_STACK, tensors, dim if axis is None else axis, out)


for _name in ("cat", "concat", "concatenate"):
    install(_name, cat, "function", raw=cat_arrays)
install("stack", stack, "function", raw=stack_arrays)


def _list(tensors: Any, name: str) -> list:
    if isinstance(tensors, Tensor):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    members = list(tensors)
    if not members:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    for i, one in enumerate(members):
        if not isinstance(one, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(one).__name__}")
    return members


@public
def hstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    members = [atleast_1d(one) for one in _list(tensors, "hstack")]
    return TENSORS.cat(members, 0 if len(members[0]._shape) == 1 else 1, out=out)


@public
def vstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    return TENSORS.cat([atleast_2d(one) for one in _list(tensors, "vstack")], 0, out=out)


install("row_stack", vstack, "function")


@public
def dstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    return TENSORS.cat([atleast_3d(one) for one in _list(tensors, "dstack")], 2, out=out)


@public
def column_stack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    members = [
        one if len(one._shape) > 1 else TENSORS.reshape(one, (one._array.size, 1)) for one in _list(tensors, "column_stack")
    ]
    return TENSORS.cat(members, 1, out=out)


def _each(function: Any, tensors: tuple) -> Any:
    """atleast_*d take one tensor, several, or a list of them."""
    if len(tensors) == 1:
        only = tensors[0]
        return function(only) if isinstance(only, Tensor) else tuple(function(one) for one in only)
    return tuple(function(one) for one in tensors)


@public
def atleast_1d(*tensors: Any) -> Any:
    return _each(lambda x: x if x._shape else TENSORS.reshape(x, (1,)), tensors)


@public
def atleast_2d(*tensors: Any) -> Any:
    return _each(
        lambda x: x if len(x._shape) > 1 else TENSORS.unsqueeze(x, 0) if x._shape else TENSORS.reshape(x, (1, 1)),
        tensors,
    )


@public
def atleast_3d(*tensors: Any) -> Any:
    def grow(x: Tensor) -> Tensor:
        count = len(x._shape)
        if count == 0:
            return TENSORS.reshape(x, (1, 1, 1))
        if count == 1:
            return TENSORS.unsqueeze(TENSORS.unsqueeze(x, 0), -1)
        return TENSORS.unsqueeze(x, -1) if count == 2 else x

    return _each(grow, tensors)


# -- blocks ----------------------------------------------------------------------------------------------------------
def _block_sizes(shape: tuple) -> tuple[int, int]:
    return (1, 1) if not shape else (1, shape[0]) if len(shape) == 1 else shape  # type: ignore[return-value]


def _block_diag_formula(F, g, tensors_shape):
    pieces, row, column = [], 0, 0
    for shape in tensors_shape:
        rows, columns = _block_sizes(shape)
        block = F.slice(F.slice(g, 0, row, row + rows, 1), 1, column, column + columns, 1)
        pieces.append(F.reshape(block, shape))
        row, column = row + rows, column + columns
    return (pieces,)


@operation(
    together=_block_diag_formula,
    differentiable="tensors",
    lists="tensors",
    jvp="linear",
    name="_block_diag",
    **_PRIVATE,
)
def block_diag_array(tensors):
    for i, one in enumerate(tensors):
        if one.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {one.ndim} dimensions"
            )
    if not tensors:
        return np.zeros((1, 0), dtypes.default_numpy())
    sizes = [_block_sizes(one.shape) for one in tensors]
    matrix = np.zeros((sum(r for r, _ in sizes), sum(c for _, c in sizes)), common_dtype(tensors))
    row = column = 0
    for one, (rows, columns) in zip(tensors, sizes, strict=True):
        matrix[row : row + rows, column : column + columns] = one
        row, column = row + rows, column + columns
    return matrix


@public
def block_diag(*tensors: Any) -> Tensor:
    """The tensors as blocks along the diagonal of a matrix."""
    return TENSORS._block_diag(list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors))


# -- to one shape ----------------------------------------------------------------------------------------------------
def _members(tensors: tuple) -> list:
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)


@public
def broadcast_shapes(*shapes: Any) -> Size:
    given = [(one,) if isinstance(one, int) else sizes_of((one,)) for one in shapes]
    for shape in given:
        if any(size < 0 for size in shape):
            raise RuntimeError(f"Trying to create tensor with negative dimension ({min(shape)}): ({min(shape)})")
    return Size(broadcast_shape(*given))


@public
def broadcast_tensors(*tensors: Any) -> tuple:
    members = _members(tensors)
    target: tuple[int, ...] = ()
    for one in members:
        for i, (a, b) in enumerate(zip(target[::-1], one._shape[::-1], strict=False)):
            if a != b and 1 not in (a, b):
                dimension = max(len(target), len(one._shape)) - 1 - i
                raise RuntimeError(f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension "
                                   f"{dimension}: broadcast_tensors got shapes "
                                   + ", ".join(str(list(member._shape)) for member in members))
        target = broadcast_shape(target, one._shape)
    return tuple(TENSORS.expand(one, target) for one in members)


@public
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple:
    """Grids of coordinates."""
    members = _members(tensors)
    if not members:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        import warnings

        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
            UserWarning,
            stacklevel=2,
        )
        indexing = "ij"
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for one in members:
        if len(one._shape) > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {one!r}")
        if one._array.dtype != members[0]._array.dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(members) >= 2
    if swap:
        members[:2] = members[1::-1]
    shape = tuple(one._array.size for one in members)
    grids = [
        TENSORS.expand(TENSORS.reshape(one, (1,) * i + (-1,) + (1,) * (len(members) - i - 1)), shape)
        for i, one in enumerate(members)
    ]
    if swap:
        grids[:2] = grids[1::-1]
    return tuple(grids)


@public
def cartesian_prod(*tensors: Any) -> Tensor:
    """Every choice of one element from each."""
    members = _members(tensors)
    for one in members:
        if len(one._shape) != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(one._shape)}")
    if len(members) == 1:
        return members[0]
    return TENSORS.stack([TENSORS.flatten(grid) for grid in meshgrid(*members, indexing="ij")], 1)


@public
@method
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every choice of r elements, in order."""
    if len(input._shape) != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input._shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    count = input._shape[0]
    if r == 0:
        return wrap(np.empty(0, input._array.dtype))
    places = np.indices((count,) * r).reshape(r, -1)
    rising = np.greater_equal if with_replacement else np.greater
    kept = np.ones(places.shape[1], bool)
    for earlier, later in zip(places, places[1:], strict=False):
        kept &= rising(later, earlier)
    mask = wrap(kept.reshape((count,) * r))
    grids = meshgrid(*[input] * r, indexing="ij")
    return TENSORS.stack([TENSORS.masked_select(grid, mask) for grid in grids], 1)
