"""Which files hold the op table: some are read at once, the others when a name is asked for that those do not have."""
from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

FAMILIES = (
    "arithmetic", "pointwise", "binary", "comparison", "selection", "complex_numbers", "activations", "shape",
    "slicing", "joining", "reductions", "matrix", "indexing", "getitem", "creation", "conversion", "softmax",
    "losses", "neural")
# In the order in which they are read, until the name is found: the more common first.
ON_DEMAND = (
    "randomness", "rearranging", "scans", "sorting", "statistics", "gather", "padding", "resizing", "copies",
    "einsum", "linalg_solve", "linalg_factor", "linalg_products", "linalg", "special", "convolution", "pooling",
    "resampling", "recurrent", "spectral", "windows", "linalg_ldl", "linalg_lowrank", "ctc")
# The methods of Tensor that only a family on demand has: a stand-in reads families until the real one is there.
ON_DEMAND_METHODS: tuple[str, ...] = (
    "argsort", "as_strided_", "bernoulli", "bernoulli_", "bincount", "cauchy_", "cholesky", "cholesky_inverse",
    "cholesky_solve", "corrcoef", "cov", "cross", "cummax", "cummin", "cumprod", "cumprod_", "cumsum", "cumsum_",
    "det", "diag", "diag_embed", "diagflat", "diff", "dist", "drawn_", "exponential_", "flip", "fliplr", "flipud",
    "gather", "geometric_", "geqrf", "histc", "histogram", "igamma", "igamma_", "igammac", "igammac_",
    "index_reduce", "index_reduce_", "inner", "inverse", "istft", "kron", "kthvalue", "log_normal_", "logcumsumexp",
    "logdet", "lu", "lu_solve", "masked_scatter", "masked_scatter_", "masked_select", "matrix_exp", "matrix_power",
    "median", "mode", "msort", "multinomial", "nanmedian", "nanquantile", "narrow_copy", "norm", "normal_", "orgqr",
    "ormqr", "pinverse", "put", "put_", "qr", "quantile", "random_", "renorm", "renorm_", "repeat",
    "repeat_interleave", "resize_", "resize_as_", "roll", "rot90", "scatter", "scatter_", "scatter_add",
    "scatter_add_", "scatter_reduce", "scatter_reduce_", "slogdet", "sort", "squeeze_", "std", "stft", "svd",
    "swapaxes_", "swapdims_", "t_", "take", "take_along_dim", "tile", "topk", "trace", "transpose_",
    "triangular_solve", "tril", "tril_", "triu", "triu_", "uniform_", "unique", "unique_consecutive", "unsafe_chunk",
    "unsafe_split", "unsafe_split_with_sizes", "unsqueeze_", "untyped_storage", "var")

_unread = list(ON_DEMAND)


def load_core() -> None:
    for name in FAMILIES:
        importlib.import_module(f"{__package__}.{name}")
    for name in ON_DEMAND_METHODS:
        _stand_in(name)


def _stand_in(name: str) -> None:
    from ..tensor import Tensor

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        load_until(lambda: Tensor.__dict__[name] is not method)
        return getattr(self, name)(*args, **kwargs)

    method.__name__ = method.__qualname__ = name
    setattr(Tensor, name, method)


def load_until(found: Callable[[], bool]) -> None:
    """Read families until `found()`, or to the last."""
    while _unread and not found():
        importlib.import_module(f"{__package__}.{_unread[0]}")
        if _unread:  # reading one may have read others
            _unread.pop(0)


def load_all() -> None:
    """Read every family."""
    load_until(lambda: False)
