"""Switches NumPy's floating-point warnings off around a kernel: PyTorch gives inf and nan without a word."""
from __future__ import annotations

from typing import Any

import numpy as np

try:
    # NumPy keeps its error state in a context variable. Setting it takes 0.1 us; np.errstate, which sets it too, 0.9.
    from numpy._core._ufunc_config import _extobj_contextvar, _make_extobj  # type: ignore[attr-defined]

    SILENT: Any = _make_extobj(all="ignore")
    hush: Any = _extobj_contextvar.set
    unhush: Any = _extobj_contextvar.reset
    _check = hush(SILENT)
    unhush(_check)
except Exception:  # a NumPy that keeps it elsewhere

    SILENT = None

    def hush(_: Any) -> Any:
        state = np.errstate(all="ignore")
        state.__enter__()
        return state

    def unhush(state: Any) -> None:
        state.__exit__(None, None, None)
