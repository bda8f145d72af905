"""Differentiation as users call it: backward and grad, modes, custom functions, hooks, and what is built on them."""
from __future__ import annotations

from typing import Any

from ..engine.call import backward, grad
from ..graph.modes import is_grad_enabled
from .grad_mode import (
    enable_grad,
    inference_mode,
    is_inference_mode_enabled,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)

# Name -> the module that has it, read on first use: `import rushlight` stays light.
_LAZY = {
    "Function": "function", "Variable": "variable",
    "detect_anomaly": "anomaly_mode", "set_detect_anomaly": "anomaly_mode", "gradgradcheck": "gradcheck",
    "SavedTensor": "graph"}
_MODULES = frozenset(("anomaly_mode", "forward_ad", "function", "functional", "grad_mode", "graph", "variable"))


def __getattr__(name: str) -> Any:
    import importlib
    if name == "gradcheck":
        # Both a module and, as in PyTorch, the function of that name in it.
        found = importlib.import_module(f"{__name__}.gradcheck").gradcheck
    elif name in _LAZY:
        found = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    elif name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_MODULES, "gradcheck"})


__all__ = [
    "Function", "Variable", "anomaly_mode", "backward", "detect_anomaly", "enable_grad", "forward_ad", "function",
    "functional", "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_grad_enabled",
    "is_inference_mode_enabled", "is_multithreading_enabled", "no_grad", "set_detect_anomaly", "set_grad_enabled",
    "set_multithreading_enabled", "variable"]
