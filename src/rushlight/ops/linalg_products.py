"""Norms, distances, powers and other compositions of linear algebra."""
from __future__ import annotations

from math import inf, isinf
from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor, wrap
from .dimensions import wrap_dim
from .einsum import chain, written
from .linalg_base import PRIVATE, adj, check_floating, check_matrix, check_square, constant, is_complex, unaffected
from .linalg_solve import inv, solve
from .matrix import scalar_name
from .table import TENSORS, operation


# -- norms -----------------------------------------------------------------------------------------------------------
def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None,
                out: Tensor | None = None) -> Tensor:
    """A norm of the elements, over all dimensions or some."""
    return TENSORS.linalg_vector_norm(x, ord, dim, keepdim, dtype=dtype, out=out)


def matrix_norm(A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None,
                out: Tensor | None = None) -> Tensor:
    """A norm of matrices: 'fro', 'nuc', 1, -1, 2, -2, inf or -inf."""
    name = "linalg.matrix_norm"
    check_matrix(A._array, name, low=True)
    dims = tuple(dim)
    if len(dims) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dims))}")
    first, second = wrap_dim(dims[0], A.ndim), wrap_dim(dims[1], A.ndim)
    if first == second:
        raise RuntimeError(f"{name}: dims must be different. Got ({dims[0]}, {dims[1]})")
    if dtype is not None:
        A = A.to(dtype)  # type: ignore[attr-defined]
    if ord == "fro":
        return written(TENSORS.linalg_vector_norm(A, 2, (first, second), keepdim), out, "linalg_matrix_norm")
    if isinstance(ord, str) and ord != "nuc":
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    size = None if ord == "nuc" else abs(float(ord))
    if size not in (None, 1, 2, inf):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    if size in (None, 2):
        check_matrix(A._array, name)
        values = TENSORS.linalg_svd(TENSORS.movedim(A, (first, second), (-2, -1)), False)[1]
        if size is None:
            result = TENSORS.sum(values, -1)
        else:
            result = (TENSORS.amax if ord > 0 else TENSORS.amin)(values, -1)
        if keepdim:
            for d in sorted((first, second)):
                result = TENSORS.unsqueeze(result, d)
        return written(result, out, "linalg_matrix_norm")
    # The largest or smallest of the sums along rows (inf) or columns (1).
    summed, chosen = (first, second) if size == 1 else (second, first)
    sums = TENSORS.linalg_vector_norm(A, 1, summed, True)
    result = (TENSORS.amax if ord > 0 else TENSORS.amin)(sums, chosen, True)
    if not keepdim:
        result = TENSORS.squeeze(result, (first, second))
    return written(result, out, "linalg_matrix_norm")


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None,
         dtype: Any = None) -> Tensor:
    """A vector or matrix norm, by the number of dimensions."""
    dims = (dim,) if isinstance(dim, int) else dim
    if ord is None:
        return vector_norm(A, 2, dims, keepdim, dtype=dtype, out=out)
    if dims is None:
        if A.ndim not in (1, 2):
            raise RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                               f"{A.ndim}D.")
        dims = tuple(range(A.ndim))
    if len(dims) not in (1, 2):
        raise RuntimeError("linalg.norm: If dim is specified, it must be of length 1 or 2. Got "
                           f"[{', '.join(map(str, dims))}]")
    if len(dims) == 2:
        return matrix_norm(A, ord, dims, keepdim, dtype=dtype, out=out)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {dims[0]}")
    return vector_norm(A, ord, dims, keepdim, dtype=dtype, out=out)


def cond(A: Tensor, p: Any = None, *, out: Tensor | None = None) -> Tensor:
    """The condition number in the chosen norm."""
    if not isinstance(A, Tensor):
        raise TypeError(f"linalg_cond(): argument 'input' (position 1) must be Tensor, not {type(A).__name__}")
    check_matrix(A._array, "linalg.cond")
    if p is None or p in (2, -2):
        values = TENSORS.linalg_svd(A, False)[1]
        largest, smallest = TENSORS.select(values, -1, 0), TENSORS.select(values, -1, -1)
        result = smallest / largest if p == -2 else largest / smallest
        return written(TENSORS.abs(result), out, "linalg_cond")
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if not isinstance(p, str) and abs(p) not in (1, inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    check_square(A._array, f"linalg.cond(ord={p})")
    if p == "nuc":
        values = TENSORS.linalg_svd(A, False)[1]
        result = TENSORS.sum(values, -1) * TENSORS.sum(TENSORS.reciprocal(values), -1)
        return written(TENSORS.nan_to_num(result, nan=inf, posinf=inf), out, "linalg_cond")
    inverse, info = TENSORS.linalg_inv_ex(A)
    result = TENSORS.mul(matrix_norm(A, p), matrix_norm(inverse, p))
    if info._array.any():
        result = TENSORS.masked_fill(result, wrap(info._array != 0), inf)
    return written(result, out, "linalg_cond")


# -- distances -------------------------------------------------------------------------------------------------------
def _cdist_gradient(F: Any, g: Any, x1: Any, x2: Any, p: Any, result: Any, which: int) -> Any:
    """The gradient of the distances with respect to x1 (which=0) or x2 (1)."""
    sign = -1 if which else 1
    dim = -3 if which else -2
    target = (x1, x2)[which].shape
    if p == 2:
        # Without the array of all differences: sum_j w_ij (x1_i - x2_j) = x1_i sum_j w_ij - (w x2)_i.
        weight = F.masked_fill(g / result, result == 0, 0)
        if which:
            made = x2 * F.unsqueeze(F.sum(weight, -2), -1) - F.matmul(F.transpose(weight, -2, -1), x1)
        else:
            made = x1 * F.unsqueeze(F.sum(weight, -1), -1) - F.matmul(weight, x2)
        return F.sum_to_size(made, target)
    difference = F.unsqueeze(x1, -2) - F.unsqueeze(x2, -3)
    made = _norm_gradient(F, F.unsqueeze(g, -1), difference, F.unsqueeze(result, -1), p)
    return F.sum_to_size(F.sum(made, dim) * sign, target)


def _norm_gradient(F: Any, g: Any, difference: Any, norm: Any, p: Any) -> Any:
    """The gradient of the p-norms of differences, 0 where the norm is."""
    direction = F.sign(difference)
    if p == 0:
        return difference * (g * 0)
    if p == 1:
        return direction * g
    if isinf(p):
        return F.where(F.abs(difference) == norm, direction * g, difference * 0)
    size = F.abs(difference)
    raised = F.masked_fill(F.masked_fill(size, size == 0, 1) ** (p - 1), size == 0, 0)
    below = F.masked_fill(F.masked_fill(norm, norm == 0, 1) ** (p - 1), norm == 0, 1)
    return F.masked_fill(direction * raised * g / below, norm == 0, 0)


def _cdist_first(F: Any, g: Any, x1: Any, x2: Any, p: Any, result: Any) -> Any:
    return _cdist_gradient(F, g, x1, x2, p, result, 0)


def _cdist_second(F: Any, g: Any, x1: Any, x2: Any, p: Any, result: Any) -> Any:
    return _cdist_gradient(F, g, x1, x2, p, result, 1)


@operation(x1=_cdist_first, x2=_cdist_second, node="CdistBackward0", name="cdist_forward", **PRIVATE)
def cdist_forward(x1, x2, p, by_products):
    if by_products:  # |a - b|^2 = |a|^2 - 2 a.b + |b|^2, which is one product of matrices
        squares = (x1 * x1).sum(-1)[..., :, None] + (x2 * x2).sum(-1)[..., None, :]
        return np.sqrt(np.maximum(squares - 2 * np.matmul(x1, x2.swapaxes(-1, -2)), 0))
    return _norms(np.abs(x1[..., :, None, :] - x2[..., None, :, :]), p)


def _norms(size: np.ndarray, p: Any) -> np.ndarray:
    """The p-norms of vectors given by the sizes of their elements."""
    if p == 0:
        return (size != 0).sum(-1).astype(size.dtype)
    if p == 1:
        return size.sum(-1)
    if p == 2:
        return np.sqrt(np.square(size).sum(-1))
    if isinf(p):
        return size.max(-1, initial=0)
    return (size ** size.dtype.type(p)).sum(-1) ** size.dtype.type(1 / p)


_COMPUTE_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0,
          compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The p-norm distance of every row of one matrix from every row of another."""
    for name, value in (("X1", x1), ("X2", x2)):
        if not isinstance(value, Tensor):
            raise TypeError(f"cdist(): argument '{name.lower()}' must be Tensor, not {type(value).__name__}")
        if dtypes.category(value._array.dtype) != dtypes.FLOATING:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: "
                               f"{scalar_name(value._array.dtype)}")
    for name, value in (("X1", x1), ("X2", x2)):
        if value.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {value.ndim}D")
    if x1._shape[-1] != x2._shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1._shape[-1]} X2: {x2._shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if compute_mode is not None and compute_mode not in _COMPUTE_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    large = x1._shape[-2] > 25 or x2._shape[-2] > 25
    if_large, always, _ = _COMPUTE_MODES
    by_products = p == 2 and (compute_mode == always or (large and compute_mode in (None, if_large)))
    return TENSORS.cdist_forward(x1, x2, float(p), by_products)


def _pdist_gradient(F: Any, g: Any, input: Any, p: Any, result: Any) -> Any:
    first, second = (constant(F, rows) for rows in np.triu_indices(input.shape[0], 1))
    difference = F.index_select(input, 0, first) - F.index_select(input, 0, second)
    made = _norm_gradient(F, F.unsqueeze(g, -1), difference, F.unsqueeze(result, -1), p)
    return F.index_add(F.index_add(input * 0, 0, first, made), 0, second, -made)


@operation(input=_pdist_gradient, node="PdistBackward0", **PRIVATE)
def pdist_forward(input, p):
    first, second = np.triu_indices(input.shape[0], 1)
    return _norms(np.abs(input[first] - input[second]), p)


def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The p-norm distance of every row from every one after it."""
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if dtypes.category(input._array.dtype) != dtypes.FLOATING:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return TENSORS.pdist_forward(input, float(p))


# -- products --------------------------------------------------------------------------------------------------------
@operation(input="sum_to_size(linalg_cross(conj(other), g, dim=dim), input_shape)",
           other="sum_to_size(linalg_cross(g, conj(input), dim=dim), other_shape)",
           node="LinalgCrossBackward0", **PRIVATE)
def linalg_cross(input, other, *, dim=-1):
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    axis = wrap_dim(dim, input.ndim)
    if input.shape[axis] != 3 or other.shape[axis] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[axis]} and "
                           f"{other.shape[axis]}")
    a, b = np.moveaxis(input, axis, 0), np.moveaxis(other, axis, 0)
    made = (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
    return np.stack(made, axis)


def linalg_cross_public(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The cross product of vectors of three elements."""
    return TENSORS.linalg_cross(input, other, dim=dim, out=out)


def cross(input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The cross product, along the first dimension of size 3 where none is named."""
    if dim is None:
        dim = next((d for d, size in enumerate(input._shape) if size == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return TENSORS.linalg_cross(input, other, dim=dim, out=out)


def multi_dot(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """The product of several matrices; the first and the last may be vectors."""
    given = list(tensors)
    if len(given) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(given)}")
    for i, one in enumerate(given):
        allowed = (1, 2) if i in (0, len(given) - 1) else (2,)
        if one.ndim not in allowed:
            words = "1D or 2D" if len(allowed) == 2 else "2D"
            raise RuntimeError(f"multi_dot(): tensor {i} must be {words} but got {one.ndim}D")
        if one._array.dtype != given[0]._array.dtype:
            raise RuntimeError("multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                               f"{given[0].dtype} and tensor {i} "
                               f"{one.dtype}")
    first, last = given[0].ndim == 1, given[-1].ndim == 1
    if first:
        given[0] = TENSORS.unsqueeze(given[0], 0)
    if last:
        given[-1] = TENSORS.unsqueeze(given[-1], -1)
    for i in range(1, len(given)):
        if given[i - 1]._shape[1] != given[i]._shape[0]:
            raise RuntimeError(f"multi_dot(): tensors {i - 1} and {i} with shapes {list(given[i - 1]._shape)} and "
                               f"{list(given[i]._shape)} "
                               "cannot be multiplied")
    result = chain(given)
    if first or last:
        shape = tuple(n for n, gone in zip(result._shape, (first, last), strict=True) if not gone)
        result = TENSORS.reshape(result, shape)
    return written(result, out, "linalg_multi_dot")


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The sum of conj(x) * y along a dimension."""
    for one in (x, y):
        check_floating(one._array, "linalg.vecdot", low=True)
    return written(TENSORS.sum(TENSORS.conj(x) * y, dim), out, "linalg_vecdot")


def matrix_power(A: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """A square matrix multiplied with itself; a negative power is one of the inverse."""
    array = A._array
    if array.ndim < 2:
        raise RuntimeError("linalg.matrix_power: The input tensor A must have at least 2 dimensions.")
    if array.shape[-1] != array.shape[-2]:
        raise RuntimeError("linalg.matrix_power: A must be batches of square matrices, but they are "
                           f"{array.shape[-2]} by "
                           f"{array.shape[-1]} matrices")
    if n == 0:
        return written(TENSORS.identity_like(A), out, "linalg_matrix_power")
    base, power = (inv(A), -n) if n < 0 else (A, n)
    if power == 1:
        return written(TENSORS.clone(base), out, "linalg_matrix_power")
    result: Tensor | None = None
    while power:
        power, odd = divmod(power, 2)
        if odd:
            result = base if result is None else TENSORS.matmul(result, base)
        if power:
            base = TENSORS.matmul(base, base)
    return written(result, out, "linalg_matrix_power")  # type: ignore[arg-type]


def _exponential_gradient(F: Any, g: Any, input: Any) -> Any:
    """The upper right block of the exponential of [[A^H, g], [0, A^H]]."""
    n = input.shape[-1]
    if n == 0:
        return g
    turned = adj(F, input)
    zero = constant(F, np.zeros(input.shape, unaffected(F, input).dtype))
    block = F.cat([F.cat([turned, g], -1), F.cat([zero, turned], -1)], -2)
    return F.linalg_matrix_exp(block)[..., :n, n:]


@operation(input=_exponential_gradient, node="LinalgMatrixExpBackward0", **PRIVATE)
def linalg_matrix_exp(input):
    check_square(input, "linalg.matrix_exp")
    if not input.size:
        return input.copy()
    from scipy.linalg import expm
    return expm(input).astype(input.dtype, copy=False)


def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of square matrices."""
    return TENSORS.linalg_matrix_exp(input)


# -- reflections -----------------------------------------------------------------------------------------------------
def _reflect(vectors: Tensor, tau: Tensor, i: int, target: Tensor, conjugated: bool = False) -> Tensor:
    """(I - tau_i v_i v_i^H) target."""
    v = TENSORS.slice(vectors, -1, i, i + 1)
    scale = TENSORS.unsqueeze(TENSORS.slice(tau, -1, i, i + 1), -1)
    if conjugated:
        scale = TENSORS.conj(scale)
    return target - TENSORS.matmul(v * scale, TENSORS.matmul(adj(TENSORS, v), target))


def _reflectors(input: Tensor) -> Tensor:
    return TENSORS.tril(input, -1) + wrap(np.eye(*input._shape[-2:], dtype=input._array.dtype))


def _check_reflectors(name: str, A: Tensor, tau: Tensor) -> None:
    if A.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if A._shape[-2] < A._shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if tau._shape[-1] > A._shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if A.ndim - tau.ndim != 1:
        raise RuntimeError(f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to "
                           f"{tau.ndim} and "
                           f"input.ndim is equal to {A.ndim}")
    if A._shape[:-2] != tau._shape[:-1]:
        raise RuntimeError(f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
                           f"{list(tau._shape[:-1])}")
    if A._array.dtype != tau._array.dtype:
        raise RuntimeError(f"{name}: tau dtype {tau.dtype} does not match input dtype {A.dtype}")


def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first columns of a product of Householder reflections."""
    _check_reflectors("torch.linalg.householder_product", A, tau)
    vectors = _reflectors(A)
    result = TENSORS.identity_like(A)
    for i in reversed(range(tau._shape[-1])):
        result = _reflect(vectors, tau, i, result)
    return written(result, out, "linalg_householder_product")


def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False, *,
          out: Tensor | None = None) -> Tensor:
    """The product of Q, given as Householder reflections, and another matrix."""
    name = "torch.ormqr"
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if other.ndim < 2:
        raise RuntimeError(f"{name}: other must have at least 2 dimensions.")
    side = -2 if left else -1
    if other._shape[side] < tau._shape[-1]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be greater than or equal to tau.shape[-1]")
    if other._shape[side] != input._shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be equal to input.shape[-2]")
    if tau._shape[-1] != min(other._shape[side], input._shape[-1]):
        raise RuntimeError(f"{name}: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    # B Q = (Q^H B^H)^H, so the right side is the left one, turned.
    target, forwards = (other, transpose) if left else (adj(TENSORS, other), not transpose)
    vectors = _reflectors(input)
    order = range(tau._shape[-1])
    for i in order if forwards else reversed(order):
        target = _reflect(vectors, tau, i, target, conjugated=forwards and is_complex(tau))
    return written(target if left else adj(TENSORS, target), out, "ormqr")


# -- tensors as matrices ---------------------------------------------------------------------------------------------
def _size(shape: tuple) -> int:
    return int(np.prod(shape))


def tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse of a tensor as a map from its last dimensions to its first `ind`."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    end, start = A._shape[ind:], A._shape[:ind]
    if _size(end) != _size(start):
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[ind:]) == "
                           "prod(self.shape[:ind]), but got "
                           f"{_size(end)} != {_size(start)}")
    flat = TENSORS.reshape(A, (_size(start), _size(end)))
    return written(TENSORS.reshape(inv(flat), end + start), out, "linalg_tensorinv")


def tensorsolve(A: Tensor, B: Tensor, dims: Any = None, *, out: Tensor | None = None) -> Tensor:
    """The X with tensordot(A, X, X.ndim) = B."""
    if dims is not None:
        moved = [wrap_dim(d, A.ndim) for d in ((dims,) if isinstance(dims, int) else dims)]
        A = TENSORS.movedim(A, moved, list(range(A.ndim - len(moved), A.ndim)))
    shape = A._shape[B.ndim:]
    if _size(shape) != _size(A._shape[:B.ndim]):
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
                           "prod(self.shape[:other.ndim]), but "
                           f"got {_size(shape)} != {_size(A._shape[:B.ndim])}")
    matrix = TENSORS.reshape(A, (_size(shape), _size(shape)))
    made = solve(matrix, TENSORS.reshape(B, (-1,)))
    return written(TENSORS.reshape(made, shape), out, "linalg_tensorsolve")


def vander(x: Tensor, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element, along a new last dimension."""
    if x.ndim == 0:
        x = TENSORS.reshape(x, (1,))
    count = x._shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    kind = x._array.dtype if dtypes.category(x._array.dtype) != dtypes.BOOLEAN else np.dtype(np.int64)
    base = TENSORS.expand(TENSORS.unsqueeze(x if kind == x._array.dtype else x.to(dtypes.int64), -1),  # type: ignore[attr-defined]
                          (*x._shape, count - 1))
    ones = wrap(np.ones((*x._shape, 1), kind))
    return TENSORS.cat([ones, TENSORS.cumprod(base, -1)], -1)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices, as a view."""
    return TENSORS.diagonal(A, offset, dim1, dim2)
