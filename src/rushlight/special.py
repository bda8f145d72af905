"""torch.special: the special functions under their own names."""
from __future__ import annotations

from typing import Any

from .ops.families import load_all


def __getattr__(name: str) -> Any:
    load_all()
    from .ops.special import special_function
    found = special_function(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
