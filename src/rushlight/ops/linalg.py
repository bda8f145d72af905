"""Linear algebra under its older names, as functions of the package and methods of Tensor."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..tensor import Tensor, wrap
from . import linalg_factor as factor
from . import linalg_products as products
from . import linalg_solve as solve
from .linalg_base import adj
from .shape import publish_as
from .table import TENSORS, method, public

publish_as(solve.inv, "inverse")
publish_as(solve.det, "det")
publish_as(solve.logdet, "logdet")
publish_as(solve.triangular_solve, "triangular_solve")
publish_as(products.cross, "cross")
publish_as(products.matrix_power, "matrix_power")
publish_as(products.matrix_exp, "matrix_exp")
publish_as(products.ormqr, "ormqr")
publish_as(products.householder_product, "orgqr")
public(products.cdist)
public(products.pdist)
public(factor.lu_unpack)
vars(TENSORS)["linalg_matrix_norm"] = products.matrix_norm


@method
@public
def slogdet(input: Tensor) -> Any:
    """The determinant as its sign and the logarithm of its absolute value."""
    return solve.legacy_slogdet(TENSORS.linalg_slogdet(input))


@method
@public
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse."""
    return solve.pinv(input, rcond=rcond)


@method
@public
def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The Cholesky factor."""
    return factor.cholesky(input, upper=upper, out=out)


@method
@public
def qr(input: Tensor, some: bool = True, *, out: Any = None) -> Any:
    """Q and R."""
    return factor.legacy_qr(TENSORS.linalg_qr(input, "reduced" if some else "complete", out=out))


@method
@public
def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """U, S and V with input = U diag(S) V^H."""
    if not compute_uv:
        m, n = input._shape[-2:]
        empty = [wrap(np.zeros((*input._shape[:-2], k, k), input._array.dtype)) for k in (m, n)]
        made = (empty[0], factor.svdvals(input), empty[1])
    else:
        u, s, vh = TENSORS.linalg_svd(input, not some)
        made = (u, s, adj(TENSORS, vh))
    if out is not None:
        from .einsum import written
        made = tuple(written(one, target, "svd") for one, target in zip(made, out, strict=True))  # type: ignore[assignment]
    return factor.legacy_svd(made)


@method
@public
def lu(input: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """Both LU factors in one matrix, and the exchanges of rows."""
    made = TENSORS.linalg_lu_factor_ex(input, pivot)
    if not get_infos:
        factor._check_pivots(made[2], "lu")
    result = tuple(made if get_infos else made[:2])
    if out is not None:
        from .einsum import written
        return tuple(written(one, target, "lu") for one, target in zip(result, out, strict=True))
    return result


@method
@public
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The X with A X = b, given A's LU factors."""
    return factor.lu_solve(LU_data, LU_pivots, b, out=out)
