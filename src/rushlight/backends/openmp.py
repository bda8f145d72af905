"""OpenMP: not used."""
from __future__ import annotations


def is_available() -> bool:
    return False
