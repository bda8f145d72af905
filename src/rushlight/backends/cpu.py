"""What the CPU can do: NumPy chooses its instructions itself."""
from __future__ import annotations


def get_cpu_capability() -> str:
    return "DEFAULT"
