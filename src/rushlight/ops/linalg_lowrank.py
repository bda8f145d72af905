"""Factorisations of low rank found by random projection: svd_lowrank and pca_lowrank."""
from __future__ import annotations

from ..arrays import dtypes
from ..tensor import Tensor
from .linalg_base import adj
from .linalg_factor import qr, svd
from .table import TENSORS, public


def _range_of(A: Tensor, q: int, niter: int, mean: Tensor | None) -> Tensor:
    """q orthonormal columns that nearly span what A - mean maps to; each round sharpens them."""
    wanted = A.dtype if A.dtype in (dtypes.float32, dtypes.float64) or A.dtype.is_complex else dtypes.float32
    directions = TENSORS.randn(A._shape[-1], q, dtype=wanted)

    def applied(turned: bool, to: Tensor) -> Tensor:
        made = TENSORS.matmul(adj(TENSORS, A) if turned else A, to)
        if mean is None:
            return made
        return made - TENSORS.matmul(adj(TENSORS, mean) if turned else mean, to)

    basis = qr(applied(False, directions))[0]
    for _ in range(niter):
        basis = qr(applied(True, basis))[0]
        basis = qr(applied(False, basis))[0]
    return basis


@public
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple:
    """U, S and V of nearly the q largest singular values of A, or of A - M."""
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if M is not None:
        M = TENSORS.broadcast_to(M, A._shape)
    wide = A._shape[-2] < A._shape[-1]
    if wide:
        A, M = adj(TENSORS, A), None if M is None else adj(TENSORS, M)
    basis = _range_of(A, q, niter, M)
    small = TENSORS.matmul(adj(TENSORS, basis), A)
    if M is not None:
        small = small - TENSORS.matmul(adj(TENSORS, basis), M)
    u, s, vh = svd(small, full_matrices=False)
    u, v = TENSORS.matmul(basis, u), adj(TENSORS, vh)
    return (v, s, u) if wide else (u, s, v)


@public
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple:
    """The principal components of the rows of A: U, S and V of the centered matrix."""
    least = min(A._shape[-2:])
    if q is None:
        q = min(6, least)
    elif not 0 <= q <= least:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={least}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - TENSORS.mean(A, -2, True) if center else A, q, niter)
