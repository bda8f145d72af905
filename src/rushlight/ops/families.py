"""Which files hold the op table, and which are read at once: the others on first use of a name they have."""
from __future__ import annotations

import importlib
from typing import Any

FAMILIES = (
    "arithmetic", "pointwise", "binary", "comparison", "selection", "complex_numbers", "activations", "shape",
    "slicing", "joining", "rearranging", "copies", "reductions", "scans", "sorting", "statistics", "matrix",
    "indexing", "getitem", "gather", "padding", "resizing", "creation", "randomness", "conversion", "softmax",
    "losses", "neural")
_loaded = False


# Methods of Tensor that only a family in ON_DEMAND has: a stand-in reads the families and calls the real one.
ON_DEMAND_METHODS: tuple[str, ...] = (
    "cholesky", "cholesky_inverse", "cholesky_solve", "cross", "det", "geqrf", "inner", "inverse", "istft", "kron",
    "logdet", "lu", "lu_solve", "matrix_exp", "matrix_power", "orgqr", "ormqr", "pinverse", "qr", "slogdet", "stft",
    "svd", "triangular_solve")


def load_core() -> None:
    for name in FAMILIES:
        importlib.import_module(f"{__package__}.{name}")
    for name in ON_DEMAND_METHODS:
        _stand_in(name)


def _stand_in(name: str) -> None:
    from ..tensor import Tensor

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        load_all()
        return getattr(self, name)(*args, **kwargs)

    if name not in Tensor.__dict__:
        setattr(Tensor, name, method)


def load_all() -> None:
    """Read every family."""
    global _loaded
    if not _loaded:
        _loaded = True
        for name in ON_DEMAND:
            importlib.import_module(f"{__package__}.{name}")


ON_DEMAND: tuple[str, ...] = (
    "einsum", "linalg_solve", "linalg_factor", "linalg_products", "linalg", "special", "convolution", "pooling",
    "resampling", "recurrent", "spectral", "windows", "linalg_ldl", "linalg_lowrank", "ctc")
