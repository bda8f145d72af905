"""Which files hold the op table, and which are read at once: the others on first use of a name they have."""
from __future__ import annotations

import importlib

FAMILIES = ("arithmetic", "shape", "reductions", "matrix", "indexing", "pointwise", "creation", "randomness", "conversion", "softmax", "losses", "neural")
_loaded = False


def load_core() -> None:
    for name in FAMILIES:
        importlib.import_module(f"{__package__}.{name}")


def load_all() -> None:
    """Read every family."""
    global _loaded
    if not _loaded:
        _loaded = True
        for name in ON_DEMAND:
            importlib.import_module(f"{__package__}.{name}")


ON_DEMAND: tuple[str, ...] = ()
