"""torch.linalg: linear algebra."""
from __future__ import annotations

from .ops.families import load_all

load_all()

from .ops.linalg_base import LinAlgError  # noqa: E402 - the families come first
from .ops.linalg_factor import (  # noqa: E402
    cholesky,
    cholesky_ex,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    lu,
    lu_factor,
    lu_factor_ex,
    lu_solve,
    qr,
    svd,
    svdvals,
)
from .ops.linalg_ldl import ldl_factor, ldl_factor_ex, ldl_solve  # noqa: E402
from .ops.linalg_products import (  # noqa: E402
    cond,
    diagonal,
    householder_product,
    matrix_exp,
    matrix_norm,
    matrix_power,
    multi_dot,
    norm,
    tensorinv,
    tensorsolve,
    vander,
    vecdot,
    vector_norm,
)
from .ops.linalg_products import linalg_cross_public as cross  # noqa: E402
from .ops.linalg_solve import (  # noqa: E402
    det,
    inv,
    inv_ex,
    lstsq,
    matrix_rank,
    pinv,
    slogdet,
    solve,
    solve_ex,
    solve_triangular,
)
from .ops.table import TENSORS  # noqa: E402

matmul = TENSORS.matmul

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals",
    "eigvalsh", "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu",
    "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank",
    "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals",
    "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm"]
