"""Linear systems: inverse, solve, determinants, triangular and Cholesky solvers, the pseudo-inverse, least squares."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..tensor import Tensor
from .einsum import written
from .linalg_base import (
    PRIVATE,
    check_floating,
    check_info,
    check_matrix,
    check_same_dtype,
    check_square,
    column,
    constant,
    each,
    is_complex,
    unaffected,
)
from .reductions import named
from .table import TENSORS, operation

_BLOCK = 64


# -- inverse ---------------------------------------------------------------------------------------------------------
def _zero_pivot(matrix: np.ndarray) -> int:
    """Where elimination meets a zero, counted from 1; 0 for a matrix that can be inverted."""
    work = matrix.copy()
    for k in range(len(work)):
        pivot = k + int(np.argmax(np.abs(work[k:, k])))
        if work[pivot, k] == 0:
            return k + 1
        if pivot != k:
            work[[k, pivot]] = work[[pivot, k]]
        work[k + 1:, k:] -= np.outer(work[k + 1:, k] / work[k, k], work[k, k:])
    return 0


def _infos(matrices: np.ndarray) -> np.ndarray:
    return np.array(each(_zero_pivot, matrices), np.int32).reshape(matrices.shape[:-2])


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return np.full(np.broadcast_shapes(right.shape, matrix.shape[:-2] + (1, 1)), np.nan, right.dtype)


@operation(A="-matmul(adj(result0), matmul(g0, adj(result0)))", outputs="inverse info", node="LinalgInvExBackward0", **PRIVATE)
def linalg_inv_ex(A, check_errors=False):
    check_square(A, "linalg.inv")
    try:
        return np.linalg.inv(A), np.zeros(A.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        info = _infos(A)
    inverses = [_solved(matrix, np.eye(len(matrix), dtype=matrix.dtype)) for matrix in A.reshape(-1, *A.shape[-2:])]
    return np.array(inverses).reshape(A.shape), info


_SINGULAR_INVERSE = ("The diagonal element {info} is zero, the inversion could not be completed because the input "
                     "matrix is "
                     "singular.")


def inv_ex(A: Tensor, *, check_errors: bool = False, out: Any = None) -> Any:
    """The inverse, and for each matrix 0 or where it failed."""
    made = TENSORS.linalg_inv_ex(A, out=out)
    if check_errors:
        check_info(made[1], "linalg.inv_ex", _SINGULAR_INVERSE)
    return _inv_ex(made)


def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of square matrices."""
    if not isinstance(A, Tensor):
        raise TypeError(f"linalg_inv(): argument 'A' (position 1) must be Tensor, not {type(A).__name__}")
    inverse, info = TENSORS.linalg_inv_ex(A)
    check_info(info, "linalg.inv", _SINGULAR_INVERSE)
    return written(inverse, out, "linalg_inv")


_inv_ex = named("linalg_inv_ex", "inverse info")


# -- solve -----------------------------------------------------------------------------------------------------------
def is_vector(A_shape: tuple, B_shape: tuple) -> bool:
    """Whether the right-hand side is one vector for each matrix, rather than the columns of one."""
    return len(B_shape) == 1 or (len(A_shape) - 1 == len(B_shape) and A_shape[:-1] == B_shape)


def _solve_gradient_A(F: Any, g0: Any, A: Any, result0: Any, B_shape: tuple, left: bool) -> Any:
    x, gB = result0, F.linalg_solve_ex(F.adj(A), g0, left)[0]
    if is_vector(A.shape, B_shape):
        x, gB = column(F, x), column(F, gB)
    return -F.matmul(gB, F.adj(x)) if left else -F.matmul(F.adj(x), gB)


@operation(A=_solve_gradient_A, B="linalg_solve_ex(adj(A), g0, left)[0]", outputs="result info",
           node="LinalgSolveExBackward0", **PRIVATE)
def linalg_solve_ex(A, B, left=True):
    check_square(A, "linalg.solve")
    check_same_dtype(A, B, "linalg.solve")
    vector = is_vector(A.shape, B.shape)
    right = B[..., None] if vector else B
    if not vector:
        check_matrix(B, "linalg.solve", "B")
    if vector and not left:
        raise RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. "
                           "In this case "
                           "linalg.solve is equivalent to B / A.squeeze(-1)")
    if right.shape[-2 if left else -1] != A.shape[-1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(f"linalg.solve: Incompatible shapes of A and B for the equation {equation} "
                           f"({A.shape[-2]}x{A.shape[-1]} and "
                           f"{right.shape[-2]}x{right.shape[-1]})")
    info = np.zeros(np.broadcast_shapes(A.shape[:-2], right.shape[:-2]), np.int32)
    matrices, columns = (A, right) if left else (A.swapaxes(-1, -2), right.swapaxes(-1, -2))
    try:
        solution = np.linalg.solve(matrices, columns)
    except np.linalg.LinAlgError:
        info = _infos(A)
        batch = np.broadcast_shapes(matrices.shape[:-2], columns.shape[:-2])
        shape = batch + columns.shape[-2:]
        matrices, columns = np.broadcast_to(matrices, batch + matrices.shape[-2:]), np.broadcast_to(columns, shape)
        solution = np.array(each(_solved, matrices, columns)).reshape(shape)
    if not left:
        solution = solution.swapaxes(-1, -2)
    return solution[..., 0] if vector else solution, info


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """The X with A X = B, and for each matrix 0 or where it failed."""
    made = TENSORS.linalg_solve_ex(A, B, left, out=out)
    if check_errors:
        check_info(made[1], "torch.linalg.solve_ex", "The solver failed because the input matrix is singular.")
    return _solve_ex(made)


def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """The X with A X = B; with left=False X A = B."""
    result, info = TENSORS.linalg_solve_ex(A, B, left)
    check_info(info, "torch.linalg.solve", "The solver failed because the input matrix is singular.")
    return written(result, out, "linalg_solve")


_solve_ex = named("linalg_solve_ex", "result info")


# -- determinants ----------------------------------------------------------------------------------------------------
def _det_gradient(F: Any, g: Any, A: Any, result: Any) -> Any:
    n = A.shape[-1]
    if n <= 1:
        return F.expand(F.reshape(g, (*g.shape, 1, 1)), A.shape)
    if unaffected(F, result).all():
        scaled = F.reshape(g * F.conj(result), (*result.shape, 1, 1))
        return scaled * F.adj(F.linalg_inv_ex(A)[0])
    # A singular matrix has no inverse, but its cofactors are there: from the singular values, each left out in turn.
    u, s, vh = F.linalg_svd(A, True)
    others = F.where(constant(F, np.eye(n, dtype=bool)), 1.0, F.unsqueeze(s, -2))
    phase = F.conj(F.linalg_det(u) * F.linalg_det(vh)) * g
    cofactors = F.reshape(phase, (*result.shape, 1)) * F.prod(others, -1)
    return F.matmul(u * F.unsqueeze(cofactors, -2), vh)


@operation(A=_det_gradient, node="LinalgDetBackward0", **PRIVATE)
def linalg_det(A):
    check_square(A, "linalg.det")
    return np.linalg.det(A)


def _slogdet_gradient(F: Any, g0: Any, g1: Any, A: Any, result0: Any) -> Any:
    scale = g1
    if is_complex(A):
        scale = scale - F.imag(F.conj(g0) * result0) * 1j
    return F.reshape(scale, (*result0.shape, 1, 1)) * F.adj(F.linalg_inv_ex(A)[0])


@operation(A=_slogdet_gradient, outputs="sign logabsdet", node="LinalgSlogdetBackward0", **PRIVATE)
def linalg_slogdet(A):
    check_square(A, "linalg.slogdet")
    return tuple(np.linalg.slogdet(A))


def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant."""
    return TENSORS.linalg_det(A, out=out)


def slogdet(A: Tensor, *, out: Any = None) -> Any:
    """The determinant as its sign and the logarithm of its absolute value."""
    return _slogdet(TENSORS.linalg_slogdet(A, out=out))


def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: nan where that is negative."""
    check_square(input._array, "logdet", "A")
    sign, value = TENSORS.linalg_slogdet(input)
    if is_complex(input):
        return TENSORS.log(sign) + value
    return TENSORS.where(sign == -1, float("nan"), value)


_slogdet = named("linalg_slogdet", "sign logabsdet")
legacy_slogdet = named("slogdet", "sign logabsdet")


# -- triangular systems ----------------------------------------------------------------------------------------------
def triangular(A: np.ndarray, B: np.ndarray, upper: bool) -> np.ndarray:
    """Solve with triangular matrices: blocks along the diagonal directly, the rest by products of matrices."""
    n = A.shape[-1]
    if n <= _BLOCK:
        try:
            return np.linalg.solve(np.triu(A) if upper else np.tril(A), B)
        except np.linalg.LinAlgError:
            return _substituted(A, B, upper)
    half = n // 2
    top, bottom = slice(None, half), slice(half, None)
    if upper:
        x2 = triangular(A[..., bottom, bottom], B[..., bottom, :], True)
        x1 = triangular(A[..., top, top], B[..., top, :] - np.matmul(A[..., top, bottom], x2), True)
    else:
        x1 = triangular(A[..., top, top], B[..., top, :], False)
        x2 = triangular(A[..., bottom, bottom], B[..., bottom, :] - np.matmul(A[..., bottom, top], x1), False)
    return np.concatenate((x1, x2), -2)


def _substituted(A: np.ndarray, B: np.ndarray, upper: bool) -> np.ndarray:
    """Row by row: a zero on the diagonal gives infinities, as in PyTorch, and no complaint."""
    n = A.shape[-1]
    X = np.zeros(np.broadcast_shapes(A.shape[:-2], B.shape[:-2]) + B.shape[-2:], B.dtype)
    for i in reversed(range(n)) if upper else range(n):
        done = slice(i + 1, None) if upper else slice(None, i)
        known = np.matmul(A[..., i:i + 1, done], X[..., done, :])[..., 0, :]
        X[..., i, :] = (B[..., i, :] - known) / A[..., i, i, None]
    return X


def _triangular_gradient_A(F: Any, g: Any, A: Any, result: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    gB = F.linalg_solve_triangular(F.adj(A), g, not upper, left, unitriangular)
    full = -F.matmul(gB, F.adj(result)) if left else -F.matmul(F.adj(result), gB)
    masked = F.triu(full, int(unitriangular)) if upper else F.tril(full, -int(unitriangular))
    return F.sum_to_size(masked, A.shape)


@operation(A=_triangular_gradient_A,
           B="sum_to_size(linalg_solve_triangular(adj(A), g, not upper, left, unitriangular), B_shape)",
           node="LinalgSolveTriangularBackward0", **PRIVATE)
def linalg_solve_triangular(A, B, upper, left=True, unitriangular=False):
    name = "linalg.solve_triangular"
    check_square(A, name)
    check_matrix(B, name, "B")
    check_same_dtype(A, B, name)
    if B.shape[-2 if left else -1] != A.shape[-1]:
        raise RuntimeError(f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
                           f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})")
    if unitriangular:
        A = A.copy()
        A[..., range(A.shape[-1]), range(A.shape[-1])] = 1
    if left:
        return triangular(A, B, upper)
    return triangular(A.swapaxes(-1, -2), B.swapaxes(-1, -2), not upper).swapaxes(-1, -2)


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False,
                     out: Tensor | None = None) -> Tensor:
    """The X with A X = B for a triangular A."""
    return TENSORS.linalg_solve_triangular(A, B, upper, left, unitriangular, out=out)


def triangular_solve(input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False, *, out: Any = None) -> Any:
    """The X with A X = input for a triangular A, and a copy of A."""
    for name, value in (("b", input), ("A", A)):
        if value.ndim < 2:
            raise RuntimeError(f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has "
                               f"{value.ndim} dimensions "
                               "instead")
    matrix, is_upper = (TENSORS.transpose(A, -2, -1), not upper) if transpose else (A, upper)
    made = (solve_triangular(matrix, input, upper=is_upper, unitriangular=unitriangular), TENSORS.clone(A))
    if out is not None:
        return tuple(written(one, target, "triangular_solve") for one, target in zip(made, out, strict=True))
    return _triangular_solve(made)


_triangular_solve = named("triangular_solve", "solution cloned_coefficient")


# -- with a Cholesky factor ------------------------------------------------------------------------------------------
def _cholesky_solve_gradient(F: Any, g: Any, input2: Any, result: Any, upper: bool) -> Any:
    common = F.matmul(F.cholesky_solve(g, input2, upper), F.adj(result))
    common = common + F.adj(common)
    return F.sum_to_size(-F.matmul(input2, common) if upper else -F.matmul(common, input2), input2.shape)


@operation(input="sum_to_size(cholesky_solve(g, input2, upper), input_shape)", input2=_cholesky_solve_gradient)
def cholesky_solve(input, input2, upper=False):
    for name, value in (("b", input), ("u", input2)):
        if value.ndim < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has {value.ndim} dimensions instead")
    check_square(input2, "cholesky_solve")
    if input.shape[-2] != input2.shape[-1]:
        raise RuntimeError(f"Incompatible matrix sizes for cholesky_solve: each A matrix is {input2.shape[-1]} by "
                           f"{input2.shape[-1]} but "
                           f"each b matrix is {input.shape[-2]} by {input.shape[-1]}")
    lower = input2 if not upper else input2.swapaxes(-1, -2).conj()
    return triangular(lower.swapaxes(-1, -2).conj(), triangular(lower, input, False), True)


def _cholesky_inverse_gradient(F: Any, g: Any, input: Any, result: Any, upper: bool) -> Any:
    common = F.matmul(F.matmul(result, g + F.adj(g)), result)
    return -F.matmul(input, common) if upper else -F.matmul(common, input)


@operation(input=_cholesky_inverse_gradient)
def cholesky_inverse(input, upper=False):
    check_square(input, "cholesky_inverse")
    return cholesky_solve(np.broadcast_to(np.eye(input.shape[-1], dtype=input.dtype), input.shape), input, upper)


# -- pseudo-inverse, rank, least squares -----------------------------------------------------------------------------
def tolerance(values: np.ndarray, shape: tuple, atol: Any, rtol: Any) -> np.ndarray:
    """Below which singular values count as zero: the larger of atol and rtol times the largest."""
    def array(value: Any) -> Any:
        return value._array[..., None] if isinstance(value, Tensor) else value

    if rtol is None:
        absolute = array(atol)
        default = np.finfo(values.dtype).eps * max(shape[-2:])
        rtol_array = default if atol is None else np.where(np.asarray(absolute) > 0, 0.0, default)
    else:
        rtol_array = array(rtol)
    largest = values.max(-1, keepdims=True, initial=0)
    return np.maximum(0 if atol is None else array(atol), rtol_array * largest)


def singular_values(A: np.ndarray, hermitian: bool) -> np.ndarray:
    return np.abs(np.linalg.eigvalsh(A)) if hermitian else np.linalg.svd(A, compute_uv=False)


def _pinv_gradient(F: Any, g: Any, A: Any, result: Any) -> Any:
    P, Ph, gh = result, F.adj(result), F.adj(g)
    inside = F.matmul(gh, P)
    outside = F.matmul(P, gh)
    return (-F.matmul(Ph, F.matmul(g, Ph)) + F.matmul(inside - F.matmul(A, F.matmul(P, inside)), Ph)
            + F.matmul(Ph, outside - F.matmul(F.matmul(outside, P), A)))


@operation(A=_pinv_gradient, node="LinalgPinvBackward0", **PRIVATE)
def linalg_pinv(A, atol=None, rtol=None, hermitian=False):
    if A.ndim < 2:
        raise RuntimeError(f"linalg.pinv({scalar_list(A)}): expected a tensor with 2 or more dimensions of float, "
                           "double, cfloat or cdouble "
                           "types")
    check_floating(A, "linalg.pinv")
    if not A.size:
        return np.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]), A.dtype)
    if hermitian:
        check_square(A, "linalg.pinv")
        values, vectors = np.linalg.eigh(A)
        size = np.abs(values)
        kept = size > tolerance(size, A.shape, atol, rtol)
        inverse = np.where(kept, 1 / np.where(kept, values, 1), 0).astype(values.dtype)
        return np.matmul(vectors * inverse[..., None, :], vectors.swapaxes(-1, -2).conj())
    u, s, vh = np.linalg.svd(A, full_matrices=False)
    kept = s > tolerance(s, A.shape, atol, rtol)
    inverse = np.where(kept, 1 / np.where(kept, s, 1), 0).astype(s.dtype)
    return np.matmul(vh.swapaxes(-1, -2).conj() * inverse[..., None, :], u.swapaxes(-1, -2).conj())


def scalar_list(array: np.ndarray) -> str:
    from .matrix import scalar_name
    return f"{scalar_name(array.dtype)}{{{list(array.shape)}}}"


def pinv(A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None,
         out: Tensor | None = None) -> Tensor:
    """The Moore-Penrose pseudo-inverse."""
    return TENSORS.linalg_pinv(A, atol, rcond if rtol is None else rtol, hermitian, out=out)


def matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None,
                out: Tensor | None = None) -> Tensor:
    """How many singular values are not zero, to a tolerance."""
    from ..tensor import wrap
    array = A._array
    check_matrix(array, "linalg.matrix_rank", "input")
    if tol is not None:
        atol, rtol = tol, 0.0
    if not array.size:
        return written(wrap(np.zeros(array.shape[:-2], np.int64)), out, "linalg_matrix_rank")
    values = singular_values(array, hermitian)
    counted = values > tolerance(values, array.shape, atol, rtol)
    return written(wrap(np.asarray(counted.sum(-1))), out, "linalg_matrix_rank")


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """The X for which A X is nearest to B; also the squared distances, the ranks and the singular values."""
    from ..tensor import wrap
    if A.ndim < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if B.ndim < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), but "
                           f"got {driver}")
    vector = A.ndim - B.ndim == 1 and B._shape == A._shape[:-1]
    if A._shape[-2] != B._shape[-1 if vector or B.ndim == 1 else -2]:
        raise RuntimeError("torch.linalg.lstsq: input.size(-2) should match "
                           f"other.size({-1 if vector or B.ndim == 1 else -2})")
    if A._array.dtype != B._array.dtype:
        raise RuntimeError("torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype "
                           f"{A.dtype} and other's dtype {B.dtype}")
    m, n = A._shape[-2:]
    values = np.linalg.svd(A._array, compute_uv=False)
    threshold = tolerance(values, A._shape, None, rcond)
    ranks = (values > threshold).sum(-1)
    right = TENSORS.unsqueeze(B, -1) if vector else B
    solution = TENSORS.matmul(TENSORS.linalg_pinv(A, None, None if driver == "gels" else rcond), right)
    residuals = TENSORS.reshape(TENSORS.slice(TENSORS.abs(solution), -1, 0, 0), (0,))  # none, but in the graph
    if driver in ("gels", "gelsd", "gelss") and m > n and (ranks == n).all():
        difference = TENSORS.abs(TENSORS.matmul(A, solution) - right)
        residuals = TENSORS.sum(difference * difference, -2)
    nothing = wrap(np.zeros(0, np.int64))
    return _lstsq((TENSORS.squeeze(solution, -1) if vector else solution, residuals,
                   nothing if driver == "gels" else wrap(np.asarray(ranks)),
                   wrap(values) if driver in ("gelsd", "gelss") else wrap(np.zeros(0, values.dtype))))


_lstsq = named("linalg_lstsq", "solution residuals rank singular_values")
