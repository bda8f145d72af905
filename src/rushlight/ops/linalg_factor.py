"""Factorisations and their gradients: Cholesky, QR, LU, singular values, eigenvalues."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..tensor import Tensor, wrap
from .einsum import written
from .linalg_base import (
    PRIVATE,
    LinAlgError,
    adj,
    check_info,
    check_matrix,
    check_square,
    constant,
    diagonal_of,
    each,
    identity,
    is_complex,
    unaffected,
)
from .reductions import named
from .table import TENSORS, operation

_NOT_POSITIVE = ("The factorization could not be completed because the input is not positive-definite (the leading "
                 "minor of order "
                 "{info} is not positive-definite).")


# -- Cholesky --------------------------------------------------------------------------------------------------------
def _cholesky_gradient(F: Any, g0: Any, result0: Any, upper: bool) -> Any:
    L, gL = (adj(F, result0), adj(F, g0)) if upper else (result0, g0)
    phi = F.matmul(adj(F, L), gL)
    phi = (F.tril(phi, 0) + adj(F, F.tril(phi, -1))) * 0.5
    left = F.linalg_solve_triangular(adj(F, L), phi, True)
    return F.linalg_solve_triangular(L, left, False, False)


def _minor(matrix: np.ndarray) -> tuple[np.ndarray, int]:
    """A Cholesky factor as far as it goes, and the order of the first leading minor that is not positive."""
    try:
        return np.linalg.cholesky(matrix), 0
    except np.linalg.LinAlgError:
        pass
    for order in range(1, len(matrix) + 1):
        try:
            np.linalg.cholesky(matrix[:order, :order])
        except np.linalg.LinAlgError:
            break
    return np.full_like(matrix, np.nan), order


@operation(input=_cholesky_gradient, outputs="L info", node="LinalgCholeskyExBackward0", **PRIVATE)
def linalg_cholesky_ex(input, upper=False):
    check_square(input, "linalg.cholesky")
    # LAPACK reads the lower triangle only, as PyTorch does; for the upper factor, the upper one.
    matrices = input.swapaxes(-1, -2).conj() if upper else input
    try:
        factor = np.linalg.cholesky(matrices)
        info = np.zeros(input.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        made = each(_minor, matrices)
        factor = np.array([one for one, _ in made]).reshape(input.shape)
        info = np.array([order for _, order in made], np.int32).reshape(input.shape[:-2])
    return factor.swapaxes(-1, -2).conj() if upper else factor, info


def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """The Cholesky factor, and for each matrix 0 or the order of the minor that is not positive."""
    made = TENSORS.linalg_cholesky_ex(input, upper, out=out)
    if check_errors:
        check_info(made[1], "torch.linalg.cholesky_ex", _NOT_POSITIVE)
    return _cholesky_ex(made)


def cholesky(input: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """The lower triangular L with input = L L^H."""
    factor, info = TENSORS.linalg_cholesky_ex(input, upper)
    check_info(info, "linalg.cholesky", _NOT_POSITIVE)
    return written(factor, out, "linalg_cholesky")


_cholesky_ex = named("linalg_cholesky_ex", "L info")


# -- QR --------------------------------------------------------------------------------------------------------------
def _halve_diagonal(F: Any, input: Any) -> Any:
    return input - F.diag_embed(diagonal_of(F, input)) * 0.5


def _qr_gradient(F: Any, g0: Any, g1: Any, result0: Any, result1: Any, mode: str) -> Any:
    if mode == "r":
        raise RuntimeError("The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
                           "linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr.")
    Q, R = result0, result1
    m, n = Q.shape[-2], R.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    if g0 is None and g1 is None:
        return None
    inner = 0
    if g0 is not None:
        inner = F.matmul(adj(F, Q), g0)
    if g1 is not None:
        inner = inner - F.matmul(g1, adj(F, R))
    if m >= n:
        upper = F.triu(-inner, 0)
        made = F.matmul(Q, _halve_diagonal(F, upper + adj(F, upper)))
        if g0 is not None:
            made = made + g0
        return F.linalg_solve_triangular(adj(F, R), made, False, False)
    skew = _halve_diagonal(F, F.tril(inner - adj(F, inner), 0))
    first = F.linalg_solve_triangular(adj(F, R[..., :m]), skew, False, False)
    rest = constant(F, np.zeros((*first.shape[:-1], n - m), unaffected(F, first).dtype))
    made = F.cat([first, rest], -1)
    return F.matmul(Q, made if g1 is None else made + g1)


@operation(A=_qr_gradient, outputs="Q R", zeros=False, node="LinalgQrBackward0", **PRIVATE)
def linalg_qr(A, mode="reduced"):
    check_matrix(A, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or "
                           "'complete'")
    if mode == "r":
        return np.zeros(0, A.dtype), np.linalg.qr(A, "r")
    return tuple(np.linalg.qr(A, mode))


def qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> Any:
    """Q with orthonormal columns and upper triangular R with A = Q R."""
    return _qr(TENSORS.linalg_qr(A, mode, out=out))


_qr = named("linalg_qr", "Q R")
legacy_qr = named("qr", "Q R")


@operation(input=lambda F, g0: _not_differentiable("geqrf"), outputs=2, name="geqrf")
def _geqrf(input):
    check_matrix(input, "geqrf", "input")
    reflectors, tau = np.linalg.qr(input, "raw")
    return reflectors.swapaxes(-1, -2), tau


def _not_differentiable(name: str) -> Any:
    raise NotImplementedError(f"the derivative for '{name}' is not implemented.")


# -- LU --------------------------------------------------------------------------------------------------------------
def _factor(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Elimination with row exchanges: both factors in one matrix, and the exchanges counted from 1."""
    from scipy.linalg.lapack import get_lapack_funcs
    m, n = matrix.shape
    if min(m, n) == 0:
        return matrix.copy(), np.zeros(0, np.int32), 0
    getrf, = get_lapack_funcs(("getrf",), (matrix,))
    made, pivots, info = getrf(matrix)
    return made, pivots.astype(np.int32) + 1, max(info, 0)


def permutation_of(pivots: np.ndarray, m: int) -> np.ndarray:
    """The order in which the exchanges leave m rows."""
    batch = pivots.shape[:-1]
    rows = np.broadcast_to(np.arange(m), (*batch, m)).copy().reshape(prod(batch), m)
    for line, exchanges in zip(rows, pivots.reshape(len(rows), pivots.shape[-1]), strict=True):
        for i, j in enumerate(exchanges):
            line[i], line[j - 1] = line[j - 1], line[i]
    return rows.reshape(*batch, m)


def permutation_matrix(pivots: np.ndarray, m: int, dtype: Any) -> np.ndarray:
    """P with A = P L U."""
    order = permutation_of(pivots, m)
    made = np.zeros((*order.shape, m), dtype)
    np.put_along_axis(made, order[..., None, :], 1, -2)
    return made


def _lu_gradient(F: Any, g0: Any, result0: Any, result1: Any) -> Any:
    m, n = result0.shape[-2:]
    k = min(m, n)
    P = constant(F, permutation_matrix(unaffected(F, result1), m, unaffected(F, result0).dtype))
    L1 = F.tril(result0[..., :k, :k], -1) + identity(F, result0, k)
    U1 = F.triu(result0[..., :k, :k], 0)
    gL, gU = F.tril(g0[..., :, :k], -1), F.triu(g0[..., :k, :], 0)
    left = F.matmul(adj(F, L1), gL[..., :k, :])
    right = F.matmul(gU[..., :k], adj(F, U1))
    if m < n:
        left = left - F.matmul(gU[..., m:], adj(F, result0[..., m:]))
    elif m > n:
        right = right - F.matmul(adj(F, result0[..., n:, :]), gL[..., n:, :])
    inner = F.tril(left, -1) + F.triu(right, 0)
    if m <= n:
        # (L^-H inner U1^-H | L^-H gU2)
        block = F.linalg_solve_triangular(adj(F, U1), inner, False, False)
        if m < n:
            block = F.cat([block, gU[..., m:]], -1)
        return F.matmul(P, F.linalg_solve_triangular(adj(F, L1), block, True, True, True))
    block = F.linalg_solve_triangular(adj(F, L1), inner, True, True, True)
    block = F.cat([block, gL[..., n:, :]], -2)
    return F.matmul(P, F.linalg_solve_triangular(adj(F, U1), block, False, False))


@operation(A=_lu_gradient, outputs="LU pivots info", node="LinalgLuFactorExBackward0", **PRIVATE)
def linalg_lu_factor_ex(A, pivot=True):
    check_matrix(A, "torch.lu_factor")
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    made = each(_factor, A)
    batch = A.shape[:-2]
    return (np.array([one[0] for one in made], A.dtype).reshape(A.shape),
            np.array([one[1] for one in made], np.int32).reshape(*batch, min(A.shape[-2:])),
            np.array([one[2] for one in made], np.int32).reshape(batch))


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """Both LU factors in one matrix, the exchanges of rows, and for each matrix 0 or where a zero pivot is."""
    made = TENSORS.linalg_lu_factor_ex(A, pivot, out=out)
    if check_errors:
        _check_pivots(made[2], "torch.linalg.lu_factor_ex")
    return _lu_factor_ex(made)


def lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """Both LU factors in one matrix, and the exchanges of rows."""
    factors, pivots, info = TENSORS.linalg_lu_factor_ex(A, pivot)
    _check_pivots(info, "torch.linalg.lu_factor")
    if out is not None:
        return _lu_factor((written(factors, out[0], "linalg_lu_factor"), written(pivots, out[1], "linalg_lu_factor")))
    return _lu_factor((factors, pivots))


def _check_pivots(info: Tensor, name: str) -> None:
    failed = np.flatnonzero(info._array.reshape(-1))
    if failed.size:
        i = int(info._array.reshape(-1)[failed[0]])
        where = f"(Batch element {failed[0]}): " if info.ndim else ""
        raise RuntimeError(f"{name}: {where}U[{i},{i}] is zero and using it on lu_solve would result in a division by "
                           "zero. If you still "
                           "want to perform the factorization, consider calling linalg.lu(A, pivot) or "
                           "linalg.lu_factor_ex(A, pivot)")


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True, *,
              out: Any = None) -> Any:
    """P, L and U from what lu_factor gives."""
    m, n = LU_data._shape[-2:]
    k = min(m, n)
    empty = wrap(np.zeros(0, LU_data._array.dtype))
    if unpack_pivots and LU_pivots._array.dtype != np.int32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 "
                           "dtype.\nNote: this function "
                           "is intended to be used with the output produced by torch.linalg.lu_factor")
    P = wrap(permutation_matrix(LU_pivots._array, m, LU_data._array.dtype)) if unpack_pivots else empty
    L = U = empty
    if unpack_data:
        L = TENSORS.tril(TENSORS.slice(LU_data, -1, 0, k), -1) + wrap(np.eye(m, k, dtype=LU_data._array.dtype))
        U = TENSORS.triu(TENSORS.slice(LU_data, -2, 0, k), 0)
    if out is not None:
        return _lu_unpack(written(one, target, "lu_unpack") for one, target in zip((P, L, U), out, strict=True))
    return _lu_unpack((P, L, U))


def lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """P, L and U with A = P L U."""
    factors, pivots, _ = TENSORS.linalg_lu_factor_ex(A, pivot)
    return _lu(lu_unpack(factors, pivots, out=out))


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False,
             out: Tensor | None = None) -> Tensor:
    """The X with A X = B, given A's LU factors."""
    check_square(LU._array, "torch.linalg.lu_solve", "LU")
    check_matrix(B._array, "torch.linalg.lu_solve", "B")
    if pivots._array.dtype != np.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    if B._shape[-2 if left else -1] != LU._shape[-1]:
        raise RuntimeError("linalg.lu_solve: Incompatible shapes of A and B for the equation "
                           f"{'AX = B' if left else 'XA = B'} "
                           f"({LU._shape[-2]}x{LU._shape[-1]} and {B._shape[-2]}x{B._shape[-1]})")
    P = wrap(permutation_matrix(pivots._array, LU._shape[-1], LU._array.dtype))
    # Of A X = B, A^H X = B, X A = B and X A^H = B the last two are the first two transposed.
    if not left:
        flipped = lu_solve(LU, pivots, adj(TENSORS, B), adjoint=not adjoint)
        return written(adj(TENSORS, flipped), out, "linalg_lu_solve")
    step = TENSORS.linalg_solve_triangular
    if adjoint:
        middle = step(adj(TENSORS, LU), step(adj(TENSORS, LU), B, False), True, True, True)
        return written(TENSORS.matmul(P, middle), out, "linalg_lu_solve")
    middle = step(LU, TENSORS.matmul(adj(TENSORS, P), B), False, True, True)
    return written(step(LU, middle, True), out, "linalg_lu_solve")


_lu_factor_ex = named("linalg_lu_factor_ex", "LU pivots info")
_lu_factor = named("linalg_lu_factor", "LU pivots")
_lu_unpack = named("lu_unpack", "P L U")
_lu = named("linalg_lu", "P L U")


# -- singular values -------------------------------------------------------------------------------------------------
def _check_phase(F: Any, products: Any, name: str, what: str) -> None:
    """Complex vectors are known up to a phase; a loss that changes with it has no gradient."""
    imaginary = np.abs(np.imag(unaffected(F, products)))
    if imaginary.size and imaginary.max() > 1e-2:
        raise RuntimeError(f"{name}: The {what} in the complex case are specified up to multiplication by "
                           f"e^{{i phi}}. The specified loss "
                           "function depends on this quantity, so it is ill-defined.")


def _svd_gradient(F: Any, g0: Any, g1: Any, g2: Any, result0: Any, result1: Any, result2: Any) -> Any:
    if g0 is None and g1 is None and g2 is None:
        return None
    S = result1
    k = S.shape[-1]
    U, Vh = result0[..., :k], result2[..., :k, :]
    m, n = U.shape[-2], Vh.shape[-1]
    if g0 is None and g2 is None:
        return F.matmul(U * F.unsqueeze(g1, -2), Vh)
    row, col = F.unsqueeze(S, -2), F.unsqueeze(S, -1)
    gaps = (row - col) * (row + col) + constant(F, np.eye(k, dtype=unaffected(F, S).dtype))
    middle = 0
    left = right = None
    if g0 is not None:
        gU = g0[..., :k]
        left = F.matmul(adj(F, U), gU)
        middle = (left - adj(F, left)) / gaps * row
    if g2 is not None:
        gVh = g2[..., :k, :]
        right = F.matmul(gVh, adj(F, Vh))
        middle = middle + col * ((adj(F, right) - right) / gaps)
    if is_complex(U):
        phase = 0 if left is None else diagonal_of(F, left)
        phase = phase if right is None else phase - diagonal_of(F, right)
        _check_phase(F, phase, "svd_backward", "singular vectors")
        if left is not None:  # a turn of one phase is felt in U only, by the imaginary part of its diagonal
            middle = middle + F.diag_embed(F.imag(diagonal_of(F, left)) / S * 1j)
    if g1 is not None:
        middle = middle + F.diag_embed(g1)
    made = F.matmul(U, F.matmul(middle, Vh))
    if g0 is not None and m > k:
        outer = (gU - F.matmul(U, left)) / row
        made = made + F.matmul(outer, Vh)
    if g2 is not None and n > k:
        outer = (gVh - F.matmul(right, Vh)) / col
        made = made + F.matmul(U, outer)
    return made


@operation(A=_svd_gradient, outputs="U S Vh", zeros=False, node="LinalgSvdBackward0", **PRIVATE)
def linalg_svd(A, full_matrices=True):
    check_matrix(A, "linalg.svd")
    if not A.size:
        m, n = A.shape[-2:]
        k = min(m, n)
        real = np.zeros(0, A.dtype).real.dtype
        u, vh = np.eye(m, m if full_matrices else k, dtype=A.dtype), np.eye(n if full_matrices else k, n, dtype=A.dtype)
        made = (u, np.zeros(k, real), vh)
        return tuple(np.broadcast_to(one, (*A.shape[:-2], *one.shape)).copy() for one in made)
    try:
        return tuple(np.linalg.svd(A, full_matrices))
    except np.linalg.LinAlgError:
        raise LinAlgError("linalg.svd: The algorithm failed to converge because the input matrix contained non-finite "
                          "values.") from None


def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> Any:
    """U, S and Vh with A = U diag(S) Vh."""
    if driver is not None:
        raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
                           "cuSOLVER backend.")
    return _svd(TENSORS.linalg_svd(A, full_matrices, out=out))


def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """The singular values, largest first."""
    return written(TENSORS.linalg_svd(A, False)[1], out, "linalg_svdvals")


_svd = named("linalg_svd", "U S Vh")
legacy_svd = named("svd", "U S V")


# -- eigenvalues -----------------------------------------------------------------------------------------------------
def _gaps(F: Any, values: Any) -> Any:
    """Differences of eigenvalues, with an infinite diagonal so that dividing by them leaves zeros there."""
    n = values.shape[-1]
    infinite = np.zeros((n, n), unaffected(F, values).real.dtype)
    np.fill_diagonal(infinite, np.inf)
    return F.unsqueeze(values, -2) - F.unsqueeze(values, -1) + constant(F, infinite)


def _eigh_gradient(F: Any, g0: Any, g1: Any, result0: Any, result1: Any) -> Any:
    V = result1
    if g1 is None:
        return None if g0 is None else F.matmul(V * F.unsqueeze(g0, -2), adj(F, V))
    products = F.matmul(adj(F, V), g1)
    if is_complex(V):
        _check_phase(F, diagonal_of(F, products), "linalg_eigh_backward", "eigenvectors")
    inner = products / _gaps(F, result0)
    if g0 is not None:
        inner = inner + F.diag_embed(g0)
    return F.matmul(V, F.matmul(inner, adj(F, V)))


@operation(A=_eigh_gradient, outputs="eigenvalues eigenvectors", zeros=False, node="LinalgEighBackward0", **PRIVATE)
def linalg_eigh(A, UPLO="L"):
    check_square(A, "linalg.eigh")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    try:
        return tuple(np.linalg.eigh(A, UPLO.upper()))
    except np.linalg.LinAlgError:
        raise LinAlgError("linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned "
                          "or has too many "
                          "repeated eigenvalues.") from None


def eigh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:
    """Eigenvalues, smallest first, and orthonormal eigenvectors of a symmetric or Hermitian matrix."""
    return _eigh(TENSORS.linalg_eigh(A, UPLO, out=out))


def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """Eigenvalues of a symmetric or Hermitian matrix, smallest first."""
    return written(TENSORS.linalg_eigh(A, UPLO)[0], out, "linalg_eigvalsh")


def _eig_gradient(F: Any, g0: Any, g1: Any, result0: Any, result1: Any) -> Any:
    V = result1
    Vh = adj(F, V)
    if g0 is None and g1 is None:
        return None
    if g1 is None:
        return F.linalg_solve_ex(Vh, F.unsqueeze(g0, -1) * Vh)[0]
    products = F.matmul(Vh, g1)
    diagonal = diagonal_of(F, products)
    _check_phase(F, diagonal, "linalg_eig_backward", "eigenvectors")
    # The eigenvectors have length 1: what would lengthen them is taken off.
    inner = products - F.matmul(Vh, V * F.unsqueeze(F.real(diagonal), -2))
    inner = inner / F.conj(_gaps(F, result0))
    if g0 is not None:
        inner = inner + F.diag_embed(g0)
    return F.linalg_solve_ex(Vh, F.matmul(inner, Vh))[0]


@operation(A=_eig_gradient, outputs="eigenvalues eigenvectors", zeros=False, node="LinalgEigBackward0", **PRIVATE)
def linalg_eig(A):
    check_square(A, "linalg.eig")
    if not np.isfinite(A).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    values, vectors = np.linalg.eig(A)
    # NumPy gives real arrays where all eigenvalues are real; PyTorch's are always complex.
    kind = np.result_type(A.dtype, np.complex64)
    return values.astype(kind), vectors.astype(kind)


def eig(A: Tensor, *, out: Any = None) -> Any:
    """Eigenvalues and eigenvectors, as complex numbers."""
    return _eig(TENSORS.linalg_eig(A, out=out))


def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Eigenvalues, as complex numbers."""
    return written(TENSORS.linalg_eig(A)[0], out, "linalg_eigvals")


_eigh = named("linalg_eigh", "eigenvalues eigenvectors")
_eig = named("linalg_eig", "eigenvalues eigenvectors")
