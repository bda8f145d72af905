"""Intel's MKL: whether NumPy uses it is NumPy's own business."""
from __future__ import annotations


def is_available() -> bool:
    return False
