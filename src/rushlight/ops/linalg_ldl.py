"""The LDL factorisation of symmetric and Hermitian matrices, and solving with it."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..tensor import Tensor
from .einsum import written
from .linalg_base import PRIVATE, check_square, each
from .matrix import scalar_name
from .reductions import named
from .table import TENSORS, operation


def _no_derivative(name: str) -> Any:
    raise RuntimeError(f"derivative for aten::{name} is not implemented")


def _routine(kind: str, matrix: np.ndarray, hermitian: bool) -> Any:
    from scipy.linalg.lapack import get_lapack_funcs
    prefix = "he" if hermitian and matrix.dtype.kind == "c" else "sy"
    return get_lapack_funcs((prefix + kind,), (matrix,))[0]


def _factor(matrix: np.ndarray, hermitian: bool) -> tuple[np.ndarray, np.ndarray, int]:
    """L below the diagonal of D, LAPACK's account of the exchanges, and 0 or where D has a zero."""
    if not matrix.size:
        return matrix.copy(), np.zeros(0, np.int32), 0
    made, pivots, info = _routine("trf", matrix, hermitian)(matrix, lower=1)
    return np.tril(made), pivots.astype(np.int32), info


@operation(A=lambda F, g0: _no_derivative("linalg_ldl_factor_ex"), outputs="LD pivots info", node="NotImplemented",
           **PRIVATE)
def linalg_ldl_factor_ex(A, hermitian=False):
    check_square(A, "torch.linalg.ldl_factor_ex")
    made = each(lambda matrix: _factor(matrix, hermitian), A)
    batch = A.shape[:-2]
    return (np.array([one[0] for one in made], A.dtype).reshape(A.shape),
            np.array([one[1] for one in made], np.int32).reshape(A.shape[:-1]),
            np.array([one[2] for one in made], np.int32).reshape(batch))


def _check_singular(info: Tensor, name: str) -> None:
    failed = np.flatnonzero(info._array.reshape(-1))
    if failed.size:
        i = int(info._array.reshape(-1)[failed[0]])
        where = f"(Batch element {failed[0]}): " if info.ndim else ""
        raise RuntimeError(f"{name}: {where}D[{i},{i}] is zero, so that solving with this factorization would divide by "
                           "zero")


def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """L and D in one matrix, the exchanges of rows and columns, and for each matrix 0 or where D has a zero."""
    made = TENSORS.linalg_ldl_factor_ex(A, hermitian, out=out)
    if check_errors:
        _check_singular(made[2], "torch.linalg.ldl_factor_ex")
    return _ldl_factor_ex(made)


def ldl_factor(A: Tensor, *, hermitian: bool = False, out: Any = None) -> Any:
    """L and D in one matrix with A = P L D L^T P^T (L^H where Hermitian), and the exchanges P is made of."""
    factors, pivots, info = TENSORS.linalg_ldl_factor_ex(A, hermitian)
    _check_singular(info, "torch.linalg.ldl_factor")
    if out is not None:
        return _ldl_factor(written(one, target, "linalg_ldl_factor")
                           for one, target in zip((factors, pivots), out, strict=True))
    return _ldl_factor((factors, pivots))


@operation(LD=lambda F, g: _no_derivative("linalg_ldl_solve"), B=lambda F, g: _no_derivative("linalg_ldl_solve"),
           tensors="pivots", node="NotImplemented", **PRIVATE)
def linalg_ldl_solve(LD, pivots, B, hermitian=False):
    name = "torch.linalg.ldl_solve"
    check_square(LD, name)
    if B.ndim < 2:
        raise RuntimeError(f"{name}: Expected B to have at least 2 dimensions, but it has {B.ndim} dimensions instead")
    if LD.shape[:-1] != pivots.shape:
        raise RuntimeError(f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
                           f"{list(pivots.shape)} instead")
    if pivots.dtype.kind not in "iu":
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {scalar_name(pivots.dtype)}")
    if LD.dtype != B.dtype:
        raise RuntimeError("Expected b and A to have the same dtype, but found b of type "
                           f"{scalar_name(B.dtype)} and A of type {scalar_name(LD.dtype)} instead.")
    if LD.shape[-1] != B.shape[-2]:
        raise RuntimeError(f"Incompatible matrix sizes for {name}: each A matrix is {LD.shape[-1]} by {LD.shape[-1]} but "
                           f"each b matrix is {B.shape[-2]} by {B.shape[-1]}")
    batch = np.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    LD, B = (np.broadcast_to(one, batch + one.shape[-2:]) for one in (LD, B))
    columns = np.broadcast_to(pivots, batch + pivots.shape[-1:])[..., None]

    def solve(matrix: np.ndarray, exchanges: np.ndarray, right: np.ndarray) -> np.ndarray:
        return _routine("trs", matrix, hermitian)(matrix, exchanges[:, 0].astype(np.int32), right, lower=1)[0]

    if not B.size:
        return np.zeros(B.shape, B.dtype)
    return np.array(each(solve, LD, columns, B), B.dtype).reshape(B.shape)


def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False, out: Tensor | None = None) -> Tensor:
    """The X with A X = B, given A's LDL factorisation."""
    return TENSORS.linalg_ldl_solve(LD, pivots, B, hermitian, out=out)


_ldl_factor = named("linalg_ldl_factor", "LD pivots")
_ldl_factor_ex = named("linalg_ldl_factor_ex", "LD pivots info")
