"""Tools around training: checkpointing, data loading."""
from __future__ import annotations

from typing import Any

_MODULES = frozenset(("checkpoint", "data", "hooks"))


def __getattr__(name: str) -> Any:
    import importlib
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
